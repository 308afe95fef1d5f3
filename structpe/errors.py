"""The errors of structpe: what was given, what is needed, what to do.

Every error that a user can cause is a :class:`StructPEError`; one subclass per subject. Inner code raises with the
fact, the boundary that knows the file and the item adds them with :meth:`StructPEError.at`.
"""

from __future__ import annotations

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


class MissingExtra(StructPEError):
    """An optional dependency is not installed.

    Args:
        package: the import name that failed.
        extra: the extra of structpe that installs it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package!r} is needed for this and is not installed: pip install 'structpe[{extra}]'")
