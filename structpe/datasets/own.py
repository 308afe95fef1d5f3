"""Your own graphs as a benchmark: from any file that a reader reads, or from items in Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from structpe.data.features import Categories, Features, Numbers
from structpe.datasets.arrays import needed
from structpe.datasets.base import Benchmark, Split, benchmark
from structpe.errors import ConfigError, ReadError, listed, located
from structpe.formats import Item, read
from structpe.formats.text import is_missing, shown
from structpe.objectives import OBJECTIVES
from structpe.registry import unknown
from structpe.structure import Structure

__all__ = [
    "READ",
    "check_options",
    "from_items",
    "graphs",
    "label",
    "number",
    "numbers",
    "of_items",
    "split_of",
    "targets_of",
    "with_rows",
]


def number(cells: Mapping[str, Any], column: str, where: str) -> float:
    """Read a number; NaN if the cell is empty.

    Args:
        cells: a row of the table.
        column: name of the column.
        where: place of the row, for errors.

    Raises:
        ReadError: there is no such column, or the cell is not a number that float32 can hold.
    """
    if column not in cells:
        raise ReadError(f"there is no column {column!r}; the table has {listed(map(repr, cells))}").at(where)
    text = "" if is_missing(cells[column]) else str(cells[column]).strip()
    try:
        value = float(text) if text else math.nan
    except ValueError:
        value = math.inf
    if text and not abs(value) <= float(np.finfo(np.float32).max):
        wrong = f"{shown(text)} in column {shown(column)} is not a finite number"
        raise ReadError(f"{wrong}; correct it, or leave the cell empty if it is not known").at(where)
    return value


def label(cells: Mapping[str, Any], column: str, where: str) -> float:
    """Read a label, 0 or 1; NaN if the cell is empty. See :func:`number`."""
    value = number(cells, column, where)
    if value not in (0, 1) and not math.isnan(value):
        what = f"{value:g} in column {shown(column)} is not a label"
        raise ReadError(f"{what}; give 0 or 1, or leave the cell empty").at(where)
    return value


def with_rows(graph: Structure) -> Structure:
    """The graph with features ``x`` and ``edge_x`` of a row per node and edge, also if there is one number for each."""
    flat = {key: np.asarray(graph.features[key]) for key in ("x", "edge_x") if key in graph.features}
    rows = {key: values[:, None] for key, values in flat.items() if values.ndim == 1}
    return replace(graph, features={**graph.features, **rows}) if rows else graph


def _kind(graphs: Sequence[Structure], key: str) -> Features:
    """Categories if all features are whole numbers from 0 on, else numbers; None if no graph has any."""
    found = [np.asarray(graph.features[key]) for graph in graphs if key in graph.features]
    widths = {values.shape[1:] for values in found}
    if len(widths) > 1 or any(values.ndim != 2 for values in found):
        raise ConfigError(
            f"features {key!r} have rows of the shapes {listed(sorted(widths))}; give all the same number"
        )
    if not found:
        return None
    whole = np.concatenate(found)
    if whole.dtype.kind in "iu" and whole.size and whole.min() >= 0:
        return Categories(tuple(int(size) + 1 for size in whole.max(axis=0)))
    return Numbers(whole.shape[1])


@benchmark("graphs")
def graphs(
    folder: Path,
    file: str,
    targets: list[str],
    reader: str | None = None,
    options: dict[str, Any] | None = None,
    objective: str = "regression",
    metric: str | None = None,
    split: str = "random",
    shares: tuple[float, ...] = (0.8, 0.1, 0.1),
    seed: int = 0,
    on_error: Literal["raise", "skip"] = "raise",
) -> Benchmark:
    """Graphs of your own, of any format that structpe reads, with numbers or classes of each graph as targets.

    The features ``x`` of nodes and ``edge_x`` of edges are read, if graphs have them: whole numbers from 0 on as
    categories, others as numbers. Targets are in the metadata of the items: attributes of a graph in GraphML or
    node-link JSON, columns of a table.

    Args:
        folder: folder of the file.
        file: name of the file.
        targets: names of what is predicted; an empty or missing value is an unknown target.
        reader: name of the reader; None chooses by the suffix.
        options: options of the reader.
        objective: ``regression``, ``binary`` (0 or 1), ``multilabel`` (0 or 1 for each target), or ``multiclass``.
        metric: ``mae`` or ``rmse`` for regression, ``rocauc`` or ``ap`` for binary and multilabel, ``accuracy`` for
            multiclass.
        split: ``random``, or the name of metadata with ``train``, ``valid`` or ``test``.
        shares: shares of the training, validation and test graphs in a random split.
        seed: seed of a random split.
        on_error: ``raise`` stops at the first bad item, ``skip`` skips these.

    Raises:
        ConfigError: an option is wrong, or does not fit another one.
        ReadError: an item is bad, or a target does not fit the objective.
    """
    check_options(objective, targets, shares, metric)
    items = read(needed(folder / file), reader, on_error, **options or {})
    with located(folder / file):
        found = from_items(items, targets, objective, metric, split, shares, seed)
    note = f"{found.note}; {items.report().partition(':')[0]}" if items.skipped else found.note
    return replace(found, name=Path(file).stem, reader=reader or "", options=options or {}, note=note)


def from_items(
    items: Sequence[Item],
    targets: Sequence[str],
    objective: str = "regression",
    metric: str | None = None,
    split: str = "random",
    shares: Sequence[float] = (0.8, 0.1, 0.1),
    seed: int = 0,
) -> Benchmark:
    """The benchmark of items, with targets in their metadata; the options are those of ``graphs``.

    Raises:
        ConfigError, ReadError: as of ``graphs``.
    """
    check_options(objective, list(targets), shares, metric)
    items = [replace(item, structure=with_rows(item.structure)) for item in items]
    return of_items(
        items,
        targets,
        objective,
        metric,
        split_of(items, split, shares, seed, "random"),
        nodes=_kind([item.structure for item in items], "x"),
        edges=_kind([item.structure for item in items], "edge_x"),
        note="random split" if split == "random" else f"split by {split!r}",
    )


def of_items(
    items: Sequence[Item],
    targets: Sequence[str],
    objective: str,
    metric: str | None,
    split: Split,
    name: str = "graphs",
    **others: Any,
) -> Benchmark:
    """A benchmark of items with a split; ``others`` are further attributes of :class:`Benchmark`.

    Raises:
        ConfigError: an item has no target of a name.
        ReadError: a target does not fit the objective.
    """
    values, names = _read(items, targets, objective)
    predicted = OBJECTIVES[objective]("graph", len(names), metric or OBJECTIVES[objective].metrics[0])
    return Benchmark(name, [i.structure for i in items], values, (split,), predicted, names=names, **others)


def _read(items: Sequence[Item], targets: Sequence[str], objective: str) -> Values:
    for target in targets:
        if lacking := next((item for item in items if target not in item.metadata), None):
            raise ConfigError(unknown("column", target, list(lacking.metadata))).at(*_place(lacking, items))
    return READ[objective](items, targets)


def targets_of(items: Sequence[Item], targets: Sequence[str], objective: str, names: Sequence[str]) -> NDArray[Any]:
    """The targets of new items, for a model whose outputs have names.

    Args:
        items: with targets in their metadata.
        targets: their names there.
        objective: a name in :data:`READ`.
        names: of what the model predicts, such as its classes.

    Raises:
        ConfigError: an item has no target of a name, or a class that the model does not know.
        ReadError: a target does not fit the objective.
    """
    values, found = _read(items, targets, objective)
    if objective != "multiclass":
        return values
    if new := [name for name in found if name not in names]:
        raise ConfigError(f"the model knows no class {new[0]!r}; it predicts {listed(names)}")
    number = np.array([*(list(names).index(name) for name in found), -1], dtype=np.int64)
    known: NDArray[Any] = number[values]
    return known


def _place(item: Item, items: Sequence[Item]) -> tuple[str, ...]:
    """Where an item is, for an error about it; nothing for the first one, as the others are like it."""
    return () if item is items[0] else (_where(item),)


def _where(item: Item) -> str:
    return item.structure.name or f"item {item.id}"


def check_options(objective: str, targets: list[str], shares: Sequence[float], metric: str | None = None) -> None:
    """Check options before a file is read.

    Raises:
        ConfigError: one is wrong, or does not fit another one.
    """
    if objective not in READ:
        raise ConfigError(f"objective is {objective!r}; of a table, give one of {', '.join(READ)}")
    single = objective in ("binary", "multiclass")
    if not targets or (single and len(targets) != 1):
        wanted = "one column" if single else "one column or more"
        raise ConfigError(f"targets is {targets}; {wanted} must be given for the objective {objective!r}")
    if len(shares) != 3 or min(shares) < 0 or not np.isclose(sum(shares), 1):
        raise ConfigError(f"shares is {list(shares)}; give three, of training, validation and test, whose sum is 1")
    if metric is not None:
        OBJECTIVES[objective]("graph", 1, metric)


Values = tuple[NDArray[Any], tuple[str, ...]]
"""Targets, and the names of the columns or classes."""


def numbers(
    read: Callable[[Mapping[str, Any], str, str], float], items: Sequence[Item], columns: Sequence[str]
) -> Values:
    """The numbers of columns, for each item, as ``read`` reads each of them: :func:`number` or :func:`label`."""
    rows = [[read(item.metadata, column, _where(item)) for column in columns] for item in items]
    return np.array(rows, dtype=np.float32), tuple(columns)


def _classes(items: Sequence[Item], columns: Sequence[str]) -> Values:
    found = [item.metadata[columns[0]] for item in items]
    words = ["" if is_missing(value) else str(value).strip() for value in found]
    known = sorted({word for word in words if word})
    return np.array([known.index(word) if word else -1 for word in words], dtype=np.int64), tuple(known)


READ: dict[str, Callable[[Sequence[Item], Sequence[str]], Values]] = {
    "regression": partial(numbers, number),
    "binary": partial(numbers, label),
    "multilabel": partial(numbers, label),
    "multiclass": _classes,
}
"""Functions that read the targets of each objective from columns."""


def split_of(items: Sequence[Item], split: str, shares: Sequence[float], seed: int, drawn: str) -> Split:
    """A random split, or that of a column.

    Args:
        items: the items.
        split: ``random``, or the name of metadata.
        shares: as of ``graphs``.
        seed: likewise.
        drawn: the splits that are not columns, for the error.

    Raises:
        ConfigError: there is no such split.
        ReadError: a value is not a part of a split.
    """
    if split == "random":
        ends = np.round(np.cumsum(shares[:2]) * len(items)).astype(np.int64)
        order = np.random.default_rng(seed).permutation(len(items))
        return Split(*(np.sort(part) for part in np.split(order, ends)))
    if split not in items[0].metadata:
        raise ConfigError(f"split is {split!r}; give {drawn}, or a column of the table")
    return Split(*(_part(items, split, part) for part in Split._fields))


def _part(items: Sequence[Item], column: str, part: str) -> NDArray[np.int64]:
    chosen = []
    for number, item in enumerate(items):
        said = str(item.metadata.get(column, "")).strip()
        if said not in Split._fields:
            wrong = f"{shown(said)} in column {column!r} is not a part of a split; give train, valid or test"
            raise ReadError(wrong).at(_where(item))
        if said == part:
            chosen.append(number)
    return np.array(chosen, dtype=np.int64)
