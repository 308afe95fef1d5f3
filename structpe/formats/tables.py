"""Tables: a graph whose nodes are the columns, and whose edges measure how much they depend on each other.

A ``DataFrame`` with a column ``edge_index`` is a table of graphs instead, one in each row. There is no inverse.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from structpe.errors import ReadError, StructureError, listed
from structpe.formats.arrays import Names
from structpe.formats.converting import ConversionError, add_converter, as_structure, of_rows
from structpe.formats.reading import Item, Yielded, attempt, reader
from structpe.formats.text import lines, present, shown
from structpe.formats.triples import HEADERS
from structpe.structure import Structure

__all__ = ["Relation", "feature_graph", "from_pandas", "rows", "table"]


def _check_header(names: list[str]) -> None:
    """Check that names of columns are unique, since others would be lost."""
    if twice := [name for name, times in Counter(names).items() if times > 1 and name.strip()]:
        raise ReadError(f"{listed(map(shown, twice))} is more than once in the header; rename the columns").at("line 1")


def rows(
    path: Path, delimiter: str = ",", header: bool = True, quotes: bool = True, remedy: str = "check the quotes"
) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, each with the number of its first line.

    Args:
        path: the file.
        delimiter: the separator of cells.
        header: whether the first row names the columns.
        quotes: whether a cell may be in quotation marks, which then hold delimiters and line ends.
        remedy: advice if quotation marks do not match.

    Raises:
        ReadError: the file is not UTF-8 or empty, quotes do not match, two columns have the same name, or the
            delimiter is not one character.
    """
    try:
        text = (line + "\n" for _, line in lines(path))
        quoting: Any = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
        reader = csv.reader(text, delimiter=delimiter, strict=True, quoting=quoting)
    except (TypeError, ValueError):
        raise ReadError(f"the delimiter is {delimiter!r}; give one character, such as ',' or a tab") from None
    first = True
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise ReadError(f"not CSV: {error}; {remedy}").at(f"line {line}") from None
        if first and not row:
            raise ReadError("the file is empty; the first line of a CSV file names its columns")
        if row is None:
            return
        if first and header:
            _check_header(row)
        if row:
            yield line, row
        first = False


Relation = Literal["pearson", "spearman", "mutual information"]
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A number. Each text matches in one way only; otherwise long texts would take exponential time."""
MOST: dict[str, int] = {"pearson": 2_048, "spearman": 2_048, "mutual information": 512}
"""The largest number of columns. Correlations of all pairs are computed at once, mutual information one by one."""
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
    options = {"relation": relation, "threshold": threshold, "bins": bins}
    yield attempt(partial(_item, path, columns, delimiter, options))


def _item(path: Path, wanted: Sequence[str] | None, delimiter: str, options: Mapping[str, Any]) -> Item:
    found = rows(path, delimiter)
    _, header = next(found)
    chosen = list(range(len(header))) if wanted is None else [_place(header, each) for each in wanted]
    _check_count(len(chosen), options["relation"])
    cells: list[list[str]] = [[] for _ in chosen]
    for line, row in found:
        if len(row) != len(header):
            wrong = f"the row has {len(row)} cells, the header {len(header)}; quote cells with '{delimiter}'"
            raise ReadError(wrong).at(f"line {line}")
        for column, place in zip(cells, chosen, strict=True):
            if not row[place].strip():
                wrong = f"the cell of column {shown(header[place])} is empty; fill it, or leave the row out"
                raise ReadError(wrong).at(f"line {line}")
            column.append(row[place].strip())
    names = [header[place] for place in chosen]
    return Item(feature_graph(names, [_numbers(column) for column in cells], **options, name=path.name), id="1")


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
    if relation not in MOST:
        raise StructureError(f"the relation of columns is {relation!r}; give one of: {', '.join(MOST)}")
    if not threshold >= 0:
        raise StructureError(f"the threshold is {threshold}; give 0 or more, which absolute values must exceed")
    if bins < 2:
        raise StructureError(f"bins is {bins!r}; give a whole number, 2 or more")


def _check_count(columns: int, relation: str) -> None:
    if columns > (most := MOST.get(relation, columns)):
        wrong = f"the table has {columns} columns, and {relation} compares all pairs of at most {most}"
        raise StructureError(f"{wrong}; choose some of them (columns=)")


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
    # Scaled to a largest value of 1: squares of very large or small numbers would overflow or vanish.
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
            alone = np.bincount(one)[pairs // width] * np.bincount(classes[j])[pairs % width]
            weights[i, j] = max(0.0, float((counts * np.log(counts * (len(one) / alone))).sum() / len(one)))
    return weights + weights.T


HEADS, LINKS, TAILS = ([name for name in names if len(name) > 1] for names in HEADERS)


def from_pandas(
    frame: Any,
    relation: Relation = "spearman",
    threshold: float = 0.0,
    bins: int = 10,
    columns: Sequence[str] | None = None,
) -> Structure:
    """The graph of the columns of a ``DataFrame``; see :func:`feature_graph`.

    Args:
        frame: columns of numbers, booleans, texts or categories.
        relation: ``pearson``, ``spearman`` or ``mutual information``; only the last takes texts and categories.
        threshold: an edge joins two columns if the absolute value of the relation is greater.
        bins: largest number of classes of a column of numbers, for ``mutual information``.
        columns: names of the columns to use; None for all. Leave out targets.

    Raises:
        ConversionError: a column does not exist, or values are missing.
        StructureError: the relation cannot be computed from the values.
    """
    known = list(frame.columns)
    if columns is not None and (lacking := [each for each in columns if each not in known]):
        raise ConversionError(f"there is no column {lacking[0]!r}; columns are: {listed(known)}")
    places = range(len(known)) if columns is None else [known.index(each) for each in columns]
    values = []
    for place in places:
        column = frame.iloc[:, place]
        if (missing := column.isna().to_numpy()).any():
            raise ConversionError(
                f"column {str(known[place])!r} has no value in row {int(missing.argmax())}, and in {missing.sum() - 1} "
                "other rows; fill or drop these first"
            )
        numeric = column.dtype.kind in "biuf"
        values.append(column.to_numpy(dtype="float64" if numeric else object))
    return feature_graph([str(known[place]) for place in places], values, relation, threshold, bins)


def _read(
    frame: Any,
    relation: Relation | None = None,
    threshold: float | None = None,
    bins: int | None = None,
    columns: Sequence[str] | None = None,
    directed: bool | None = None,
    features: Names = None,
) -> Structure | Iterator[Structure]:
    """The graph of the columns, or those of the rows.

    Raises:
        ConversionError: an option is for the other one, or the table looks like a list of edges.
    """
    of_columns = {"relation": relation, "threshold": threshold, "bins": bins, "columns": columns}
    of_graphs = {"directed": directed, "features": features}
    rows = "edge_index" in frame.columns
    if not rows and all(value is None for value in of_columns.values()):
        _check_no_edges([str(name) for name in frame.columns])
    if odd := [name for name, value in (of_columns if rows else of_graphs).items() if value is not None]:
        meant = "a graph in each row, as it has a column 'edge_index'" if rows else "one graph, that of its columns"
        raise ConversionError(f"the table is read as {meant}, which has no option {odd[0]!r}; leave it out")
    if rows:
        names = list(map(str, frame.columns))
        cells = frame.itertuples(index=False, name=None)
        found = (present(dict(zip(names, row, strict=True))) for row in cells)
        return of_rows(found, lambda row: as_structure(row, directed=directed, features=features))
    return from_pandas(frame, **{name: value for name, value in of_columns.items() if value is not None})  # type: ignore[arg-type]


def _check_no_edges(names: Sequence[str]) -> None:
    """Check that a table is not a list of edges, by the usual names of their columns."""
    ends = [[name for name in names if name.strip().lower() in known] for known in (HEADS, TAILS)]
    if len(ends[0]) != 1 or len(ends[1]) != 1:
        return
    (head,), (tail,) = ends
    triple = [head, *[name for name in names if name.strip().lower() in LINKS][:1], tail]
    facts = f"for triples give frame[{triple}].astype(str).values.tolist(); " if len(triple) == 3 else ""
    more = ", edge_attr=True" if len(names) > 2 else ""
    raise ConversionError(
        f"by its columns {head!r} and {tail!r} the table looks like a list of edges; {facts}for edges give "
        f"networkx.from_pandas_edgelist(frame, {head!r}, {tail!r}{more}); for the graph of its columns give columns="
    )


add_converter("pandas", "pandas.DataFrame", "tables, as the graph of their columns, or with a graph in each row", _read)
