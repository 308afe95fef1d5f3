"""pandas: a table as the graph of its columns, for Tab-PET. There is no inverse, since the graph has no rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from structpe.converters.base import ConversionError, add_converter
from structpe.errors import listed
from structpe.readers.tables import Relation, feature_graph
from structpe.structure import Structure

__all__ = ["from_pandas"]


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


add_converter("pandas", "pandas.DataFrame", "tables, as the graph of their columns", from_pandas)
