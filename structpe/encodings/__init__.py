"""Encodings: what is computed from a structure. One file per subject; the registry finds them by name.

Each class can be imported from here, ``from structpe.encodings import Distance``, wherever its file is.
"""

from typing import Any

from structpe.encodings.base import ENCODINGS, UNREACHABLE, WITHIN, Column, Encoded, Encoding
from structpe.registry import unknown

__all__ = ["ENCODINGS", "UNREACHABLE", "WITHIN", "Column", "Encoded", "Encoding"]


def __getattr__(name: str) -> Any:
    """Look up an encoding by its class name in the registry, so that no list has to be maintained."""
    known = {} if name.startswith("_") else {cls.__name__: cls for cls in ENCODINGS.values()}
    if name not in known:
        raise AttributeError(unknown("encoding class", name, sorted(known)))
    return known[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *(cls.__name__ for cls in ENCODINGS.values())})
