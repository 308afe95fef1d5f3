"""Files of benchmarks, read without unpickling anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.errors import ReadError, listed
from structpe.readers import _text
from structpe.structure import Ids

__all__ = ["array", "arrays", "indices", "lines", "lists_of_indices", "needed"]

DIGITS = 20
"""A number with as many is none of the things in a file."""


def needed(file: Path) -> Path:
    """The file itself.

    Raises:
        ReadError: it is not there.
    """
    if not file.is_file():
        raise ReadError(f"there is no file {file.name} in {file.parent}; give the folder that holds it")
    return file


def arrays(file: Path, *names: str) -> list[NDArray[Any]]:
    """Arrays of an ``.npz`` file.

    Raises:
        ReadError: the file is missing or damaged, lacks an array, or holds pickled objects.
    """
    with _loaded(file) as content:
        if not isinstance(content, np.lib.npyio.NpzFile):
            raise ValueError("it holds one array without a name")
        if lacking := [name for name in names if name not in content.files]:
            known = listed(content.files)
            raise ReadError(f"there is no array {lacking[0]!r}; the file has {known}").at(str(file))
        return [content[name] for name in names]


def array(file: Path) -> NDArray[Any]:
    """The array of an ``.npy`` file.

    Raises:
        ReadError: the file is missing or damaged, or holds pickled objects.
    """
    with _loaded(file) as content:
        if not isinstance(content, np.ndarray):
            raise ValueError("it holds several arrays")
        return content


@contextmanager
def _loaded(file: Path) -> Iterator[Any]:
    """What NumPy reads; whatever is wrong with it is one error."""
    try:
        # Opened here: NumPy leaves a damaged file open.
        with needed(file).open("rb") as opened:
            yield np.load(opened, allow_pickle=False)
    except ReadError:
        raise
    except Exception as error:  # of many kinds, by NumPy, zipfile, zlib, and what they call; MemoryError for a size
        raise ReadError(f"no file of arrays ({' '.join(str(error).split())}); bring back the original").at(
            str(file)
        ) from None


def lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text, numbered from 1.

    Raises:
        ReadError: the file is missing, or a line is not UTF-8.
    """
    try:
        yield from _text.lines(needed(file))
    except ReadError as error:
        raise error.at(str(file)) if error.places else error from None


def indices(file: Path, below: int, what: str) -> Ids:
    """Indices, of a part of a split say.

    Args:
        file: a text of whole numbers 0..below - 1, each at most once, apart by blanks and ends of lines.
        below: how many things they number.
        what: these are, for errors.

    Raises:
        ReadError: the file is missing or empty, or has something else than such numbers.
    """
    seen: set[int] = set()
    found = [number for place, line in lines(file) for number in _indices(file, place, line.split(), below, what, seen)]
    if not found:
        raise _no_indices(file, below, what, "the file is empty")
    return np.array(found, dtype=np.int64)


def lists_of_indices(file: Path, below: int, what: str) -> list[Ids]:
    """The same where each line is a list of its own, its numbers apart by commas."""
    return [
        np.array(list(_indices(file, place, line.split(","), below, what, set())), dtype=np.int64)
        for place, line in lines(file)
    ]


def _indices(file: Path, line: int, words: list[str], below: int, what: str, seen: set[int]) -> Iterator[int]:
    for word in words:
        number = int(word) if word.strip().isdecimal() and len(word) < DIGITS else below
        if number >= below or number in seen:
            again = " a second time" if number in seen else ""
            raise _no_indices(file, below, what, f"{_text.shown(word)} is given{again}", f"line {line}")
        seen.add(number)
        yield number


def _no_indices(file: Path, below: int, what: str, given: str, *places: str) -> ReadError:
    needed = f"numbers of {what} from 0..{below - 1}, each once, are needed"
    return ReadError(f"{given}; {needed}; bring back the original").at(str(file), *places)
