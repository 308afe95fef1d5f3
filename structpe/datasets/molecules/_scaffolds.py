"""Splits of molecules by scaffold (Bemis and Murcko 1996), as MoleculeNet makes them (Wu et al. 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from structpe.datasets.base import Split
from structpe.readers.smiles import parsed

__all__ = ["scaffold_split"]


def scaffold_split(smiles: Sequence[str], strict: bool = True, shares: tuple[float, float] = (0.8, 0.1)) -> Split:
    """Split molecules so that those with one scaffold (rings and what connects them) stay together.

    Scaffolds are sorted by their number of molecules, largest first; among equals, the one that comes last in the list
    is first. Each goes to the training part if it fits there, else to the validation part, else to the test part.

    Args:
        smiles: the molecules.
        strict: whether valences must be permitted; see :func:`structpe.readers.smiles.parsed`.
        shares: shares of the training and the validation molecules.
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

    RDKit's ``MurckoScaffoldSmiles`` does the same, but fails if a valence is not permitted.
    """
    from rdkit import Chem

    scaffold = Chem.MurckoDecompose(molecule)
    scaffold.ClearComputedProps()
    scaffold.UpdatePropertyCache(strict=False)
    Chem.GetSymmSSSR(scaffold)
    return str(Chem.MolToSmiles(scaffold, isomericSmiles=False))
