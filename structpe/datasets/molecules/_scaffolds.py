"""Splits of molecules by scaffold (Bemis and Murcko 1996), as MoleculeNet makes them (Wu et al. 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from structpe.datasets.base import Split
from structpe.errors import ReadError
from structpe.formats.smiles import parsed
from structpe.formats.text import shown

__all__ = ["scaffold_split"]

LARGEST = 600
"""Atoms in rings, between them and next to them, of which RDKit finds the scaffold within a second or so."""


def scaffold_split(smiles: Sequence[str], strict: bool = True, shares: tuple[float, float] = (0.8, 0.1)) -> Split:
    """Split molecules so that those with one scaffold (rings and what connects them) stay together.

    Scaffolds are sorted by their number of molecules, largest first; among equals, the one that comes last in the list
    is first. Each goes to the training part if it fits there, else to the validation part, else to the test part.

    Args:
        smiles: the molecules.
        strict: whether valences must be permitted; see :func:`structpe.formats.smiles.parsed`.
        shares: shares of the training and the validation molecules.

    Raises:
        ReadError: a text is not a molecule, or there are more than 600 atoms in its rings and what connects them.
    """
    groups: dict[str, list[int]] = {}
    for number, text in enumerate(smiles):
        molecule = _without_tails(parsed(text, strict))
        if molecule.GetNumAtoms() > LARGEST:
            what = f"{molecule.GetNumAtoms()} atoms in rings and what connects them"
            raise ReadError(f"{shown(text)} has {what}; a scaffold has {LARGEST} at most, leave the molecule out")
        groups.setdefault(_scaffold(molecule), []).append(number)
    train: list[int] = []
    valid: list[int] = []
    test: list[int] = []
    for group in sorted(groups.values(), key=lambda group: (len(group), group[0]), reverse=True):
        if len(train) + len(group) <= shares[0] * len(smiles):
            train += group
        elif len(train) + len(valid) + len(group) <= sum(shares) * len(smiles):
            valid += group
        else:
            test += group
    return Split(*(np.array(sorted(part), dtype=np.int64) for part in (train, valid, test)))


def _scaffold(molecule: Any) -> str:
    """The scaffold of a molecule without tails, as SMILES without chirality.

    RDKit's ``MurckoScaffoldSmiles`` does the same, but fails if a valence is not permitted.
    """
    from rdkit import Chem

    scaffold = Chem.MurckoDecompose(molecule)
    scaffold.ClearComputedProps()
    scaffold.UpdatePropertyCache(strict=False)
    Chem.GetSymmSSSR(scaffold)
    return str(Chem.MolToSmiles(scaffold, isomericSmiles=False))


def _without_tails(molecule: Any) -> Any:
    """The molecule without the atoms two bonds or more from its rings and what connects them, which no scaffold has.

    RDKit removes such atoms too, in time that grows with the cube of their number.
    """
    from rdkit import Chem

    neighbours = [[other.GetIdx() for other in atom.GetNeighbors()] for atom in molecule.GetAtoms()]
    degrees, inner = [len(each) for each in neighbours], [True] * len(neighbours)
    ends = [atom for atom, degree in enumerate(degrees) if degree < 2]
    for atom in ends:  # which grow
        inner[atom] = False
        for other in neighbours[atom]:
            degrees[other] -= 1
            ends += [other] if degrees[other] == 1 and inner[other] else []
    draft: Any = Chem.RWMol(molecule)
    draft.BeginBatchEdit()
    for atom in (atom for atom in ends if not any(inner[other] for other in neighbours[atom])):
        draft.RemoveAtom(atom)
    draft.CommitBatchEdit()
    Chem.GetSymmSSSR(draft)
    return draft
