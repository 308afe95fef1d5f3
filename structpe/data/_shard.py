"""A shard: the encoded arrays of some structures in one safetensors file.

::

    <i>.<part>.<dtype>    (elements,) the arrays of encoding i that have this dtype, one after the other
    <i>.<part>.at         (structures, 2 + axes) per structure: dtype, as its place in DTYPES; first element; shape
                          part: values; index for encodings of pairs; listed and units, their number, for sparse ones
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from structpe.encodings.base import Encoded
from structpe.errors import StoreError

__all__ = ["DTYPES", "Shard", "pack"]

DTYPES = (
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "float64"),
)

Array = NDArray[Any]

_PARTS = ("values", "index", "listed", "units")


def pack(encoded: Sequence[Sequence[Encoded]]) -> dict[str, Array]:
    """The tensors of a shard, from the encoded values of its structures."""
    tensors: dict[str, Array] = {}
    for i, each in enumerate(encoded):
        for part in _PARTS:
            if some := [np.asarray(array) for e in each if (array := getattr(e, part)) is not None]:
                tensors |= _pack(some, f"{i}.{part}")
    return tensors


class Shard:
    """A shard on disk. Only requested arrays are read.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self._file = _opened(path)
        self._names = frozenset(self._file.keys())
        self._at = {name: self._file.get_tensor(name) for name in self._names if name.endswith(".at")}

    def encoded(self, encoding: int, row: int) -> Encoded:
        """The values of an encoding, by number, for one structure."""
        parts = [part for part in _PARTS if f"{encoding}.{part}.at" in self._at]
        of: dict[str, Any] = {part: self._array(f"{encoding}.{part}", row) for part in parts}
        if "units" in of:
            of["units"] = int(of["units"])
        return Encoded(**of)

    def _array(self, name: str, row: int) -> Array:
        dtype, first, *shape = self._at[f"{name}.at"][row].tolist()
        count = int(np.prod(shape))
        if not count:  # no pair is listed; an array that is empty as a whole cannot be sliced
            return np.zeros(shape, dtype=DTYPES[dtype])
        flat: Array = self._file.get_slice(f"{name}.{DTYPES[dtype]}")[first : first + count]
        return flat.reshape(shape)


def _opened(path: Path) -> Any:  # untyped upstream
    return safe_open(path, framework="np")


def _pack(arrays: Sequence[Array], name: str) -> dict[str, Array]:
    parts: dict[str, list[Array]] = {}
    ends: dict[str, int] = {}
    at = []
    for array in arrays:
        dtype = array.dtype.name
        if dtype not in DTYPES or array.ndim != arrays[0].ndim:
            raise StoreError(
                f"a store holds arrays of {', '.join(DTYPES)}, of one encoding all with as many axes; one has dtype "
                f"{dtype} and {array.ndim} axes, the first has {arrays[0].ndim}"
            )
        at.append([DTYPES.index(dtype), ends.get(dtype, 0), *array.shape])
        parts.setdefault(dtype, []).append(array.reshape(-1))
        ends[dtype] = ends.get(dtype, 0) + array.size
    return {f"{name}.at": np.array(at)} | {f"{name}.{dtype}": np.concatenate(some) for dtype, some in parts.items()}
