"""Arrays pickled by NumPy and SciPy, also by Python 2, read without running anything that a file names.

:data:`STANDS_FOR` maps the few names that such files need to safe classes; all other names are refused.
"""

from __future__ import annotations

import io
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from structpe.datasets.files.arrays import needed
from structpe.datasets.files.opcodes import look_through
from structpe.datasets.files.unpickling import Array, Empty, Refused, Type, Unpickler
from structpe.errors import ReadError, reason_of

__all__ = ["pickled_array", "pickled_lists", "pickled_matrix", "pickled_numbers"]

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
