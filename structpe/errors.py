"""The errors of structpe: what was given, what is needed, what to do.

Every error that a user can cause is a :class:`StructPEError`; one subclass per subject. Inner code raises with the
fact, the boundary that knows the file and the item adds them with :meth:`StructPEError.at`.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self


class StructPEError(Exception):
    """Base of all errors that structpe raises on purpose.

    Attributes:
        message: what was given, what is needed and what to do.
        places: where it happened, outermost first (file, item, line), filled in by the boundaries.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.places: tuple[str, ...] = ()

    def at(self, *places: str) -> Self:
        """Put ``places`` in front of those known so far, and return the error itself."""
        self.places = (*places, *self.places)
        return self

    def __str__(self) -> str:
        return ": ".join([*self.places, self.message])


class StructureError(StructPEError):
    """A graph that breaks a rule of its kind: a cycle in a tree, a dangling edge, no node at all."""


class ReadError(StructPEError):
    """A file or text that cannot be read as the format that was asked for."""


class EncodingError(StructPEError):
    """An encoding asked of a structure that does not have what the encoding needs."""


class PositionError(StructPEError):
    """An unknown position model or option, or a position outside what a model was built for."""


class UnsupportedTerm(StructPEError):
    """A kernel was asked for a term that it does not compute."""


class ConfigError(StructPEError):
    """A configuration that names something unknown or contradicts itself."""


class StoreError(StructPEError):
    """A store or checkpoint that is missing, incomplete or made for something else."""


FEW, LONGEST = 8, 80


def listed(names: Iterable[object], most: int = FEW) -> str:
    """Names for an error message: the first of them, and how many more there are.

    Args:
        names: what to name, as it is to be shown; none gives ``none``.
        most: as many are shown; a text of more than 80 characters is cut.
    """
    texts = [str(name) for name in names]
    first = ", ".join(text if len(text) <= LONGEST else f"{text[:LONGEST]}..." for text in texts[:most])
    return f"{first} and {len(texts) - most} more" if len(texts) > most else first or "none"


@contextmanager
def undamaged(path: Path, remedy: str) -> Iterator[None]:
    """Let whatever fails while a file of ours is read be one error that names it: somebody or something changed it.

    Libraries raise exceptions of many kinds for that, one of them plain ``Exception``, so all are caught.

    Args:
        path: the file.
        remedy: what to do.

    Raises:
        StoreError: the file cannot be made sense of.
    """
    try:
        yield
    except (StructPEError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        reason = " ".join(str(error).split())
        reason = reason if len(reason) <= 200 else f"{reason[:200]}..."
        raise StoreError(f"the file is damaged ({type(error).__name__}: {reason}); {remedy}").at(str(path)) from error


class MissingExtra(StructPEError):
    """An optional dependency is not installed.

    Args:
        package: the import name that failed.
        extra: the extra of structpe that installs it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package!r} is needed for this and is not installed: pip install 'structpe[{extra}]'")


REMEDIES = {
    errno.EACCES: "; check its permissions",
    errno.EPERM: "; check its permissions",
    errno.EROFS: "; choose another place",
    errno.EEXIST: "; remove it, or choose another name",
    errno.EISDIR: "; give a file",
    errno.ENOENT: "; check the path, and that its folder exists",
    errno.ENOTDIR: "; check the path, one part of it is a file",
    errno.ENOSPC: "; make room, then start the same command again",
    errno.EDQUOT: "; make room, then start the same command again",
    errno.EFBIG: "; raise the limit of the shell (ulimit -f), or choose another disk",
}
DISK = re.compile(r"No space left on device")
MEMORY = re.compile(r"can't allocate memory|out of memory", re.IGNORECASE)


def explained(error: BaseException, debug: str) -> str:
    """One line for a person.

    Args:
        error: any; one that structpe has not raised on purpose is a disk or a memory that is full, or a fault of it.
        debug: how to see where a fault arose.
    """
    if isinstance(error, StructPEError):
        return str(error)
    if isinstance(error, OSError) and error.strerror is not None:
        place = "" if error.filename is None else f"{error.filename}: "
        return f"{place}{error.strerror}{REMEDIES.get(error.errno or 0, '')}"
    if found := DISK.search(str(error)):  # safetensors' errors are of a kind of their own
        return f"{found[0]}{REMEDIES[errno.ENOSPC]}"
    if isinstance(error, MemoryError) or MEMORY.search(str(error)):  # so are PyTorch's
        return "there is not enough memory; make batches or the model smaller, or run less at a time"
    if isinstance(error, UnicodeEncodeError):
        letter = error.object[error.start]
        return f"the output is in {error.encoding}, which has no {letter!a}; set PYTHONIOENCODING=utf-8"
    kind, told = type(error).__name__, " ".join(str(error).split())
    return f"{kind}: {told}. This is a fault of structpe, please report it; {debug}"
