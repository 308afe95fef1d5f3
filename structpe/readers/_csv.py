"""Rows of CSV files with the numbers of their lines."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from structpe.errors import ReadError, listed
from structpe.readers._text import lines, shown

__all__ = ["rows"]


def _check_header(names: list[str]) -> None:
    """Check that names of columns are unique, since others would be lost."""
    if twice := [name for name, times in Counter(names).items() if times > 1 and name.strip()]:
        raise ReadError(f"{listed(map(shown, twice))} is more than once in the header; rename the columns").at("line 1")


def rows(path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, each with the number of its first line; the first row is the header.

    Raises:
        ReadError: the file is not UTF-8 or empty, quotes do not match, two columns have the same name, or the
            delimiter is not one character.
    """
    try:
        reader = csv.reader((line + "\n" for _, line in lines(path)), delimiter=delimiter, strict=True)
    except (TypeError, ValueError):
        raise ReadError(f"the delimiter is {delimiter!r}; give one character, such as ',' or a tab") from None
    first = True
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise ReadError(f"not CSV: {error}; check the quotes").at(f"line {line}") from None
        if first and not row:
            raise ReadError("the file is empty; the first line of a CSV file names its columns")
        if row is None:
            return
        if first:
            _check_header(row)
        if row:
            yield line, row
        first = False
