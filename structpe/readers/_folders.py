"""Files of a folder: each is read, or told why it cannot be."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from structpe.errors import ReadError

__all__ = ["files_in", "no_file", "unreadable"]


def files_in(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    """The files in a folder and its subfolders, also in those that links lead to, by their suffixes, in order.

    Raises:
        ReadError: a link leads nowhere, a file is none but a pipe, or a folder cannot be listed.
    """
    return sorted(each for each in _within(folder) if _wanted(each, suffixes))


def no_file(path: Path) -> ReadError:
    """The error for a path that is neither a file nor a folder."""
    if path.exists():
        wrong = "this is a pipe or a device, which cannot be read twice; write what it gives to a file, and read that"
    elif path.is_symlink():
        wrong = f"the link leads to {path.readlink()}, where nothing is; fetch that file, or remove the link"
    else:
        wrong = "there is no such file or folder; check the path"
    return ReadError(wrong).at(path)


def unreadable(error: OSError) -> ReadError:
    """The error for a file or a folder that the system does not let one read."""
    return ReadError(f"the file cannot be read: {error.strerror}; check its permissions")


def _within(folder: Path) -> Iterator[Path]:
    """What is in a folder; each folder once, as links may lead to one above."""
    seen: set[tuple[int, int]] = set()
    for parent, folders, names in os.walk(folder, onerror=_unlisted, followlinks=True):
        here = os.stat(parent)
        if (here.st_dev, here.st_ino) in seen:
            folders.clear()
            continue
        seen.add((here.st_dev, here.st_ino))
        folders.sort()
        yield from (Path(parent, name) for name in names)


def _unlisted(error: OSError) -> None:
    raise unreadable(error).at(error.filename)


def _wanted(file: Path, suffixes: Sequence[str]) -> bool:
    """Whether a file of a folder is read; a link without a suffix that leads nowhere may be one to a folder."""
    if file.name.startswith(".") or (file.suffix not in suffixes and (file.suffix or file.exists())):
        return False
    if not file.is_file():
        raise no_file(file)
    return True
