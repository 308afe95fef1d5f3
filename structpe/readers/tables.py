"""Tables: a graph whose nodes are the columns, and whose edges measure how much they depend on each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from structpe.errors import ReadError, StructureError, listed
from structpe.readers._csv import rows
from structpe.readers._text import shown
from structpe.readers.base import Item, Yielded, attempt, reader
from structpe.structure import Structure

__all__ = ["Relation", "feature_graph", "table"]

Relation = Literal["pearson", "spearman", "mutual information"]
RELATIONS = ("pearson", "spearman", "mutual information")
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A number; digits before a point and after it can be told apart in one way only, or long ones would take for ever."""
MOST: dict[str, int] = {"pearson": 2_048, "spearman": 2_048, "mutual information": 512}
"""Columns, all pairs of which are compared; for mutual information one by one, for correlations at once."""
Floats = NDArray[np.float64]


def feature_graph(
    names: Sequence[str],
    columns: Sequence[NDArray[Any]],
    relation: Relation = "spearman",
    threshold: float = 0.0,
    bins: int = 10,
    name: str = "",
) -> Structure:
    """The graph of the columns of a table, from which Tab-PET computes positions (Leng et al. 2025).

    Args:
        names: labels of the m columns.
        columns: the n values of each column: numbers, booleans or texts.
        relation: of two columns x and y. ``pearson``: r = cov(x, y) / (s_x s_y). ``spearman``: r of the ranks, where
            ties have their mean rank. ``mutual information``: sum p(a, b) ln(p(a, b) / p(a) p(b)) in nats, where p is
            the share of rows in class a of x and b of y. Each distinct text or number is a class; if a column has more
            than ``bins`` numbers, classes have about equal numbers of rows.
        threshold: an edge joins two columns if the absolute value of the relation is greater than this.
        bins: largest number of classes of a column of numbers, 2 or more.
        name: name of the structure.

    Returns:
        An undirected graph without order; the feature ``edge_weight`` (e,) is the relation, with its sign.

    Raises:
        StructureError: there is no column, or more than 2,048, for mutual information 512; columns have different
            lengths or fewer than 2 rows; a value is missing or not finite; a correlation of texts or of a constant
            column is requested; an option is out of range.
    """
    _check_options(relation, threshold, bins)
    _check_count(len(names), relation)
    _check_shape(names, columns)
    whole = [_values(label, column) for label, column in zip(names, columns, strict=True)]
    if relation == "mutual information":
        weights = _information([_classes(column, bins) for column in whole])
    else:
        weights = _correlation(names, whole, relation)
    upper = np.argwhere(np.triu(np.abs(weights) > threshold, 1))
    return Structure(
        tuple(names), upper, directed=False, features={"edge_weight": weights[upper[:, 0], upper[:, 1]]}, name=name
    )


@reader("table", "", also=".csv .tsv")
def table(
    path: Path,
    relation: Relation = "spearman",
    threshold: float = 0.0,
    bins: int = 10,
    columns: Sequence[str] | None = None,
    delimiter: str = ",",
) -> Iterator[Yielded]:
    """A CSV file as one graph of its columns, with edges between dependent columns, for Tab-PET.

    It claims no suffix, so give ``reader="table"``. See :func:`feature_graph` for the edges.

    Args:
        path: a CSV file whose first line names the columns.
        relation: ``pearson``, ``spearman`` or ``mutual information``.
        threshold: an edge joins two columns if the absolute value of the relation is greater.
        bins: largest number of classes of a column of numbers, for ``mutual information``.
        columns: names of the columns to use; None for all. Leave out targets.
        delimiter: the separator of cells.
    """
    yield attempt(partial(_item, path, (relation, threshold, bins), columns, delimiter))


def _item(path: Path, options: tuple[Relation, float, int], wanted: Sequence[str] | None, delimiter: str) -> Item:
    found = rows(path, delimiter)
    _, header = next(found)
    chosen = list(range(len(header))) if wanted is None else [_place(header, each) for each in wanted]
    _check_count(len(chosen), options[0])
    cells: list[list[str]] = [[] for _ in chosen]
    for line, row in found:
        if len(row) != len(header):
            wrong = f"the row has {len(row)} cells, the header {len(header)}; quote cells with '{delimiter}'"
            raise ReadError(wrong).at(f"line {line}")
        for column, place in zip(cells, chosen, strict=True):
            if not row[place].strip():
                raise ReadError(
                    f"the cell of column {shown(header[place])} is empty; fill it, or leave the row out"
                ).at(f"line {line}")
            column.append(row[place].strip())
    names = [header[place] for place in chosen]
    arrays = [_numbers(column) for column in cells]
    return Item(feature_graph(names, arrays, *options, name=path.name), id="1")


def _place(header: Sequence[str], name: str) -> int:
    if name not in header:
        raise ReadError(f"there is no column {shown(name)}; columns are: {listed(map(shown, header))}").at("line 1")
    return list(header).index(name)


def _numbers(column: Sequence[str]) -> NDArray[Any]:
    """Floats if all cells are numbers, else texts."""
    if all(NUMBER.fullmatch(cell) for cell in column):
        return np.array([float(cell) for cell in column])
    return np.array(column, dtype=object)


def _check_options(relation: str, threshold: float, bins: float) -> None:
    if relation not in RELATIONS:
        raise StructureError(f"the relation of columns is {relation!r}; give one of: {', '.join(RELATIONS)}")
    if not threshold >= 0:
        raise StructureError(f"the threshold is {threshold}; give 0 or more, which absolute values must exceed")
    if bins < 2:
        raise StructureError(f"bins is {bins!r}; give a whole number, 2 or more")


def _check_count(columns: int, relation: str) -> None:
    if columns > (most := MOST.get(relation, columns)):
        raise StructureError(
            f"the table has {columns} columns, and {relation} compares {most} at most, each with each; choose some of "
            "them (columns=)"
        )


def _check_shape(names: Sequence[str], columns: Sequence[NDArray[Any]]) -> None:
    if not names:
        raise StructureError("the table has no column; a graph of columns needs at least one")
    if len(lengths := {len(column) for column in columns}) > 1:
        raise StructureError(f"columns have different lengths: {listed(sorted(lengths))}")
    if min(lengths) < 2:
        raise StructureError(f"the table has {min(lengths)} rows; dependence between columns needs 2 or more")


def _values(label: str, column: NDArray[Any]) -> NDArray[Any]:
    """A column as floats or as texts."""
    if column.ndim != 1:
        raise StructureError(f"column {shown(label)} has shape {column.shape}; give one value per row")
    if column.dtype.kind in "biuf":
        numbers = column.astype(np.float64)
        if len(wrong := np.flatnonzero(~np.isfinite(numbers))):
            raise StructureError(
                f"column {shown(label)} is {numbers[wrong[0]]} in row {wrong[0]}, and in {len(wrong) - 1} other rows; "
                "fill or remove these first"
            )
        return numbers
    for row, value in enumerate(column.tolist()):
        if not isinstance(value, str):
            raise StructureError(
                f"column {shown(label)} has {value!r} in row {row}; give numbers, booleans or texts, none missing"
            )
    return column.astype(object)


def _correlation(names: Sequence[str], columns: Sequence[NDArray[Any]], relation: Relation) -> Floats:
    for label, column in zip(names, columns, strict=True):
        if column.dtype.kind != "f":
            raise StructureError(
                f"column {shown(label)} has texts, {shown(column[0])} first, which have no correlation; give "
                "relation='mutual information', convert them to numbers, or leave the column out"
            )
        if (column == column[0]).all():
            raise StructureError(f"column {shown(label)} has one value, {column[0]}, so no correlation; leave it out")
    if relation == "spearman":
        from scipy.stats import rankdata

        columns = [rankdata(column) for column in columns]
    # The largest value is 1, so that no square overflows or vanishes.
    centred = [column / np.abs(column).max() for column in columns]
    centred = [column - column.mean() for column in centred]
    unit = np.stack([column / np.linalg.norm(column) for column in centred])
    return np.asarray(np.clip(unit @ unit.T, -1.0, 1.0))


def _classes(column: NDArray[Any], bins: int) -> NDArray[np.int64]:
    """(n,) the class of each row."""
    values, code = np.unique(column.astype(str) if column.dtype.kind == "O" else column, return_inverse=True)
    if column.dtype.kind == "O" or len(values) <= bins:
        return np.asarray(code, dtype=np.int64)
    edges = np.unique(np.quantile(column, np.arange(1, bins) / bins))
    return np.searchsorted(edges, column, side="right").astype(np.int64)


def _information(classes: Sequence[NDArray[np.int64]]) -> Floats:
    weights = np.zeros((len(classes), len(classes)))
    for i, one in enumerate(classes):
        for j in range(i + 1, len(classes)):
            width = int(classes[j].max()) + 1
            pairs, counts = np.unique(one * width + classes[j], return_counts=True)  # few of all pairs of classes occur
            apart = np.bincount(one)[pairs // width] * np.bincount(classes[j])[pairs % width]
            weights[i, j] = max(0.0, float((counts * np.log(counts * (len(one) / apart))).sum() / len(one)))
    return weights + weights.T
