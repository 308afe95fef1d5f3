"""Draw a structure: a line of words, a grid, a molecule, a tree as arcs, or a graph.

RDKit draws molecules. A structure has elements and bonds, but neither charges nor hydrogens, so hydrogens are not shown
and valences are not checked. Atoms have their numbers, as in heat maps.

For other forms, a plan has all places in inches, computed from the widths of the texts: no two texts overlap.
Matplotlib, or plotly on a page, draws it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structpe.errors import needing
from structpe.pictures.heat import NAMED
from structpe.pictures.layout import Form, form_of
from structpe.pictures.plan import RELATION, UPRIGHT, Arcs, Laid, arcs_of, draw_arcs, laid_out
from structpe.pictures.style import FAINT, INK, LINES, MUTED, label
from structpe.structure import Structure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Depiction", "Drawing", "Outline", "depict", "draw"]


NUMBERED = 120
"""Largest number of atoms for numbers; more numbers would hide the bonds."""
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
        dashed: whether the line is dashed, such as the inner line of an aromatic bond.
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
        atoms: (n, 2) places of the atoms, y downwards.
        bond: typical length of a bond, in pixels.
    """

    svg: str
    size: tuple[int, int]
    atoms: NDArray[np.float64]
    bond: float

    def outlines(self) -> Iterator[Outline]:
        """The parts, in drawing order."""
        for found in PATH.finditer(self.svg):
            yield _outline(_attributes(found[1]))

    def data_uri(self) -> str:
        """The picture as a data URI."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg.encode("utf-8")).decode("ascii")


def depict(structure: Structure) -> Depiction:
    """Draw a molecule, a structure whose labels are elements and whose relations are bonds.

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


class Drawing:
    """The plan of a structure.

    It must be made inside :func:`structpe.pictures.style.look`, which sets the fonts.

    Args:
        structure: the graph.
        most: largest number of horizontal words of a parse.

    Raises:
        MissingExtra: RDKit is not installed, for a molecule.

    Attributes:
        form: the kind of layout.
        names: the texts at its nodes.
        depiction: layout of a molecule.
        arcs: layout of a tree.
        laid: layout of all other forms.
        size: width and height in inches.
    """

    def __init__(self, structure: Structure, most: int = UPRIGHT) -> None:
        self.structure, self.form = structure, form_of(structure)
        self.names = node_names(structure, 24 if structure.size <= 60 else 14)
        self.depiction: Depiction | None = depict(structure) if self.form == "molecule" else None
        self.arcs: Arcs | None = arcs_of(structure, self.names, most) if self.form == "tree" else None
        self.laid: Laid | None = None
        if self.depiction is None and self.arcs is None:
            self.laid = laid_out(structure, self.form, self.names)
        self.size = _size(self)

    @property
    def places(self) -> NDArray[np.float64]:
        """(n, 2) places of nodes; for a molecule in pixels with y downwards, for others in inches."""
        if self.depiction is not None:
            return self.depiction.atoms
        if self.arcs is not None:
            return np.stack([self.arcs.at, np.zeros(len(self.arcs.at))], axis=1)
        assert self.laid is not None
        return self.laid.places


def node_names(structure: Structure, most: int = 24) -> list[str]:
    """The texts at nodes: labels, with numbers if labels repeat and there is no order."""
    names = [label(text, most) for text in structure.nodes]
    if structure.size > NAMED and form_of(structure) == "graph":
        return [str(node) for node in range(structure.size)]
    ordered = structure.order is not None and form_of(structure) in ("sequence", "tree")
    return names if ordered or len(set(names)) == len(names) else [f"{i} {name}" for i, name in enumerate(names)]


def draw(axes: Axes, drawn: Drawing) -> None:
    """Draw a structure on axes of the size of its plan.

    Lines are added as artists, not as patches: the limits of the axes are known, and matplotlib need not compute them.
    """
    axes.set_axis_off()
    if drawn.depiction is not None:
        _draw_molecule(axes, drawn.depiction)
        return
    width, height = drawn.size
    if drawn.arcs is not None:
        draw_arcs(axes, drawn.structure, drawn.names, drawn.arcs)
        low = -drawn.arcs.below
    elif drawn.laid is not None:
        low = 0.0
        _edges(axes, drawn.structure, drawn.laid)
        _nodes(axes, drawn, drawn.laid)
    axes.set_xlim(0, width)
    axes.set_ylim(low, low + height)


def _size(drawn: Drawing) -> tuple[float, float]:
    if drawn.depiction is not None:
        width, height = 2 * _half(drawn.depiction)
        scale = min(0.55 / drawn.depiction.bond, 13.0 / width, 10.0 / height)
        return float(width * scale), float(height * scale)
    part = drawn.arcs or drawn.laid
    assert part is not None
    return part.size


def _draw_molecule(axes: Axes, depiction: Depiction) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    for each in depiction.outlines():
        if len(each.points):
            stroke, width = each.stroke or ("none", 0.0)
            path = Path(each.points, each.codes)
            axes.add_artist(PathPatch(path, edgecolor=stroke, facecolor=each.fill or "none", linewidth=0.6 * width,
                                      linestyle=(0, (3, 2)) if each.dashed else "-"))  # fmt: skip
    middle, half = (depiction.atoms.min(axis=0) + depiction.atoms.max(axis=0)) / 2, _half(depiction)
    low, high = middle - half, middle + half
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(high[1], low[1])
    axes.set_aspect("equal")


def _half(depiction: Depiction) -> NDArray[np.float64]:
    """(2,) half of the width and height around the atoms of a drawing, in pixels, with room for letters."""
    half: NDArray[np.float64] = np.maximum(np.ptp(depiction.atoms, axis=0) / 2 + depiction.bond, 1.6 * depiction.bond)
    return half


def _nodes(axes: Axes, drawn: Drawing, laid: Laid) -> None:
    n, root = drawn.structure.size, drawn.structure.root
    if laid.dots:
        colours = [LINES[1] if node == root else LINES[0] for node in range(n)]
        x, y = laid.places.T
        axes.scatter(x, y, s=34 if n <= NAMED else 110, c=colours, zorder=3, linewidths=0)
    for name, (x, y) in zip(drawn.names, laid.texts, strict=True):
        if laid.dots:
            axes.text(x, y, name, ha="center", va="center", fontsize=laid.points, zorder=4,
                      color=INK if n <= NAMED else "white")  # fmt: skip
        else:
            axes.text(x, y, name, ha="center", va="center", fontsize=laid.points, zorder=4, bbox=_box(drawn.form))


def _box(form: Form) -> dict[str, Any]:
    edge = "none" if form == "sequence" else MUTED
    return {"boxstyle": "round,pad=0.25", "facecolor": FAINT if form != "hierarchy" else "white", "edgecolor": edge,
            "linewidth": 0.5}  # fmt: skip


def _edges(axes: Axes, structure: Structure, laid: Laid) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    for line in laid.lines:
        arrow = "-|>" if structure.directed and line.arrow else "-"
        axes.add_artist(FancyArrowPatch(path=Path(line.points), arrowstyle=arrow, mutation_scale=6, shrinkA=0,
                                        shrinkB=0, linewidth=0.7, color=MUTED, zorder=1))  # fmt: skip
    white = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
    for each in laid.relations:
        axes.text(each.x, each.y, each.text, ha="center", va="center", fontsize=RELATION, color=LINES[0], zorder=2,
                  style="italic", bbox=white)  # fmt: skip
    if laid.below:
        axes.text(0.05, 0.03, "\n".join(laid.below), ha="left", va="bottom", fontsize=RELATION, color=MUTED,
                  linespacing=1.3)  # fmt: skip
