"""Encodings: what is computed from a structure. One file per subject; a registry finds them.

Each class can be imported from here, ``from structpe.encodings import Distance``, wherever its file is.
"""

from typing import Any

from structpe.encodings.base import ENCODINGS, UNREACHABLE, WITHIN, Column, Encoded, Encoding
from structpe.registry import unknown

__all__ = ["ENCODINGS", "UNREACHABLE", "WITHIN", "Column", "Encoded", "Encoding"]


def __getattr__(name: str) -> Any:
    """The class of that name, found in the registry: no list has to be maintained."""
    if not name[:1].isupper():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if (found := ENCODINGS.of_class(name)) is None:
        raise AttributeError(unknown("encoding class", name, sorted(cls.__name__ for cls in ENCODINGS.values())))
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *(cls.__name__ for cls in ENCODINGS.values())})
