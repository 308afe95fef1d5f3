"""A table of your own molecules: SMILES, and columns to predict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from structpe.data.features import Categories
from structpe.datasets.base import Benchmark, Split, benchmark
from structpe.datasets.files.arrays import needed
from structpe.datasets.molecules import _cells
from structpe.datasets.molecules._scaffolds import scaffold_split
from structpe.errors import ConfigError, ReadError
from structpe.formats import Item, read
from structpe.formats.smiles import ATOM_CATEGORIES, BOND_CATEGORIES
from structpe.formats.text import shown
from structpe.objectives import OBJECTIVES
from structpe.registry import unknown

__all__ = ["smiles"]


DRAWN = ("random", "scaffold")


@benchmark("smiles")
def smiles(
    folder: Path,
    file: str,
    targets: list[str],
    objective: str = "regression",
    column: str = "smiles",
    metric: str | None = None,
    split: str = "random",
    shares: tuple[float, ...] = (0.8, 0.1, 0.1),
    seed: int = 0,
    strict: bool = True,
    on_error: Literal["raise", "skip"] = "raise",
) -> Benchmark:
    """A table of your own molecules, with OGB's features of atoms and bonds; any columns as targets.

    Args:
        folder: folder of the table.
        file: a CSV file with a header.
        targets: columns to predict; an empty cell is an unknown target.
        objective: ``regression``, ``binary`` (0 or 1 in one column), ``multilabel`` (0 or 1 in each column), or
            ``multiclass`` (one column of any words).
        column: column with the SMILES.
        metric: ``mae`` or ``rmse`` for regression, ``rocauc`` or ``ap`` for binary and multilabel, ``accuracy`` for
            multiclass.
        split: ``random``, ``scaffold``, or a column with ``train``, ``valid`` or ``test``.
        shares: shares of the training, validation and test molecules, if no column gives the split.
        seed: seed of the random split.
        strict: whether a valence that RDKit does not permit is an error, as in the reader ``smiles``.
        on_error: ``raise`` stops at the first row that is not a molecule, ``skip`` skips such rows.

    Raises:
        ConfigError: an option is wrong, or does not fit another one.
        ReadError: a row is not a molecule, or a cell does not fit the objective.
    """
    table = str(folder / file)
    _check(objective, targets, shares)
    predicted = OBJECTIVES[objective]("graph", 1, metric or OBJECTIVES[objective].metrics[0])
    items = read(needed(folder / file), "smiles", on_error, column=column, features="ogb", strict=strict)
    if not items:
        raise ReadError("the table has no molecule; give a table with rows").at(table)
    for name in targets:
        if name not in items[0].metadata:
            raise ConfigError(unknown("column", name, list(items[0].metadata))).at(table)
    values, names = READ[objective](items, targets)
    return Benchmark(
        name=Path(file).stem,
        graphs=[item.structure for item in items],
        targets=values,
        splits=(_split(items, split, column, shares, seed, (table, strict)),),
        nodes=Categories(ATOM_CATEGORIES),
        edges=Categories(BOND_CATEGORIES),
        objective=replace(predicted, outputs=len(names)),
        note=(f"{split} split" if split in DRAWN else f"split by column {split!r}") + _cells.skipped(items),
        names=names,
        reader="smiles",
        options={"column": column, "features": "ogb", "strict": strict},
    )


def _check(objective: str, targets: list[str], shares: Sequence[float]) -> None:
    if objective not in READ:
        raise ConfigError(f"objective is {objective!r}; of a table, give one of {', '.join(READ)}")
    single = objective in ("binary", "multiclass")
    if not targets or (single and len(targets) != 1):
        wanted = "one column" if single else "one column or more"
        raise ConfigError(f"targets is {targets}; {wanted} must be given for the objective {objective!r}")
    if len(shares) != 3 or min(shares) < 0 or not np.isclose(sum(shares), 1):
        raise ConfigError(f"shares is {list(shares)}; give three, of training, validation and test, whose sum is 1")


Values = tuple[NDArray[Any], tuple[str, ...]]
"""Targets, and the names of the columns or classes."""


def _numbers(
    read: Callable[[Mapping[str, Any], str, str], float], items: Sequence[Item], columns: Sequence[str]
) -> Values:
    rows = [[read(item.metadata, column, item.structure.name) for column in columns] for item in items]
    return np.array(rows, dtype=np.float32), tuple(columns)


def _classes(items: Sequence[Item], columns: Sequence[str]) -> Values:
    words = [str(item.metadata[columns[0]]).strip() for item in items]
    known = sorted({word for word in words if word})
    return np.array([known.index(word) if word else -1 for word in words], dtype=np.int64), tuple(known)


READ: dict[str, Callable[[Sequence[Item], Sequence[str]], Values]] = {
    "regression": partial(_numbers, _cells.number),
    "binary": partial(_numbers, _cells.label),
    "multilabel": partial(_numbers, _cells.label),
    "multiclass": _classes,
}
"""Functions that read the targets of each objective from columns."""


def _split(
    items: Sequence[Item], split: str, column: str, shares: Sequence[float], seed: int, of: tuple[str, bool]
) -> Split:
    table, strict = of
    if split == "scaffold":
        texts = [str(item.metadata[column]).strip() for item in items]
        return scaffold_split(texts, strict, (shares[0], shares[1]))
    if split == "random":
        ends = np.round(np.cumsum(shares[:2]) * len(items)).astype(np.int64)
        order = np.random.default_rng(seed).permutation(len(items))
        return Split(*(np.sort(part) for part in np.split(order, ends)))
    if split not in items[0].metadata:
        raise ConfigError(f"split is {split!r}; give random, scaffold, or a column of the table").at(table)
    return Split(*(_part(items, split, part) for part in Split._fields))


def _part(items: Sequence[Item], column: str, part: str) -> NDArray[np.int64]:
    chosen = []
    for number, item in enumerate(items):
        said = str(item.metadata[column]).strip()
        if said not in Split._fields:
            raise ReadError(
                f"{shown(said)} in column {column!r} is not a part of a split; give train, valid or test"
            ).at(item.structure.name)
        if said == part:
            chosen.append(number)
    return np.array(chosen, dtype=np.int64)
