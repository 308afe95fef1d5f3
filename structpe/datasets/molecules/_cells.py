"""Cells of tables of molecules: numbers and labels that may be unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from structpe.errors import ReadError, listed
from structpe.formats import Reading
from structpe.formats.text import shown

__all__ = ["label", "number", "skipped"]


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
    text = str(cells[column]).strip()
    try:
        value = float(text) if text else math.nan
    except ValueError:
        value = math.inf
    if text and not abs(value) <= float(np.finfo(np.float32).max):
        raise ReadError(
            f"{shown(text)} in column {shown(column)} is not a finite number; correct it, or leave the cell empty if "
            "it is not known"
        ).at(where)
    return value


def label(cells: Mapping[str, Any], column: str, where: str) -> float:
    """Read a label, 0 or 1; NaN if the cell is empty. See :func:`number`."""
    value = number(cells, column, where)
    if value not in (0, 1) and not math.isnan(value):
        what = f"{value:g} in column {shown(column)} is not a label"
        raise ReadError(f"{what}; give 0 or 1, or leave the cell empty").at(where)
    return value


def skipped(reading: Reading) -> str:
    """The end of a note about skipped rows; empty if there are none."""
    count = len(reading.skipped)
    total = count + len(reading)
    return f"; {count} of {total} rows are skipped, as RDKit cannot read them as molecules" if count else ""
