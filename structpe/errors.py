"""The errors of structpe. A message names the input, the requirement and the remedy.

Every error that a user can cause is a :class:`StructPEError`, with one subclass per subject. Inner code raises the
error; the code that knows the file and the item adds them with :meth:`StructPEError.at`.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

LONGEST_TEXT, LONGEST_PLACE = 4000, 1000


def bounded(text: str, most: int = LONGEST_TEXT) -> str:
    """Shorten a text to its beginning and its end, which has the remedy: an error may quote a whole file."""
    return text if len(text) <= most else f"{text[: most // 2 - 10]} [...] {text[10 - most // 2 :]}"


class StructPEError(Exception):
    """Base of all errors that structpe raises on purpose.

    A message has at most 4,000 characters, a place 1,000; the middle of longer ones is left out.

    Attributes:
        message: the input, the requirement and the remedy.
        places: where it happened, outermost first (file, item, line).
    """

    def __init__(self, message: str) -> None:
        message = bounded(message)
        super().__init__(message)
        self.message = message
        self.places: tuple[str, ...] = ()

    def at(self, *places: str | Path) -> Self:
        """Add ``places`` in front of the others, and return the error."""
        self.places = (*(bounded(str(place), LONGEST_PLACE) for place in places), *self.places)
        return self

    def __str__(self) -> str:
        return ": ".join([*self.places, self.message])


class StructureError(StructPEError):
    """A graph is invalid: for example a cycle in a tree, an edge to a missing node, or no node."""


class ReadError(StructPEError):
    """A file or text cannot be read in its format."""


class ConversionError(StructPEError):
    """An object cannot be converted into a structure, or a structure into an object of a library."""


class EncodingError(StructPEError):
    """An encoding is invalid, or a structure lacks what the encoding needs."""


class PositionError(StructPEError):
    """A position model or an option of it is unknown or invalid, or does not fit its input."""


class UnsupportedTerm(StructPEError):
    """A kernel cannot compute a term."""


class ConfigError(StructPEError):
    """A configuration has an unknown key or an invalid value, or contradicts itself."""


class StoreError(StructPEError):
    """A store or checkpoint is missing, damaged, or from another configuration."""


FEW, LONGEST = 8, 80


def listed(names: Iterable[object], most: int = FEW) -> str:
    """Names for an error message: the first of them, and how many more there are.

    Args:
        names: the names; if there are none, the result is ``none``.
        most: how many names are shown; a name of more than 80 characters is cut.
    """
    texts = [str(name) for name in names]
    first = ", ".join(text if len(text) <= LONGEST else f"{text[:LONGEST]}..." for text in texts[:most])
    return f"{first} and {len(texts) - most} more" if len(texts) > most else first or "none"


@contextmanager
def undamaged(path: Path, remedy: str) -> Iterator[None]:
    """A context in which one of our own files is read; any failure means that the file has been changed.

    Libraries raise many kinds of exceptions for this, including ``Exception``, so all are caught.

    Args:
        path: the file.
        remedy: what to do.

    Raises:
        StoreError: the file cannot be read, or is gone.
    """
    try:
        yield
    except (StructPEError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, FileNotFoundError):  # it may have existed when the folder was listed
            raise StoreError(f"there is no such file; {remedy}").at(error.filename or path) from error
        if isinstance(error, OSError) and error.filename is not None:
            raise
        reason = " ".join(str(error).split())
        reason = reason if len(reason) <= 200 else f"{reason[:200]}..."
        raise StoreError(f"the file is damaged ({type(error).__name__}: {reason}); {remedy}").at(path) from error


class MissingExtra(StructPEError):
    """An optional dependency is not installed.

    Args:
        package: the import name that failed.
        extra: the extra of structpe that installs it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package!r} is needed for this and is not installed: pip install 'structpe[{extra}]'")


@contextmanager
def needing(package: str, extra: str) -> Iterator[None]:
    """Raise :class:`MissingExtra` if an import in the ``with`` block fails."""
    try:
        yield
    except ImportError:
        raise MissingExtra(package, extra) from None


@contextmanager
def located(*places: str | Path) -> Iterator[None]:
    """Add places, such as the file, in front of those of a :class:`StructPEError` raised in the ``with`` block."""
    try:
        yield
    except StructPEError as error:
        raise error.at(*places) from None


def reason_of(error: BaseException) -> str:
    """The message of an error of another library, in one line of at most 200 characters."""
    return " ".join(str(error).split())[:200]


REMEDIES = {
    errno.EACCES: "; check its permissions",
    errno.EPERM: "; check its permissions",
    errno.EROFS: "; choose another place",
    errno.EEXIST: "; move it elsewhere, or choose another name",
    errno.EISDIR: "; give a file",
    errno.ENOENT: "; check the path, and that its folder exists",
    errno.ENOTDIR: "; check the path, one part of it is a file",
    errno.ENOSPC: "; make room, then start the same command again",
    errno.EDQUOT: "; make room, then start the same command again",
    errno.EFBIG: "; raise the limit of the shell (ulimit -f), or choose another disk",
}
DISK = re.compile(r"No space left on device")
MEMORY = re.compile(r"can't allocate memory|out of memory", re.IGNORECASE)


def foreign(place: Path) -> FileExistsError:
    """The error for a path where structpe keeps unfinished work, but which it did not create."""
    what = "a link" if place.is_symlink() else "a folder" if place.is_dir() else "a file"
    reason = f"this is {what} that structpe did not make, and it keeps its unfinished work under this name"
    return FileExistsError(errno.EEXIST, reason, str(place))


def explained(error: BaseException, debug: str, own: str = "") -> str:
    """The message for an error, as one line.

    Args:
        error: any error; one that structpe has not raised means a full disk or memory, or a bug in structpe.
        debug: how to see the traceback of a bug.
        own: the line of the user's own code that the error came through, if it did.
    """
    if isinstance(error, StructPEError):
        return str(error)
    if isinstance(error, OSError) and error.strerror is not None:
        place = "" if error.filename is None else f"{error.filename}: "
        return f"{place}{error.strerror}{REMEDIES.get(error.errno or 0, '')}"
    if found := DISK.search(str(error)):  # safetensors has its own kind of errors
        return f"{found[0]}{REMEDIES[errno.ENOSPC]}"
    if isinstance(error, MemoryError) or MEMORY.search(str(error)):  # and so has PyTorch
        return "there is not enough memory; make batches or the model smaller, or run less at a time"
    if isinstance(error, UnicodeEncodeError):
        letter = error.object[error.start]
        return f"the output is in {error.encoding}, which has no {letter!a}; set PYTHONIOENCODING=utf-8"
    kind, message = type(error).__name__, bounded(" ".join(str(error).split()))
    message = "; ".join([message, *getattr(error, "__notes__", ())])
    if own:
        return f"{own}: {kind}: {message}; this is in your code, correct it; {debug}"
    return f"{kind}: {message}. This is a bug in structpe, please report it; {debug}"
