"""Tables of predictions in files that are written part by part: CSV and Parquet."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structpe.errors import ConfigError, needing
from structpe.files import replacing

__all__ = ["SUFFIXES", "Write", "table_writer"]

SUFFIXES = (".csv", ".parquet")

Write: TypeAlias = Callable[[Mapping[str, NDArray[Any]]], None]
"""Writes some rows: columns by name, the same names each time."""


@contextmanager
def table_writer(path: Path | None) -> Iterator[Write]:
    """Write a table atomically, in the format of its suffix; None writes CSV to standard output.

    Raises:
        ConfigError: the suffix is neither ``.csv`` nor ``.parquet``.
        MissingExtra: pyarrow is not installed, for Parquet.
        OSError: the disk is full, or the folder cannot be written to.
    """
    if path is None:
        yield _csv(sys.stdout)
        return
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"{path} has the suffix {path.suffix!r}; tables are written as {' or '.join(SUFFIXES)}")
    with replacing(path) as hidden:
        if path.suffix == ".csv":
            with hidden.open("w", encoding="utf-8", newline="") as file:
                yield _csv(file)
        else:
            with _parquet(hidden) as write:
                yield write


def _csv(file: TextIO) -> Write:
    writer, begun = csv.writer(file, lineterminator="\n"), False

    def write(columns: Mapping[str, NDArray[Any]]) -> None:
        nonlocal begun
        if not begun:
            writer.writerow(columns)
            begun = True
        # As text: the shortest digits that give back a float32.
        writer.writerows(zip(*(column.astype(str).tolist() for column in columns.values()), strict=True))

    return write


@contextmanager
def _parquet(path: Path) -> Iterator[Write]:
    with needing("pyarrow", "parquet"):
        import pyarrow
        from pyarrow.parquet import ParquetWriter
    writer: Any = None

    def write(columns: Mapping[str, NDArray[Any]]) -> None:
        nonlocal writer
        table = pyarrow.table({name: _arrow(column) for name, column in columns.items()})
        if writer is None:
            writer = ParquetWriter(path, table.schema)
        writer.write_table(table)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _arrow(column: NDArray[Any]) -> Any:
    return column if np.issubdtype(column.dtype, np.number) else column.astype(str).tolist()
