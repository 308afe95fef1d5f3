"""What growing structures share: positions of their newest nodes, and matrices that grow by doubling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from structpe.encodings._encoded import same_shape
from structpe.encodings.base import UNREACHABLE, Encoding
from structpe.errors import EncodingError
from structpe.positions import Positions
from structpe.quantities import Lookup

__all__ = ["Growing", "Matrix", "clipped", "newest", "unknown_encoding"]


class Growing(Protocol):
    """A structure that grows node by node."""

    @property
    def size(self) -> int:
        """n, the number of nodes."""
        ...

    def values(self, encoding: Encoding) -> NDArray[Any]:
        """(n, ...) the values of an encoding of nodes."""
        ...

    def row(self, encoding: Encoding) -> NDArray[Any]:
        """(n, ...) the values of the pairs whose query is the newest node, for each node as the key."""
        ...


def newest(growing: Sequence[Growing], encodings: Iterable[Encoding]) -> Positions:
    """Positions of one step of a decoder for each structure: its newest node is the query, all its nodes are keys.

    Args:
        growing: b structures of the same number n of nodes.
        encodings: those of the position model.

    Returns:
        Values (b, n, ...) of nodes, and for pairs look-ups with an index (b, 1, n).

    Raises:
        EncodingError: the structures differ in size, there is none, or they have no such encoding.
    """
    sizes = sorted({each.size for each in growing})
    if len(sizes) != 1:
        raise EncodingError(f"a step takes structures of one size, one at least; these have {sizes or 'no'} nodes")
    made: dict[Encoding, Tensor | Lookup] = {}
    for encoding in encodings:
        if encoding.arity == 1:
            made[encoding] = torch.from_numpy(np.stack([each.values(encoding) for each in growing]))
        else:
            rows = np.concatenate(same_shape([each.row(encoding) for each in growing]))
            table, index = np.unique(rows, axis=0, return_inverse=True)
            of_pairs = torch.from_numpy(index.reshape(len(growing), 1, sizes[0]))
            made[encoding] = Lookup(torch.from_numpy(table), torch.arange(len(table))[None], of_pairs)
    return Positions(made, slice(sizes[0] - 1, sizes[0]))


class Matrix:
    """A matrix that grows by doubling, so that adding rows and columns copies each number a few times in all.

    Args:
        dtype: of the numbers.
    """

    def __init__(self, dtype: Any) -> None:
        self._numbers: NDArray[Any] = np.zeros((16, 16), dtype=dtype)

    def of(self, size: int) -> NDArray[Any]:
        """(size, size) the first rows and columns, to read and to write; what was never written is 0."""
        had = self._numbers
        if size > len(had):
            self._numbers = np.zeros((1 << (size - 1).bit_length(),) * 2, dtype=had.dtype)
            self._numbers[: len(had), : len(had)] = had
        return self._numbers[:size, :size]


def clipped(distances: NDArray[np.int64], limit: int | None) -> NDArray[np.int64]:
    """Distances of at most the limit, to either side; UNREACHABLE remains."""
    if limit is None:
        return distances
    return np.where(distances == UNREACHABLE, distances, distances.clip(-limit, limit))


def unknown_encoding(encoding: Encoding, structure: str, known: Sequence[type[Encoding]]) -> EncodingError:
    """The error for an encoding that a growing structure does not have."""
    names = ", ".join(repr(each.name) for each in known)
    kind = "nodes" if known and known[0].arity == 1 else "pairs"
    return EncodingError(
        f"encoding {encoding.name!r} is not made node by node for a growing {structure}; of {kind} it has {names}. "
        f"Encode the whole instead: encoding.one(growing.structure)"
    )
