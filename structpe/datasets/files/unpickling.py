"""Unpickling that runs nothing that a file names.

A pickle may name any function and call it. Here each reader maps the few names that its files need to safe classes; all
other names are refused. The names of NumPy are mapped to stand-ins that make arrays of booleans, integers and floats
only, because NumPy's own functions trust the dtype that a file describes.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

__all__ = ["Array", "Empty", "Function", "Refused", "Type", "Unpickler"]


class Refused(Exception):
    """A file needs something that is not allowed; the reader adds the file and a remedy."""


class Unpickler(pickle.Unpickler):
    """An unpickler that knows a fixed set of names.

    Args:
        stream: the file.
        stands_for: (module, name) -> the class to use.
        files: kind of the files, for errors.
        encoding: encoding of strings written by Python 2.
    """

    def __init__(
        self, stream: IO[bytes], stands_for: Mapping[tuple[str, str], type], files: str, encoding: str = "ASCII"
    ) -> None:
        super().__init__(stream, encoding=encoding)
        self._stands_for, self._files = stands_for, files

    def find_class(self, module: str, name: str) -> type:
        """Look up the class for a name.

        Raises:
            Refused: the name is not allowed.
        """
        if (module, name) not in self._stands_for:
            raise Refused(f"the file names {module}.{name}, which no {self._files} needs")
        return self._stands_for[module, name]


class Type:
    """Stand-in for ``numpy.dtype``: booleans, integers and floats; its state is the byte order."""

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
        """The dtype."""
        return np.dtype(self.order + self.code)


class Array(np.ndarray[Any, Any]):
    """Stand-in for ``numpy.ndarray``: an array whose dtype is a :class:`Type`.

    Attributes:
        filled: whether it has its numbers.
    """

    filled = False

    def __new__(cls, *_: object) -> Array:
        """Return an empty array for any arguments: NumPy's own function would use bytes of the file as pointers."""
        return super().__new__(cls, (0,))

    def __setstate__(self, state: Any) -> None:
        version, shape, kind, fortran, content = state
        content = content.encode("latin-1") if type(content) is str else content  # bytes written by Python 2
        if type(kind) is not Type or type(content) is not bytes:
            raise Refused("the file holds an array of something other than numbers")
        super().__setstate__((version, shape, kind.dtype, fortran, content))  # checks that shape and content fit
        self.filled = True


class Function:
    """A function that a pickle may call; a class, since a pickle could set attributes of a plain function."""

    def __setstate__(self, state: object) -> None:
        raise Refused("the file gives a function a state")


class Empty(Function):
    """Stand-in for NumPy's ``_reconstruct``, which makes an array that is filled afterwards."""

    def __new__(cls, *_: object) -> Array:  # type: ignore[misc]
        """Return an empty array."""
        return Array()
