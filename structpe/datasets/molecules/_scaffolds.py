"""Splits of molecules by scaffold (Bemis and Murcko 1996), as MoleculeNet makes them (Wu et al. 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from structpe.datasets.base import Split
from structpe.readers.smiles import parsed

__all__ = ["scaffold_split"]


def scaffold_split(smiles: Sequence[str], strict: bool = True, shares: tuple[float, float] = (0.8, 0.1)) -> Split:
    """80, 10 and 10 percent of the molecules; those of one scaffold (rings and what joins them) stay together.

    The scaffolds are taken by how many molecules they have, most first, of equals the one that comes last in the list.
    Each goes to the training molecules if it fits there, else to the validation molecules, else to the test molecules.

    Args:
        smiles: the molecules.
        strict: whether valences must be permitted; see :func:`structpe.readers.smiles.parsed`.
        shares: of the molecules that are trained on, and that are selected by.
    """
    groups: dict[str, list[int]] = {}
    for number, text in enumerate(smiles):
        groups.setdefault(_scaffold(parsed(text, strict)), []).append(number)
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
    """The scaffold as SMILES without chirality.

    RDKit's ``MurckoScaffoldSmiles`` does the same, but checks valences, which fails where they are not permitted.
    """
    from rdkit import Chem

    scaffold = Chem.MurckoDecompose(molecule)
    scaffold.ClearComputedProps()
    scaffold.UpdatePropertyCache(strict=False)
    Chem.GetSymmSSSR(scaffold)
    return str(Chem.MolToSmiles(scaffold, isomericSmiles=False))
