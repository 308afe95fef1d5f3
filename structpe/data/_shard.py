"""A shard: columns of some structures in one safetensors file, read by mapping it into memory.

::

    <i>.<part>    the array of this name of the column of encoding i; parts that the column lacks are absent. Of
                  symmetric pairs, ``index`` has the lower triangle
    digests       (n, 16) the digest of each structure
    names         the names of the structures, one after the other, in UTF-8
    name_ends     (n,) where each name ends
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._encoded import Column
from structpe.encodings._halves import halves
from structpe.errors import StoreError

__all__ = ["DTYPES", "Shard", "mapped", "named", "pack"]

DTYPES = {
    **{"BOOL": "bool", "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64"},
    **{"I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64", "F16": "float16", "F32": "float32"},
    "F64": "float64",
}
"""The dtypes of a shard, by their name in safetensors files."""

Array = NDArray[Any]

_PARTS = ("sizes", "values", "index", "starts", "rows", "row_starts", "listed")
_HEADER = 100_000_000  # bytes, the limit of safetensors itself


def pack(columns: Sequence[Column]) -> dict[str, Array]:
    """The tensors of a shard, from a column per encoding.

    Raises:
        StoreError: values have a dtype that the format lacks.
    """
    tensors: dict[str, Array] = {}
    for i, column in enumerate(map(_halved, columns)):
        for part in _PARTS:
            if (array := getattr(column, part)) is not None:
                if array.dtype.name not in DTYPES.values():
                    raise StoreError(f"a store holds arrays of {', '.join(DTYPES.values())}; one is of {array.dtype}")
                tensors[f"{i}.{part}"] = np.ascontiguousarray(array)
    return tensors


def _halved(column: Column) -> Column:
    if column.index is None or column.listed is not None:
        return column
    index, starts = halves(column.index, column.starts, column.sizes)
    return replace(column, index=index, starts=starts)


def named(names: Sequence[str], digests: Array) -> dict[str, Array]:
    """The tensors of a shard that tell its structures apart.

    Args:
        names: of the structures.
        digests: (n, 16) of the structures.
    """
    texts = [name.encode("utf-8", "surrogatepass") for name in names]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    return {"digests": digests, "names": np.frombuffer(b"".join(texts), dtype=np.uint8), "name_ends": ends}


def mapped(path: Path) -> dict[str, Array]:
    """The arrays of a safetensors file, by name. Only what is read of them comes into memory, and leaves it again.

    Raises:
        ValueError: the file is not one.
    """
    # Copy on write: PyTorch warns of arrays that cannot be written to. What is written stays in this process.
    whole = np.memmap(path, dtype=np.uint8, mode="c")
    length = int(whole[:8].view("<u8")[0])
    if not 0 < length <= min(_HEADER, len(whole) - 8):
        raise ValueError(f"{path} begins with a header of {length} bytes and has {len(whole)}")
    header = json.loads(whole[8 : 8 + length].tobytes())
    data = whole[8 + length :].view(np.ndarray)
    return {name: _array(data, entry) for name, entry in header.items() if name != "__metadata__"}


class Shard:
    """A shard on disk.

    Args:
        path: the file.

    Raises:
        ValueError: the file is not a shard.
    """

    def __init__(self, path: Path) -> None:
        self._arrays = mapped(path)
        self.digests: Array = self._arrays["digests"]

    def column(self, encoding: int) -> Column:
        """The column of an encoding, by number."""
        parts: dict[str, Any] = {part: self._arrays.get(f"{encoding}.{part}") for part in _PARTS}
        return Column(**parts)

    def name(self, row: int) -> str:
        """The name of a structure."""
        ends = self._arrays["name_ends"]
        text = self._arrays["names"][int(ends[row - 1]) if row else 0 : int(ends[row])]
        return text.tobytes().decode("utf-8", "surrogatepass")


def _array(data: Array, entry: dict[str, Any]) -> Array:
    first, last = entry["data_offsets"]
    return data[first:last].view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
