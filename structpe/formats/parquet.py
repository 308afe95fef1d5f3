"""Parquet: tables with a graph in each row, as data sets of Hugging Face have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structpe.errors import ConversionError, ReadError, listed, needing
from structpe.formats.arrays import from_mapping
from structpe.formats.reading import Item, Yielded, attempt, reader
from structpe.structure import Ids

__all__ = ["parquet"]

MOST = 1 << 31
"""The largest size of a row group, in bytes; those of Hugging Face are some 100 MB."""
ROWS = 1000
"""Rows that are in memory at a time, besides what Parquet holds of their row group."""

Cell = Callable[[int], Any]


@reader("parquet", ".parquet", parallel=True)
def parquet(
    path: Path, directed: bool | None = None, features: Sequence[str] | None = None, id: str = "id"
) -> Iterator[Yielded]:
    """Parquet, a graph in each row: ``edge_index``, ``num_nodes``, ``node_feat``, ``edge_attr``, as in Hugging Face.

    Columns become parts of a structure as keys of a mapping do in :func:`structpe.as_structure`, whose page has the
    table. ``metadata`` holds single numbers and texts, and ``y``. The file is read row group by row group.

    Args:
        path: the file.
        directed: whether graphs are directed; None: unless every edge has its reverse with the same features.
        features: names of the columns that are features; None: all that fit, except ``y``.
        id: name of the column with ids; rows are numbered from 1 without it.

    Raises:
        ReadError: it is not a Parquet table or damaged, has no column ``edge_index``, or a row group over 2 GiB.
        MissingExtra: pyarrow is not installed.
    """
    with needing("pyarrow", "parquet"):
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    number = 0
    try:
        with path.open("rb") as file:
            table = ParquetFile(file)
            _check(table)
            for batch in table.iter_batches(batch_size=ROWS):
                cells = dict(zip(batch.schema.names, map(_cells, batch.columns), strict=True))
                for row in range(batch.num_rows):
                    number += 1
                    values = {name: cell(row) for name, cell in cells.items()}
                    own = "" if values.get(id) is None else str(values[id])
                    yield attempt(partial(_item, values, own or str(number), path.name, directed, features), own)
    except (ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the disk, not of the table
        reason = str(error).partition("\n")[0]
        raise ReadError(f"it is not a Parquet table, or damaged ({reason}); restore the original") from None


def _check(table: Any) -> None:
    """Check the columns and row groups that the end of the file declares."""
    names = table.schema_arrow.names
    if "edge_index" not in names or len(set(names)) < len(names):
        wrong = "it has no column 'edge_index'" if "edge_index" not in names else "two columns have one name"
        raise ReadError(f"{wrong}; its columns are {listed(names)}. Give a table with a graph in each row")
    for group in range(table.num_row_groups):
        if (size := table.metadata.row_group(group).total_byte_size) > MOST:
            raise ReadError(
                f"row group {group} takes {size / 2**30:.1f} GiB, {MOST >> 30} at most; write the table again with "
                f"smaller ones, such as write_table(..., row_group_size=10000)"
            )


def _item(values: Mapping[str, Any], id: str, file: str, directed: bool | None, features: Sequence[str] | None) -> Item:
    row = {name: value for name, value in values.items() if value is not None}
    try:
        structure = from_mapping(row, directed, features, f"{file}:{id}")
    except ConversionError as error:
        raise ReadError(error.message) from None
    other = {name: value for name, value in row.items() if name == "y" or not isinstance(value, (np.ndarray, list))}
    return Item(structure, id=id, metadata=other)


def _cells(column: Any) -> Cell:
    """The values of a column by row: arrays of numbers, lists of texts, single values, None."""
    import pyarrow.types as kinds
    from pyarrow import ExtensionType

    column = column.storage if isinstance(column.type, ExtensionType) else column
    inner, levels = column, list[Any]()
    while kinds.is_list(inner.type) or kinds.is_large_list(inner.type) or kinds.is_fixed_size_list(inner.type):
        levels.append(inner)
        inner = inner.values
    kind = inner.type
    if not levels or not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)):
        return lambda row: column[row].as_py()
    flat, lacking = inner.fill_null(False if kinds.is_boolean(kind) else 0), inner.is_null()
    parts = _Parts([_cuts(level) for level in levels], *(e.to_numpy(zero_copy_only=False) for e in (flat, lacking)))
    there = column.is_valid().to_numpy(zero_copy_only=False)

    def cell(row: int) -> Any:
        array = parts.array(row) if there[row] else None
        return column[row].as_py() if array is None else array  # lists can be ragged, and lack values

    return cell


def _cuts(lists: Any) -> Ids:
    """(n + 1,) where each list begins among the values of all, and the end."""
    from pyarrow.types import is_fixed_size_list

    if is_fixed_size_list(lists.type):
        size: int = lists.type.list_size
        return (np.arange(len(lists) + 1) + int(lists.offset)) * size
    return np.asarray(lists.offsets.to_numpy(), dtype=np.int64)


class _Parts(NamedTuple):
    """A column of nested lists of numbers: starts of lists, by level; all numbers, and which of them are missing."""

    cuts: Sequence[Ids]
    flat: NDArray[Any]
    lacking: NDArray[np.bool_]

    def array(self, row: int) -> NDArray[Any] | None:
        """The array of a row, with an axis per level, or (0,) if it is empty; None if it is ragged or lacks a value."""
        first, last, shape = row, row + 1, list[int]()
        for level in self.cuts:
            lengths = np.diff(level[first : last + 1])
            if not len(lengths):
                return self.flat[:0]
            if (lengths != lengths[0]).any():
                return None
            shape.append(int(lengths[0]))
            first, last = int(level[first]), int(level[last])
        return None if self.lacking[first:last].any() else self.flat[first:last].reshape(shape)
