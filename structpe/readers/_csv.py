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
    """A column of a name that another has could not be asked for, and would be lost."""
    if twice := [name for name, times in Counter(names).items() if times > 1 and name.strip()]:
        raise ReadError(f"{listed(map(shown, twice))} is more than once in the header; rename the columns").at("line 1")


def rows(path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """The rows that hold something, each with the line that it begins in; the first is the header.

    Raises:
        ReadError: not UTF-8, quotes that do not match, an empty file, two columns of one name, or a delimiter that is
            not one character.
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
