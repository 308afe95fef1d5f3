"""pandas: a table as the graph of its columns, for Tab-PET; one with a column ``edge_index`` has a graph in each row.

There is no inverse: the graph of columns has no rows, and a row of numbers no labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from structpe.converters.base import ConversionError, add_converter, as_structure, of_rows
from structpe.errors import listed
from structpe.readers._edge_index import Names
from structpe.readers._missing import present
from structpe.readers.tables import Relation, feature_graph
from structpe.readers.triples import HEADERS
from structpe.structure import Structure

__all__ = ["from_pandas"]

HEADS, LINKS, TAILS = ([name for name in names if len(name) > 1] for names in HEADERS)


def from_pandas(
    frame: Any,
    relation: Relation = "spearman",
    threshold: float = 0.0,
    bins: int = 10,
    columns: Sequence[str] | None = None,
) -> Structure:
    """The graph of the columns of a ``DataFrame``; see :func:`structpe.readers.tables.feature_graph`.

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
        return of_rows(_rows(frame), lambda row: as_structure(row, directed=directed, features=features))
    return from_pandas(frame, **{name: value for name, value in of_columns.items() if value is not None})  # type: ignore[arg-type]


def _check_no_edges(names: Sequence[str]) -> None:
    """Check that a table is no list of edges, by the usual names of their columns."""
    ends = [[name for name in names if name.strip().lower() in known] for known in (HEADS, TAILS)]
    if len(ends[0]) != 1 or len(ends[1]) != 1:
        return
    (head,), (tail,) = ends
    triple = [head, *[name for name in names if name.strip().lower() in LINKS][:1], tail]
    facts = f"for triples give frame[{triple}].astype(str).values.tolist(); " if len(triple) == 3 else ""
    more = ", edge_attr=True" if len(names) > 2 else ""
    raise ConversionError(
        f"the table looks like a list of edges, by its columns {head!r} and {tail!r}, and not like one of nodes; "
        f"{facts}for edges give networkx.from_pandas_edgelist(frame, {head!r}, {tail!r}{more}); for "
        "the graph of its columns name them by columns="
    )


def _rows(frame: Any) -> Iterator[Mapping[str, Any]]:
    names = list(map(str, frame.columns))
    for row in frame.itertuples(index=False, name=None):
        yield present(dict(zip(names, row, strict=True)))


add_converter("pandas", "pandas.DataFrame", "tables, as the graph of their columns, or with a graph in each row", _read)
