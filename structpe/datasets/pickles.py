"""Pickled arrays of NumPy and SciPy, also by Python 2, read without running anything that a file names.

A pickle is a program, which may name any function and call it. :data:`STANDS_FOR` maps the few names that such files
need to safe classes; all other names are refused. The names of NumPy are mapped to stand-ins that make arrays of
booleans, integers and floats only, because NumPy's own functions trust the dtype that a file describes.

Harmless names are not enough: seven bytes can make a memo of gigabytes, or claim a string of gigabytes; a few hundred
bytes can nest tuples whose hash takes years. So every operation is first traced without being executed, by the stack
effects that Python's ``pickletools`` documents.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

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
    "look_through",
    "pickled_array",
    "pickled_lists",
    "pickled_matrix",
    "pickled_numbers",
]


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


DEEPEST = 100
"""Depth of nested tuples, lists and mappings."""
EACH, SLACK = 100, 10**6
"""All operations together may visit EACH values per byte of the file, plus SLACK."""

PAIR = -10
COUNTS = {-2: (1, False), -3: (4, True), -4: (4, False), -5: (8, False)}
"""Codes of ``pickletools`` for arguments with a length prefix -> bytes of the prefix, whether it is signed."""
INSIDE = {"APPEND": 1, "SETITEM": 2, "BUILD": 1, "APPENDS": None, "SETITEMS": None, "ADDITEMS": None}
"""Operations that add values to a container -> number of values, or None for all after the mark."""


class _Operation(NamedTuple):
    name: str
    length: int
    takes: int
    marked: bool
    gives: int


class _Value:
    """A container: its number of values, its depth, and whether it is part of another container.

    On the traced stack an integer stands for any other value, by its size in bytes.
    """

    __slots__ = ("depth", "size", "used")

    def __init__(self, size: int, depth: int) -> None:
        self.size, self.depth, self.used = size, depth, False


MARK = _Value(0, 0)


class _End(Exception):
    """Loading the pickle would fail here."""


def look_through(pickled: bytes, cycles: bool = False) -> None:
    """Check that nothing in a pickle is out of proportion to its size. Its validity is not checked.

    Args:
        pickled: content of the file.
        cycles: whether an object may get its state after it was put into another one, as in files of PyTorch
            Geometric, whose objects refer to one another.

    Raises:
        Refused: something is out of proportion.
        EOFError: the pickle claims more bytes than it has; Python would allocate memory for them.
    """
    following = _Following(pickled, cycles)
    try:
        following.over_numbers()
        while following.step():
            following.over_numbers()
    except (_End, LookupError, ValueError):
        return


def _operations() -> list[_Operation | None]:
    """All operations, by opcode."""
    found: list[_Operation | None] = [None] * 256
    for each in pickletools.opcodes:
        before, after = each.stack_before, each.stack_after
        marked = pickletools.markobject in before
        length = 0 if each.arg is None else each.arg.n
        if each.arg is not None and each.arg.name == "stringnl_noescape_pair":
            length = PAIR
        takes = before.index(pickletools.markobject) if marked else len(before)
        found[ord(each.code)] = _Operation(each.name, length, takes, marked, len(after))
    return found


OPERATIONS = _operations()


class _Following:
    """The state while a pickle is traced.

    Args:
        pickled: content of the file.
        cycles: see :func:`look_through`.
    """

    def __init__(self, pickled: bytes, cycles: bool = False) -> None:
        self.cycles, self.pickled, self.at, self.work = cycles, pickled, 0, 0
        self.stack: list[_Value | int] = []
        self.memo: dict[int, _Value | int] = {}

    def over_numbers(self) -> None:
        """Skip the most frequent operations: those that push a number, a mark or a memo entry, or fill the memo."""
        pickled, at, stack, memo = self.pickled, self.at, self.stack, self.memo
        while quick := QUICK.get(pickled[at]):
            width, kind = quick
            if kind == "number":
                stack.append(width)
            elif kind == "mark":
                stack.append(MARK)
            else:
                index = len(memo) if kind == "next" else int.from_bytes(pickled[at + 1 : at + width], "little")
                if kind == "get":
                    stack.append(memo[index])
                elif (
                    index > at
                ):  # each entry of the memo takes a byte at least; the C unpickler allocates up to the index
                    raise Refused(f"the file has {at} bytes up to here, and refers to value number {index}")
                else:
                    memo[index] = stack[-1]
            at += width
        self.at = at

    def step(self) -> bool:
        """Trace one operation; return whether there are more."""
        operation = OPERATIONS[self.pickled[self.at]]
        if operation is None or operation.name == "STOP":
            return False
        begin, self.at = self.at, self.at + 1
        argument = self._argument(operation.length)
        if special := SPECIAL.get(operation.name):
            special(self, argument, begin)
        elif operation.name in INSIDE:
            count = INSIDE[operation.name]
            free = self.cycles and operation.name == "BUILD"
            self._change(self._to_mark() if count is None else self._pop(count), free)
        elif operation.gives:
            taken = self._to_mark() if operation.marked else []
            taken += self._pop(operation.takes)
            whole = argument[1] and not operation.takes and not operation.marked  # such as a string: it is its argument
            self.stack.append(argument[1] if whole else self._made(taken))
        return True

    def _argument(self, length: int) -> tuple[int, int]:
        """Start and size of the argument of an operation; move past it."""
        begin = self.at
        if length >= 0:
            size = length
        elif length in COUNTS:
            width, signed = COUNTS[length]
            size = int.from_bytes(self.pickled[begin : begin + width], "little", signed=signed)
            begin += width
            if size > len(self.pickled) - begin:
                raise EOFError(f"it claims {size} bytes at byte {begin}, and has {max(0, len(self.pickled) - begin)}")
            if size < 0:
                raise _End
        else:
            end = self.pickled.index(b"\n", begin)
            end = self.pickled.index(b"\n", end + 1) if length == PAIR else end
            size = end + 1 - begin
        self.at = begin + size
        if self.at > len(self.pickled):
            raise _End
        return begin, size

    def _pop(self, count: int) -> list[_Value | int]:
        if not count:
            return []
        taken = self.stack[-count:]
        if len(taken) < count or any(each is MARK for each in taken):
            raise _End
        del self.stack[-count:]
        return taken

    def _to_mark(self) -> list[_Value | int]:
        taken: list[_Value | int] = []
        while (each := self.stack.pop()) is not MARK:
            taken.append(each)
        return taken

    def _made(self, parts: Iterable[_Value | int]) -> _Value:
        """A new container with these parts."""
        made = _Value(1, 0)
        self._fill(made, parts)
        return made

    def _change(self, parts: list[_Value | int], free: bool) -> None:
        into = self.stack[-1]
        if into is MARK or isinstance(into, int):
            raise _End
        if into.used and not free:  # the container that holds it was counted without these values
            raise Refused("the file changes a value that it has used already")
        self._fill(into, parts)

    def _fill(self, into: _Value, parts: Iterable[_Value | int]) -> None:
        for part in parts:
            size = part if isinstance(part, int) else part.size
            into.size += size
            self.work += size
            if isinstance(part, _Value):
                part.used = True
                into.depth = max(into.depth, part.depth + 1)
        if into.depth > DEEPEST:
            raise Refused(f"the file nests values deeper than {DEEPEST}")
        if self.work > EACH * len(self.pickled) + SLACK:
            raise Refused("the file describes far more values than it has bytes")


def _put(state: _Following, argument: tuple[int, int], begin: int) -> None:
    if (index := int(state.pickled[argument[0] : sum(argument)])) > begin:
        raise Refused(f"the file has {begin} bytes up to here, and refers to value number {index}")
    state.memo[index] = state.stack[-1]


def _get(state: _Following, argument: tuple[int, int], begin: int) -> None:
    state.stack.append(state.memo[int(state.pickled[argument[0] : sum(argument)])])


def _framed(state: _Following, argument: tuple[int, int], begin: int) -> None:
    size = int.from_bytes(state.pickled[argument[0] : sum(argument)], "little")
    if size > len(state.pickled) - state.at:
        raise EOFError(f"it claims {size} bytes at byte {state.at}, and has {len(state.pickled) - state.at}")


SPECIAL: dict[str, Callable[[_Following, tuple[int, int], int], object]] = {
    "POP": lambda state, argument, begin: state.stack.pop(),
    "POP_MARK": lambda state, argument, begin: state._to_mark(),
    "DUP": lambda state, argument, begin: state.stack.append(state.stack[-1]),
    "FRAME": _framed,
    "PUT": _put,
    "GET": _get,
}
"""Operations that do more than pop and push."""


QUICK = {
    **{ord(code): (1, "number") for code in "N\x88\x89"},
    **{ord("K"): (2, "number"), ord("M"): (3, "number"), ord("J"): (5, "number"), ord("G"): (9, "number")},
    **{ord("("): (1, "mark"), 0x94: (1, "next"), ord("q"): (2, "put"), ord("r"): (5, "put")},
    **{ord("h"): (2, "get"), ord("j"): (5, "get")},
}
"""The most frequent opcodes -> their length and effect."""


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


class _Matrix:
    """Stand-in for a CSR matrix: its state is a shape and three arrays."""

    state: dict[str, Any]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = state

    def value(self) -> sparse.csr_matrix:
        data, indices, starts = (self.state[name].view(np.ndarray) for name in ("data", "indices", "indptr"))
        matrix = sparse.csr_matrix((data, indices, starts), shape=self.state["_shape"])
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
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
}


def _loaded(file: Path) -> Any:
    try:
        content = needed(file).read_bytes()
        look_through(content)
        return Unpickler(io.BytesIO(content), STANDS_FOR, "data", encoding="latin1").load()
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
