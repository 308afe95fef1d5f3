"""A table of molecules of one's own: SMILES, and columns to be predicted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from structpe.data.features import Categories
from structpe.datasets.base import Benchmark, Split, benchmark
from structpe.datasets.files.arrays import needed
from structpe.datasets.molecules._scaffolds import scaffold_split
from structpe.errors import ConfigError, ReadError
from structpe.objectives import OBJECTIVES
from structpe.readers import Item, Reading, read
from structpe.readers._text import shown
from structpe.readers.smiles import ATOM_CATEGORIES, BOND_CATEGORIES
from structpe.registry import unknown

__all__ = ["smiles"]


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
    """Molecules of a table of your own, with OGB's features of atoms and bonds; any columns as targets.

    Args:
        folder: where the table is.
        file: a CSV file with a header.
        targets: the columns to be predicted; an empty cell is not known.
        objective: ``regression``, ``binary`` (0 or 1 in one column), ``multilabel`` (0 or 1 in each column), or
            ``multiclass`` (one column of any words).
        column: the column with the SMILES.
        metric: ``mae`` or ``rmse`` of regression, ``rocauc`` or ``ap`` of binary and multilabel, ``accuracy`` of
            multiclass.
        split: ``random``, ``scaffold``, or a column that says ``train``, ``valid`` or ``test``.
        shares: of the molecules to train on, to select by and to report, where the table does not say.
        seed: of the random split.
        strict: whether a valence that RDKit does not permit is an error, as in the reader ``smiles``.
        on_error: ``raise`` stops at the first row that is no molecule, ``skip`` leaves such rows out.

    Raises:
        ConfigError: an option does not suit the others.
        ReadError: a row is no molecule, or a cell does not suit the objective.
    """
    table = str(folder / file)
    _check(objective, targets, shares)
    predicted = OBJECTIVES[objective]("graph", 1, metric or OBJECTIVES[objective].metrics[0])
    items = read(needed(folder / file), "smiles", on_error, column=column, features="ogb", strict=strict)
    if not items:
        raise ReadError("the table has no molecule; give one with rows").at(table)
    for name in targets:
        if name not in items[0].metadata:
            raise ConfigError(unknown("column", name, list(items[0].metadata))).at(table)
    values, outputs = READ[objective](items, targets)
    return Benchmark(
        name=Path(file).stem,
        graphs=[item.structure for item in items],
        targets=values,
        splits=(_split(items, split, column, shares, seed, (table, strict)),),
        nodes=Categories(ATOM_CATEGORIES),
        edges=Categories(BOND_CATEGORIES),
        objective=replace(predicted, outputs=outputs),
        note=(f"{split} split" if split in ("random", "scaffold") else f"split by column {split!r}") + _left_out(items),
    )


def _left_out(items: Reading) -> str:
    count = len(items.skipped)
    return f"; {count} of {len(items) + count} rows are no molecules to RDKit and are left out" if count else ""


def _check(objective: str, targets: list[str], shares: Sequence[float]) -> None:
    if objective not in READ:
        raise ConfigError(f"objective is {objective!r}; of a table, give one of {', '.join(READ)}")
    single = objective in ("binary", "multiclass")
    if not targets or (single and len(targets) != 1):
        wanted = "one column" if single else "one column or more"
        raise ConfigError(f"targets is {targets}; {wanted} must be given for the objective {objective!r}")
    if len(shares) != 3 or min(shares) < 0 or not np.isclose(sum(shares), 1):
        raise ConfigError(f"shares is {list(shares)}; give three, of training, validation and test, whose sum is 1")


Values = tuple[NDArray[Any], int]
"""Targets, and how many numbers, labels or classes there are."""


def _numbers(items: Sequence[Item], columns: Sequence[str]) -> Values:
    return np.array([[_number(item, column) for column in columns] for item in items], dtype=np.float32), len(columns)


def _labels(items: Sequence[Item], columns: Sequence[str]) -> Values:
    values, count = _numbers(items, columns)
    if (wrong := np.argwhere(~np.isnan(values) & (values != 0) & (values != 1))).size:
        row, place = wrong[0]
        told = f"{values[row, place]:g} in column {columns[place]!r} is no label; give 0 or 1, or leave the cell empty"
        raise ReadError(told).at(items[row].structure.name)
    return values, count


def _classes(items: Sequence[Item], columns: Sequence[str]) -> Values:
    words = [str(item.metadata[columns[0]]).strip() for item in items]
    known = sorted({word for word in words if word})
    return np.array([known.index(word) if word else -1 for word in words], dtype=np.int64), len(known)


READ: dict[str, Callable[[Sequence[Item], Sequence[str]], Values]] = {
    "regression": _numbers,
    "binary": _labels,
    "multilabel": _labels,
    "multiclass": _classes,
}
"""From columns to the targets of an objective."""


def _number(item: Item, column: str) -> float:
    text = str(item.metadata[column]).strip()
    try:
        value = float(text) if text else float("nan")
    except ValueError:
        value = float("inf")
    if np.isinf(value):
        raise ReadError(f"{shown(text)} in column {column!r} is no number; correct it, or leave the cell empty").at(
            item.structure.name
        )
    return value


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
        said = _said(item.metadata, column)
        if said not in Split._fields:
            raise ReadError(f"{shown(said)} in column {column!r} is no part of a split; give train, valid or test").at(
                item.structure.name
            )
        if said == part:
            chosen.append(number)
    return np.array(chosen, dtype=np.int64)


def _said(cells: Mapping[str, Any], column: str) -> str:
    return str(cells[column]).strip()
