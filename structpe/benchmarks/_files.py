"""Files of benchmarks, read without unpickling anything."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.errors import ReadError
from structpe.readers import _text

__all__ = ["array", "arrays", "lines", "needed"]


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
            known = ", ".join(content.files)
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
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error, OSError) as error:
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
