"""Encodings as tensors of single graphs, and back from those of a batch: what PyG and DGL share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from structpe.data.chunks import columns
from structpe.data.store import write
from structpe.encodings.base import Asked, Column, Encoded, Encoding, as_encoding
from structpe.errors import EncodingError, PositionError
from structpe.structure import Structure
from structpe.workers import workers

__all__ = ["Asked", "Transform", "attribute", "chosen", "encoded", "listed", "restored", "values"]


class Transform(ABC):
    """A transform that adds encodings to the graphs of a library.

    Args:
        encodings: encodings, their names, or mappings with ``name`` and options.

    Raises:
        EncodingError: none, two of one name, one of sequences, which cannot be batched, or an option without encoding.
        PositionError: there is no encoding of a name, or no such option.
    """

    def __init__(self, *encodings: Asked, **options: Any) -> None:
        if options:
            first = repr(encodings[0]) if encodings else "'random-walk'"
            given = ", ".join(f"{name!r}: {value!r}" for name, value in options.items())
            raise EncodingError(
                f"AddEncoding takes options with their encoding: AddEncoding({{'name': {first}, {given}}})"
            )
        self.encodings = chosen(encodings)

    def __call__(self, graph: Any) -> Any:
        """A copy of a graph with the encodings."""
        return self.many([graph])[0]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.encodings))})"

    @abstractmethod
    def many(self, graphs: Sequence[Any], store: str | Path | None = None, jobs: int = 1) -> list[Any]:
        """Copies of all graphs with the encodings, encoded together.

        Args:
            graphs: of the library.
            store: folder of a store (:mod:`structpe.data.store`), which is written, or read if it is there already and
                of the same graphs and encodings.
            jobs: processes that encode.

        Raises:
            EncodingError: a graph lacks what an encoding needs.
            StructureError: nodes of a graph have several units.
            StoreError: the folder holds something else.
        """


def chosen(asked: Sequence[Asked]) -> tuple[Encoding, ...]:
    """The encodings, whose attributes must have different names.

    Raises:
        EncodingError: there is none, two have one name, or one has values that no tensor holds.
        PositionError: there is no encoding of a name, or no such option.
    """
    made = tuple(as_encoding(each, error=PositionError) for each in asked)
    names = [attribute(each) for each in made]
    if not made or len(set(names)) < len(names):
        raise EncodingError(f"AddEncoding takes encodings of different names; given are {list(asked)}")
    if ragged := [each.name for each in made if each.ragged]:
        raise EncodingError(
            f"encoding {ragged[0]!r} gives sequences of different lengths, which no tensor of a graph holds; call "
            f"structpe.encode for a batch"
        )
    return made


def attribute(encoding: Encoding) -> str:
    """The name of its tensor."""
    return f"pe_{encoding.name.replace('-', '_')}"


def encoded(
    structures: Sequence[Structure], encodings: Sequence[Encoding], store: str | Path | None, jobs: int
) -> Mapping[Encoding, Column | Sequence[Encoded]]:
    """The values of all structures.

    Args:
        structures: whose nodes are units.
        encodings: fitted, if they need to be.
        store: folder that keeps the values, or has them already; None for none.
        jobs: processes that encode.

    Raises:
        EncodingError: a structure lacks what an encoding needs.
        StructureError: nodes have several units.
        StoreError: the folder holds something else.
    """
    if odd := [each for each in structures if each.unit_count != each.size]:
        raise odd[0].error("its nodes have several units, and there are rows for nodes only")
    if store is None:
        return columns(structures, encodings, jobs)
    with workers(jobs) as executor:
        kept = write(store, structures, encodings, executor=executor)
    return {encoding: kept.of(encoding) for encoding in encodings}


def values(found: Encoded) -> Tensor:
    """(n, ...) of nodes, (n n, ...) of all pairs, row by row, or (e, ...) of the listed pairs."""
    if found.index is None:
        return torch.from_numpy(np.array(found.values))
    if found.listed is not None:
        return torch.from_numpy(np.array(found.distinct[found.index]))
    pairs = found.pairs()
    return torch.from_numpy(np.array(pairs).reshape(-1, *pairs.shape[2:]))


def listed(found: Encoded) -> Tensor | None:
    """(2, e) the listed pairs, queries first; None if all pairs have a value, or nodes."""
    if found.listed is None:
        return None
    return torch.from_numpy(np.ascontiguousarray(found.listed.T).astype(np.int64))


def restored(encoding: Encoding, values: Tensor, index: Tensor | None, sizes: Sequence[int]) -> list[Encoded]:
    """The values of each graph of a batch.

    Args:
        encoding: the encoding.
        values: those of all graphs, one after the other.
        index: (2, e) the pairs, queries first, with the numbers of nodes in the batch; None: all, row by row.
        sizes: of the graphs.

    Raises:
        EncodingError: not every pair has one value.
    """
    array, ends = values.cpu().numpy(), list(pairwise(np.cumsum([0, *sizes]).tolist()))
    if encoding.arity == 1:
        return [Encoded(array[start:stop]) for start, stop in ends]
    if encoding.sparse:
        assert index is not None
        pairs = index.cpu().numpy()
        of = [(start, stop, (pairs[0] >= start) & (pairs[0] < stop)) for start, stop in ends]
        return [Encoded.of_list(pairs[:, mine].T - start, array[mine], stop - start) for start, stop, mine in of]
    if index is not None:
        array = array[_by_rows(encoding, index.cpu().numpy(), sizes)]
    parts = zip(np.split(array, np.cumsum(np.square(sizes))[:-1]), sizes, strict=True)
    if array.dtype.kind in "iu" and array.ndim == 1:
        return [Encoded.of_pairs(part.reshape(n, n)) for part, n in parts]
    return [Encoded(part, np.arange(n * n).reshape(n, n)) for part, n in parts]


def _by_rows(encoding: Encoding, pairs: NDArray[np.int64], sizes: Sequence[int]) -> NDArray[np.int64]:
    """The order in which all pairs are row by row."""
    order: NDArray[np.int64] = np.lexsort((pairs[1], pairs[0]))
    if len(order) != np.square(sizes).sum() or not np.diff(pairs[:, order]).any(axis=0).all():
        raise EncodingError(
            f"encoding {encoding.name!r} has a value for each pair of nodes, and the graph has {len(order)}: nodes or "
            f"edges have been left out or added since; apply AddEncoding({encoding!r}) after what changes the graph"
        )
    return order
