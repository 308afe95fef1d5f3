"""Unpickling that runs nothing which a file names.

A pickle may name any function and have it called. Here a reader lists the few names that its files need, with what
stands for each; any other is refused. Behind the names of NumPy are not its functions but stand-ins that make arrays of
booleans, integers and floats only, because NumPy's own trust the description of a dtype that a file gives them.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

__all__ = ["Array", "Empty", "Function", "Refused", "Type", "Unpickler"]


class Refused(Exception):
    """What a file asks for and does not get; the reader adds the file, and what to do."""


class Unpickler(pickle.Unpickler):
    """Knows the names of a list, and no other.

    Args:
        stream: the file.
        stands_for: what stands for each name, given as module and name.
        files: what is read, for errors.
        encoding: of texts that Python 2 wrote.
    """

    def __init__(
        self, stream: IO[bytes], stands_for: Mapping[tuple[str, str], type], files: str, encoding: str = "ASCII"
    ) -> None:
        super().__init__(stream, encoding=encoding)
        self._stands_for, self._files = stands_for, files

    def find_class(self, module: str, name: str) -> type:
        """What stands for a name.

        Raises:
            Refused: it is not on the list.
        """
        if (module, name) not in self._stands_for:
            raise Refused(f"the file names {module}.{name}, which no {self._files} needs")
        return self._stands_for[module, name]


class Type:
    """Stands for ``numpy.dtype``: booleans, integers, floats; its state tells the order of bytes."""

    def __init__(self, code: object, *_: object) -> None:
        if not isinstance(code, str) or not re.fullmatch(r"b1|[iu][1248]|f[248]", code):
            shown = (
                repr(code)[:80] if isinstance(code, (str, bytes, int)) or code is None else f"a {type(code).__name__}"
            )
            raise Refused(f"the file holds values of dtype {shown}, numbers are needed")
        self.code, self.order = code, "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = {"<": "<", ">": ">", "|": "|", "=": "="}[state[1]]

    @property
    def dtype(self) -> np.dtype[Any]:
        """What it stands for."""
        return np.dtype(self.order + self.code)


class Array(np.ndarray[Any, Any]):
    """Stands for ``numpy.ndarray``: an array whose dtype is a :class:`Type`.

    Attributes:
        filled: whether the file has given it numbers.
    """

    filled = False

    def __new__(cls, *_: object) -> Array:
        """An empty one, whatever a file asks for: NumPy's own would take its bytes for addresses of objects."""
        return super().__new__(cls, (0,))

    def __setstate__(self, state: Any) -> None:
        version, shape, kind, fortran, content = state
        content = content.encode("latin-1") if type(content) is str else content  # as Python 2 wrote bytes
        if type(kind) is not Type or type(content) is not bytes:
            raise Refused("the file holds an array that is none of numbers")
        super().__setstate__((version, shape, kind.dtype, fortran, content))  # checks that shape and content fit
        self.filled = True


class Function:
    """A function that a pickle may call. A class, as attributes of a plain function could be set by a pickle."""

    def __setstate__(self, state: object) -> None:
        raise Refused("the file gives a function a state")


class Empty(Function):
    """Stands for NumPy's ``_reconstruct``, which makes the array that is filled then."""

    def __new__(cls, *_: object) -> Array:  # type: ignore[misc]
        """An empty array."""
        return Array()
