"""Encodings as tensors of graphs and batches, and the origin of their values.

Transforms and loaders of PyG renumber, remove and add nodes, and change edges. They keep attributes with a row for each
node. ``pe_NAME_of`` is such an attribute, with integers: the number of the node in the encoded graph, from 1, as PyG
fills with 0; and, the same in all rows, the size of that graph, a digest of the encoding, for pairs a hash of the
edges (0 for nodes), whether their order matters, and the number that stands for UNREACHABLE.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from structpe.computed import computed
from structpe.data.chunks import columns
from structpe.data.store import write
from structpe.encodings.base import UNREACHABLE, Asked, Column, Encoded, Encoding, as_encoding
from structpe.errors import EncodingError, PositionError
from structpe.structure import Ids, Structure
from structpe.system.workers import workers

__all__ = [
    "Asked",
    "EdgeHashes",
    "Origin",
    "Transform",
    "attribute",
    "beyond",
    "chosen",
    "encoded",
    "is_of",
    "listed",
    "marked",
    "origin",
    "restored",
    "values",
]


SIZE, ENCODING, EDGES, ORDERED, BEYOND = range(1, 6)
"""Columns of ``pe_NAME_of``; column 0 has the numbers of nodes."""


def beyond(encoding: Encoding, values: Tensor, size: int) -> int:
    """The integer that stands for UNREACHABLE in a graph of this size: one more than the largest possible distance."""
    max_distance = encoding.options().get("max_distance")
    known = values[values != UNREACHABLE]
    return max(size if max_distance is None else max_distance + 1, int(known.abs().max()) + 1 if known.numel() else 0)


def marked(values: Tensor, number: int) -> Tensor:
    """Values with a number instead of UNREACHABLE; for real numbers, infinity."""
    return values.masked_fill(values == UNREACHABLE, torch.inf if values.is_floating_point() else number)


def origin(encoding: Encoding, edges: EdgeHashes, values: Tensor, number: int) -> Tensor:
    """``pe_NAME_of`` of an encoded graph.

    Args:
        encoding: the encoding.
        edges: of the graph.
        values: the tensor of its values.
        number: the number that stands for UNREACHABLE.
    """
    # If there are as many values as edges, PyG takes them for values of edges, and sorts or removes them together.
    ordered = encoding.arity == 2 and len(values) == edges.count
    edges_hash = edges.hashes[int(ordered)] if encoding.arity == 2 else 0
    rows = np.empty((edges.nodes, 6), dtype=np.int64)
    rows[:, 0] = np.arange(1, edges.nodes + 1)
    rows[:, 1:] = edges.nodes, _digest(encoding), edges_hash, ordered, number
    return torch.from_numpy(rows)


class EdgeHashes:
    """The edges of a graph of PyG, by hashes, which are computed when they are asked for.

    Args:
        data: the graph.
    """

    def __init__(self, data: Any) -> None:
        self._data, self.nodes = data, int(data.num_nodes)

    @computed
    def _edges(self) -> Tensor:
        return _edges(self._data)

    @property
    def count(self) -> int:
        """Number of edges."""
        return self._edges.shape[1]

    @computed
    def hashes(self) -> list[int]:
        """One that does not depend on the order of the edges, and one that does."""
        edges = np.add(self._edges.cpu().numpy(), 1, dtype=np.int64)
        found: list[int] = _hashes(edges[0], edges[1], np.arange(1, self.count + 1)).sum(axis=1).tolist()
        return found


def is_of(encoding: Encoding, rows: Tensor) -> bool:
    """Whether ``pe_NAME_of`` belongs to this encoding, with these options."""
    return bool((rows[:, ENCODING] == _digest(encoding)).all())


class Origin:
    """The origin of the values of an encoding in a batch.

    Args:
        encoding: the encoding.
        name: name of its values.
        batch: the batch.
        sizes: sizes of its graphs.

    Raises:
        EncodingError: the values belong to another encoding, or nodes have been added.
    """

    def __init__(self, encoding: Encoding, name: str, batch: Any, sizes: Sequence[int]) -> None:
        self.encoding, self.name, self.batch = encoding, name, batch
        self.sizes = torch.tensor(sizes)
        rows: Tensor = batch[f"{name}_of"]
        if len(rows) != int(self.sizes.sum()) or bool((rows[:, 0] < 1).any()):
            raise self._changed("nodes have been added")
        if not is_of(encoding, rows):
            raise EncodingError(
                f"{name} was made by another encoding than {encoding!r}, such as one with other options, or by another "
                f"version of it; apply AddEncoding({encoding!r}), whose values replace it"
            )
        self.rows = rows.cpu()
        self.graph = torch.arange(len(sizes)).repeat_interleave(self.sizes)

    def check_pairs(self, any_edges: bool) -> None:
        """Check that the graphs have not changed since their pairs were encoded.

        Args:
            any_edges: whether edges may have changed.

        Raises:
            EncodingError: nodes have been removed or renumbered, or edges have changed.
        """
        first = (self.sizes.cumsum(0) - self.sizes)[self.graph]
        same = self.rows[:, 0] == torch.arange(len(self.rows)) - first + 1
        if not bool((same & (self.rows[:, SIZE] == self.sizes[self.graph])).all()):
            raise self._changed("nodes have been left out or numbered otherwise")
        edges = _edges(self.batch).cpu().numpy()
        sums = torch.from_numpy(_sums(edges, self.rows[:, 0].numpy(), self.graph.numpy(), len(self.sizes)))[self.graph]
        ordered = self.rows[:, ORDERED] == 1
        kept = torch.where(ordered, sums[:, 1], sums[:, 0]) == self.rows[:, EDGES]
        if not bool((kept | (~ordered & any_edges)).all()):
            raise self._changed("edges have changed")

    def unmarked(self, values: Tensor) -> Tensor:
        """Values of all pairs with UNREACHABLE; the inverse of :func:`marked`."""
        if values.is_floating_point():
            return values.masked_fill(values.isinf(), UNREACHABLE)
        starts = self.sizes.cumsum(0) - self.sizes
        numbers = self.rows[starts, BEYOND].repeat_interleave(self.sizes**2).to(values.device)
        return torch.where(values == numbers, UNREACHABLE, values)

    def _changed(self, what: str) -> EncodingError:
        return EncodingError(
            f"{self.name} was made from another graph: {what} since, by a transform, a loader or Data.subgraph, and "
            f"values of pairs do not follow; apply AddEncoding({self.encoding!r}) after what changes the graph, as the "
            f"last of a Compose"
        )


def _edges(data: Any) -> Tensor:
    """(2, E) the edges of a graph or batch, also after ``ToSparseTensor``."""
    if data.edge_index is None and "adj_t" in data:
        from torch_geometric.utils import to_edge_index

        found: Tensor = to_edge_index(data.adj_t)[0]
        return found.flip(0)
    edges: Tensor = data.edge_index
    return edges


def _sums(edges: Ids, numbers: Ids, graph: Ids, count: int) -> Ids:
    """(count, 2) a hash of the edges of each graph in any order, and a hash in this order."""
    of = graph[edges[0]]
    per_graph = np.bincount(of, minlength=count)
    place = np.arange(len(of)) - (per_graph.cumsum() - per_graph)[of] + 1
    result = np.zeros((count, 2), dtype=np.int64)
    np.add.at(result, of, _hashes(numbers[edges[0]], numbers[edges[1]], place).T)
    return result


def _hashes(source: Ids, target: Ids, place: Ids) -> Ids:
    """(2, e) a hash of two numbers, and one of three; sums and products of int64 wrap around."""
    found = np.empty((2, len(source)), dtype=np.int64)
    found[0] = source * 0x1E3779B97F4A7C15 + target * 0x3F58476D1CE4E5B9
    found[1] = found[0] + place * 0x14D049BB133111EB
    for factor in (0x3F51AFD7ED558CCD, 0x44CEB9FE1A85EC53):
        found ^= found >> 32
        found *= factor
    found ^= found >> 32
    return found


@lru_cache(maxsize=64)
def _digest(encoding: Encoding) -> int:
    """A digest of an encoding with its options and versions, 63 bits."""
    whole = f"{encoding!r} {sorted(encoding.versions().items())}".encode()
    return int.from_bytes(hashlib.sha256(whole).digest()[:8], "big") >> 1


class Transform(ABC):
    """A transform that adds encodings to the graphs of a library.

    Args:
        encodings: encodings, their names, or mappings with ``name`` and options.

    Raises:
        EncodingError: no encoding is given, two have one name, one has sequences, which cannot be batched, or an option
            is given without its encoding.
        PositionError: an encoding or an option does not exist.
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
        """Copies of all graphs with the encodings, which are computed together.

        Args:
            graphs: graphs of the library.
            store: folder of a store (:mod:`structpe.data.store`) of these graphs and encodings, which is read if it
                exists and written otherwise.
            jobs: number of processes that encode.

        Raises:
            EncodingError: a graph lacks what an encoding needs.
            StructureError: nodes of a graph have several units.
            StoreError: the folder holds something else.
        """


def chosen(asked: Sequence[Asked]) -> tuple[Encoding, ...]:
    """Build the encodings, and check that their attributes have different names.

    Raises:
        EncodingError: no encoding is given, two share a name, or a tensor cannot hold the values of one.
        PositionError: an encoding or an option does not exist.
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
    """The name of the tensor of an encoding."""
    return f"pe_{encoding.name.replace('-', '_')}"


def encoded(
    structures: Sequence[Structure], encodings: Sequence[Encoding], store: str | Path | None, jobs: int
) -> Mapping[Encoding, Column | Sequence[Encoded]]:
    """Encode structures.

    Args:
        structures: structures whose nodes are units.
        encodings: fitted, if they need to be.
        store: folder of a store, or None.
        jobs: number of processes that encode.

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
    """The values (n, ...) of nodes, (n n, ...) of all pairs, row by row, or (e, ...) of listed pairs."""
    if found.index is None:
        return torch.from_numpy(np.array(found.values))
    if found.listed is not None:
        return torch.from_numpy(np.array(found.distinct[found.index]))
    pairs = found.pairs()
    return torch.from_numpy(np.array(pairs).reshape(-1, *pairs.shape[2:]))


def listed(found: Encoded) -> Tensor | None:
    """(2, e) the listed pairs, queries first; None for values of all pairs or of nodes."""
    if found.listed is None:
        return None
    return torch.from_numpy(np.ascontiguousarray(found.listed.T).astype(np.int64))


def restored(encoding: Encoding, values: Tensor, index: Tensor | None, sizes: Sequence[int]) -> list[Encoded]:
    """The values of each graph of a batch.

    Args:
        encoding: the encoding.
        values: the values of all graphs, one after the other.
        index: (2, e) the pairs, queries first, with the numbers of nodes in the batch; None for all pairs, row by row.
        sizes: sizes of the graphs.

    Raises:
        EncodingError: a pair has no value, or several.
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
    """The permutation that sorts all pairs row by row."""
    order: NDArray[np.int64] = np.lexsort((pairs[1], pairs[0]))
    if len(order) != np.square(sizes).sum() or not np.diff(pairs[:, order]).any(axis=0).all():
        raise EncodingError(
            f"encoding {encoding.name!r} has a value for each pair of nodes, and the graph has {len(order)}: nodes or "
            f"edges have been left out or added since; apply AddEncoding({encoding!r}) after what changes the graph"
        )
    return order
