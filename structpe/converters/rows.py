"""Mappings: rows of data sets with an ``edge_index``, and the fields of a structure by name.

See :mod:`structpe.readers._rows` for what becomes of each column. A whole data set of Hugging Face, or a ``DataFrame``
with a column ``edge_index``, has a structure for each row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from structpe.converters.base import add_converter, of_rows
from structpe.readers._edge_index import Names
from structpe.readers._rows import from_mapping
from structpe.structure import Structure

__all__ = ["from_mapping", "from_mappings"]


def from_mappings(
    rows: Iterable[Mapping[str, Any]], directed: bool | None = None, features: Names = None
) -> Iterator[Structure]:
    """The structure of each row; see :func:`from_mapping`."""
    return of_rows(rows, lambda row: from_mapping(row, directed, features))


add_converter("rows", "builtins.dict", "rows of data sets with edge_index, and fields of structures", from_mapping)
add_converter(
    "datasets",
    "datasets.Dataset datasets.IterableDataset",
    "data sets of Hugging Face with a column edge_index, row by row",
    from_mappings,
)
