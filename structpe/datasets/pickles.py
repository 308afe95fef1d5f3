"""Pickled arrays of NumPy and SciPy, also by Python 2, read without running anything that a file names.

A pickle is a program, which may name any function and call it. :data:`STANDS_FOR` maps the few names that such files
need to safe classes; all other names are refused. The names of NumPy are mapped to stand-ins that make arrays of
booleans, integers and floats only, because NumPy's own functions trust the dtype that a file describes.

Harmless names are not enough: seven bytes make Python's unpickler in C take gigabytes for its memo, and a few hundred
bytes nest tuples whose hash takes years. So :class:`Unpickler` is derived from the one in Python, whose memo is a
dictionary. It knows fewer operations and kinds of keys, counts copies, and measures what it has loaded.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from structpe.datasets.arrays import needed
from structpe.errors import ReadError, reason_of

__all__ = [
    "Array",
    "Empty",
    "Function",
    "Refused",
    "Type",
    "Unpickler",
    "check_pickle",
    "pickled_array",
    "pickled_lists",
    "pickled_matrix",
    "pickled_numbers",
]

EACH, SLACK = 100, 10**6
"""A pickle may describe EACH values per byte, plus SLACK; a value counts as often as the pickle refers to it."""
DEEPEST = 100
"""Depth of nested tuples, lists and mappings."""
FEW = 8
"""Parts of a key."""
UNNEEDED = {"INST", "OBJ", "EXT1", "EXT2", "EXT4", "LONG4", "NEWOBJ_EX", "EMPTY_SET", "ADDITEMS", "FROZENSET"}
"""Operations up to protocol 4 that are refused, as are all of later protocols: no file needs them."""


class Refused(Exception):
    """A file needs something that is not allowed; the reader adds the file and a remedy."""


class Type:
    """Stand-in for ``numpy.dtype``: booleans, integers and floats; its state is the byte order."""

    def __init__(self, code: object, *_: object) -> None:
        if not isinstance(code, str) or not re.fullmatch(r"b1|[iu][1248]|f[248]", code):
            plain = isinstance(code, (str, bytes, int)) or code is None  # any other object may have a harmful repr
            shown = repr(code)[:80] if plain else f"a {type(code).__name__}"
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


class Container(Function):
    """Stand-in for anything: it keeps what it is given."""

    parts: list[Any]

    def __new__(cls, *parts: object) -> Container:
        """Keep the arguments."""
        made = super().__new__(cls)
        made.parts = [*parts]
        return made

    def __setstate__(self, state: object) -> None:
        self.parts.append(state)

    def __setitem__(self, key: object, value: object) -> None:
        self.parts.append(value)

    def append(self, value: object) -> None:
        """Keep it."""
        self.parts.append(value)


class _Dictionary(Function):
    """Stand-in for a ``defaultdict``."""

    def __new__(cls, *_: object) -> dict[Any, Any]:  # type: ignore[misc]
        return {}


TEXTS = (str, bytes)
KEYS = (*TEXTS, int, float, type(None), np.generic)


class Unpickler(pickle._Unpickler):
    """An unpickler that knows a fixed set of names and operations.

    Args:
        content: content of the file.
        stands_for: (module, name) -> the class to use. Of these, none may return more than it is given.
        files: kind of the files, for errors.
        encoding: encoding of strings written by Python 2.
    """

    dispatch: ClassVar[dict[int, Callable[[Any], None]]]
    stack: list[Any]
    append: Callable[[Any], None]
    pop_mark: Callable[[], list[Any]]

    def __init__(
        self, content: bytes, stands_for: Mapping[tuple[str, str], type], files: str, encoding: str = "ASCII"
    ) -> None:
        super().__init__(io.BytesIO(content), encoding=encoding)
        self._stands_for, self._files = stands_for, files
        self._left = EACH * len(content) + SLACK
        self._measured: dict[int, tuple[int, int] | None] = {}

    def find_class(self, module: str, name: str) -> type:
        """Look up the class for a name.

        Raises:
            Refused: the name is not allowed.
        """
        if (module, name) not in self._stands_for:
            raise Refused(f"the file names {module}.{name}, which no {self._files} needs")
        return self._stands_for[module, name]

    def load(self) -> Any:
        """Load the pickle.

        Raises:
            Refused: it needs something that is not allowed, or describes more than fits its size.
            EOFError: it claims more bytes than it has.
        """
        try:
            whole = super().load()
        except EOFError:
            raise EOFError("it claims more bytes than it has") from None
        self._spend(self._measure(whole, 0)[0])
        return whole

    def _refuse(self) -> None:
        raise Refused("the file has an operation that no data needs")

    def _dict(self) -> None:
        items = self.pop_mark()
        self.append({})
        self._fill(items)

    def _fill(self, items: Sequence[Any]) -> None:
        """Put keys and values, one after the other, into the last value of the stack."""
        into = self.stack[-1]
        if type(into) is not dict and not isinstance(into, Container):
            raise Refused("the file has items of something other than a dictionary")
        for key, value in zip(items[::2], items[1::2], strict=True):
            parts = key if type(key) is tuple else (key,)
            if len(parts) > FEW or not all(isinstance(part, KEYS) for part in parts):  # its hash may take forever
                raise Refused("the file has a key that is neither a text nor a number, nor a few of these")
            into[key] = value

    def _spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise Refused("the file describes far more values than it has bytes")

    def _measure(self, value: Any, depth: int) -> tuple[int, int]:
        """The number of values in a value, those met again counted again, and their depth."""
        if not isinstance(value, (list, tuple, dict, Container)):
            return (value.nbytes if isinstance(value, Array) else len(value) if isinstance(value, TEXTS) else 1), 0
        if (key := id(value)) not in self._measured:
            if depth > DEEPEST:
                raise Refused(f"the file nests values deeper than {DEEPEST}")
            self._measured[key] = (1, 0) if isinstance(value, Container) else None  # met again below means a cycle
            parts: Any = value.values() if isinstance(value, dict) else getattr(value, "parts", value)
            if set(map(type, parts)) <= {int, float}:  # the most frequent lists
                self._measured[key] = 1 + len(parts), 1
            else:
                sizes, depths = zip(*(self._measure(part, depth + 1) for part in parts), strict=True)
                self._measured[key] = 1 + sum(sizes), 1 + max(depths)
        if (known := self._measured[key]) is None:
            raise Refused("the file puts a value into itself")
        if depth + known[1] > DEEPEST:
            raise Refused(f"the file nests values deeper than {DEEPEST}")
        return known


def _counted(load: Callable[[Any], None]) -> Callable[[Unpickler], None]:
    """An operation that gives the last value of the stack to a stand-in, which may copy it."""

    def counted(self: Unpickler) -> None:
        given = self.stack[-1]
        parts = (given, *given) if type(given) is tuple else (given,)
        self._spend(sum(len(part) for part in parts if isinstance(part, (*TEXTS, tuple, list, dict))))
        load(self)

    return counted


OPERATIONS = {ord(each.code) for each in pickletools.opcodes if each.proto < 5 and each.name not in UNNEEDED}
LOADS: Mapping[int, Callable[[Any], None]] = pickle._Unpickler.dispatch
Unpickler.dispatch = {
    **{code: load if code in OPERATIONS else Unpickler._refuse for code, load in LOADS.items()},
    **{code: _counted(LOADS[code]) for code in (*pickle.REDUCE, *pickle.NEWOBJ, *pickle.BUILD)},
    pickle.DICT[0]: Unpickler._dict,
    pickle.SETITEM[0]: lambda self: self._fill([self.stack.pop(), self.stack.pop()][::-1]),
    pickle.SETITEMS[0]: lambda self: self._fill(self.pop_mark()),
}


class _Checking(Unpickler):
    """Makes containers for all names."""

    def find_class(self, module: str, name: str) -> type:
        del module, name
        return Container

    def persistent_load(self, pid: Any) -> Any:
        return pid


def check_pickle(content: bytes) -> None:
    """Check the operations and the size of a pickle that another unpickler will load, but not its names.

    Raises:
        Refused: something is not allowed.
        EOFError: the pickle claims more bytes than it has.
    """
    _Checking(content, {}, "data", encoding="latin1").load()


MOST = 1 << 28
"""Values of a sparse matrix, zeros included, since benchmarks make it dense."""


def pickled_array(file: Path) -> NDArray[Any]:
    """Read an array.

    Raises:
        ReadError: the file is missing or damaged, or contains something else.
    """
    record = _loaded(file)
    if not isinstance(record, Array):
        raise _wrong("an array was", record).at(file)
    if not record.filled:
        raise ReadError("the array of the file has no numbers; bring back the original").at(file)
    return record.view(np.ndarray)


def pickled_matrix(file: Path) -> sparse.csr_matrix:
    """Read a sparse matrix, and check its indices.

    Raises:
        ReadError: the file is missing or damaged, or contains something else.
    """
    record = _loaded(file)
    if not isinstance(record, _Matrix):
        raise _wrong("a sparse matrix was", record).at(file)
    try:
        return record.value()
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise _damaged(error).at(file) from None


def pickled_lists(file: Path) -> dict[int, list[int]]:
    """Read a dictionary of whole numbers to lists of whole numbers.

    Raises:
        ReadError: the file is missing or damaged, or contains something else.
    """
    record = _loaded(file)
    if not isinstance(record, dict) or not all(
        type(key) is int and type(values) is list and all(type(value) is int for value in values)
        for key, values in record.items()
    ):
        raise _wrong("lists of whole numbers were", record).at(file)
    return dict(record)


def pickled_numbers(file: Path) -> dict[str, NDArray[np.int64]]:
    """Read a dictionary of names to arrays or lists of whole numbers.

    Raises:
        ReadError: the file is missing or damaged, or contains something else.
    """
    record = _loaded(file)
    named = record if isinstance(record, dict) else {}
    found = {name: _whole(value, file) for name, value in named.items() if type(name) is str}
    if not found or len(found) < len(named):
        raise _wrong("numbers by name were", record).at(file)
    return found


def _whole(value: Any, file: Path) -> NDArray[np.int64]:
    if type(value) is list and all(type(each) is int for each in value):
        return np.array(value, dtype=np.int64)
    if not isinstance(value, Array) or not value.filled or value.dtype.kind != "i":
        raise _wrong("whole numbers were", value).at(file)
    return value.view(np.ndarray).astype(np.int64)


class _Matrix(Container):
    """Stand-in for a CSR matrix: its state is a shape and three arrays."""

    def value(self) -> sparse.csr_matrix:
        (state,) = self.parts
        data, indices, starts = (state[name].view(np.ndarray) for name in ("data", "indices", "indptr"))
        matrix = sparse.csr_matrix((data, indices, starts), shape=state["_shape"])
        # Indices out of range would read memory outside the matrix.
        matrix.check_format(full_check=True)
        if matrix.shape[0] * matrix.shape[1] > MOST:
            raise ValueError(f"a matrix of shape {matrix.shape} has more than {MOST} values")
        return matrix


STANDS_FOR: dict[tuple[str, str], type] = {
    ("numpy.core.multiarray", "_reconstruct"): Empty,
    ("numpy._core.multiarray", "_reconstruct"): Empty,
    ("numpy", "ndarray"): Array,
    ("numpy", "dtype"): Type,
    ("scipy.sparse.csr", "csr_matrix"): _Matrix,
    ("collections", "defaultdict"): _Dictionary,
    ("__builtin__", "list"): Function,
}


def _loaded(file: Path) -> Any:
    try:
        content = needed(file).read_bytes()
        return Unpickler(content, STANDS_FOR, "data", encoding="latin1").load()
    except Refused as refused:
        raise ReadError(f"{refused}; do not use it, bring back the original").at(file) from None
    except ReadError as error:
        raise error if error.places else error.at(file) from None
    except Exception as error:  # a damaged pickle may fail in any way
        raise _damaged(error).at(file) from None


def _damaged(error: Exception) -> ReadError:
    return ReadError(f"the file is damaged ({type(error).__name__}: {reason_of(error)}); bring back the original")


def _wrong(expected: str, record: Any) -> ReadError:
    found = type(record).__name__.strip("_").lower()
    return ReadError(f"{expected} expected, the file holds: {found}; bring back the original")
