"""Molecules drawn by RDKit, as outlines and places of atoms.

A structure has elements and bonds, but neither charges nor hydrogens, so hydrogens are not written and valences are not
checked. Atoms have their numbers, as in heat maps.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.errors import needing
from structpe.structure import Structure

__all__ = ["Depiction", "Outline", "depict"]

NUMBERED = 120
"""Largest number of atoms with numbers, which would hide the bonds."""
PATH = re.compile(r"<path\b([^>]*?)/>", re.DOTALL)
STEP = re.compile(r"([MLQCZ])|(-?\d+(?:\.\d+)?(?:e-?\d+)?)")


@dataclass(frozen=True, eq=False)
class Outline:
    """A line, or a filled shape, of a drawing.

    Attributes:
        points: (p, 2) in pixels, y downwards.
        codes: (p,) the codes of matplotlib's ``Path``.
        stroke: colour and width of the line; None without a line.
        fill: colour of the area; None without a fill.
        dashed: whether the line is dashed, as the inner line of an aromatic bond.
    """

    points: NDArray[np.float64]
    codes: NDArray[np.int64]
    stroke: tuple[str, float] | None
    fill: str | None
    dashed: bool


@dataclass(frozen=True, eq=False)
class Depiction:
    """A drawing of a molecule.

    Attributes:
        svg: the whole picture.
        size: its width and height in pixels.
        atoms: (n, 2) the place of each atom, y downwards.
        bond: length of a bond, in pixels.
    """

    svg: str
    size: tuple[int, int]
    atoms: NDArray[np.float64]
    bond: float

    def outlines(self) -> Iterator[Outline]:
        """Its parts, in the order in which they are drawn."""
        for found in PATH.finditer(self.svg):
            yield _outline(_attributes(found[1]))

    def data_uri(self) -> str:
        """The picture as a data URI."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg.encode("utf-8")).decode("ascii")


def depict(structure: Structure) -> Depiction:
    """The drawing of a structure whose labels are elements and whose relations are bonds.

    Raises:
        MissingExtra: RDKit is not installed.
    """
    with needing("rdkit", "mol"):
        from rdkit import rdBase
        from rdkit.Chem.Draw import rdMolDraw2D
    side = int(np.clip(90 * np.sqrt(structure.size) + 120, 200, 1400))
    drawer = rdMolDraw2D.MolDraw2DSVG(side, side)
    options: Any = drawer.drawOptions()
    options.addAtomIndices = 1 < structure.size <= NUMBERED
    options.clearBackground, options.prepareMolsBeforeDrawing = False, False
    options.annotationFontScale, options.fixedBondLength = 0.5, 45.0
    with rdBase.BlockLogs():
        molecule = _molecule(structure)
        drawer.DrawMolecule(molecule)
    drawer.FinishDrawing()
    at = [drawer.GetDrawCoords(atom) for atom in range(structure.size)]
    atoms = np.array([(point.x, point.y) for point in at])
    ends = atoms[structure.edges] if len(structure.edges) else np.zeros((0, 2, 2))
    long = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)
    bond = float(np.median(long[long > 0])) if (long > 0).any() else 45.0
    return Depiction(drawer.GetDrawingText(), (side, side), atoms, bond)


def _molecule(structure: Structure) -> Any:
    from rdkit import Chem
    from rdkit.Chem import rdDepictor

    molecule = Chem.RWMol()
    for symbol in structure.nodes:
        atom = Chem.Atom(symbol)
        atom.SetNoImplicit(True)
        molecule.AddAtom(atom)
    for edge, (a, b) in enumerate(structure.edges.tolist()):
        if a != b and molecule.GetBondBetweenAtoms(a, b) is None:
            kind = Chem.BondType.names[(structure.relation(edge) or "single").upper()]
            molecule.AddBond(a, b, kind)
            if kind == Chem.BondType.AROMATIC:
                molecule.GetBondBetweenAtoms(a, b).SetIsAromatic(True)
                molecule.GetAtomWithIdx(a).SetIsAromatic(True)
                molecule.GetAtomWithIdx(b).SetIsAromatic(True)
    molecule.UpdatePropertyCache(strict=False)
    Chem.FastFindRings(molecule)
    rdDepictor.Compute2DCoords(molecule)
    return molecule


def _attributes(text: str) -> dict[str, str]:
    """Attributes of an element, including those of its style."""
    found = dict(re.findall(r"([\w-]+)='([^']*)'", text))
    found.update(part.split(":", 1) for part in found.pop("style", "").split(";") if ":" in part)
    return found


def _outline(said: dict[str, str]) -> Outline:
    points, codes, step = list[float](), list[int](), "M"
    code = {"M": 1, "L": 2, "Q": 3, "C": 4}
    for letter, number in STEP.findall(said.get("d", "")):
        if letter == "Z":
            points.extend(points[:2])
            codes.append(79)
        elif letter:
            step = letter
        else:
            points.append(float(number))
            codes.extend([code[step]] if len(points) % 2 == 0 else [])
    stroke, fill = said.get("stroke", "none"), said.get("fill", "none")
    width = float(said.get("stroke-width", "1").removesuffix("px"))
    return Outline(
        np.array(points).reshape(-1, 2),
        np.array(codes, dtype=np.int64),
        None if stroke == "none" else (stroke, width),
        None if fill == "none" else fill,
        "stroke-dasharray" in said,
    )
