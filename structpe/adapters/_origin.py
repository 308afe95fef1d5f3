"""What the values of an encoding in a graph of PyG were made from, beside them, so that a changed graph is told apart.

Transforms and loaders of PyG number nodes anew, leave some out, add others and change edges. They take along what has a
row for each node. So ``pe_NAME_of`` has one, all of whole numbers: the number of the node in the graph that was
encoded, from 1, as PyG fills up with 0; and of this graph, alike in all rows, its size, the encoding, its edges,
whether their order counts, and the number that stands for UNREACHABLE.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from structpe.encodings.base import UNREACHABLE, Encoding
from structpe.errors import EncodingError

__all__ = ["Origin", "beyond", "is_of", "marked", "origin"]

SIZE, ENCODING, EDGES, ORDERED, BEYOND = range(1, 6)
"""Columns of ``pe_NAME_of``; the first one has the numbers of nodes."""


def beyond(encoding: Encoding, values: Tensor, size: int) -> int:
    """The whole number that stands for UNREACHABLE in a graph of this size: one more than any distance can be."""
    max_distance = encoding.options().get("max_distance")
    known = values[values != UNREACHABLE]
    return max(size if max_distance is None else max_distance + 1, int(known.abs().max()) + 1 if known.numel() else 0)


def marked(values: Tensor, number: int) -> Tensor:
    """Values with a number in place of UNREACHABLE; real ones with infinity."""
    return values.masked_fill(values == UNREACHABLE, torch.inf if values.is_floating_point() else number)


def origin(encoding: Encoding, data: Any, values: Tensor, number: int) -> Tensor:
    """``pe_NAME_of`` of a graph that is encoded.

    Args:
        encoding: the encoding.
        data: the graph.
        values: the tensor of its values.
        number: stands for UNREACHABLE.
    """
    edges, size = _edges(data).cpu(), int(data.num_nodes)
    numbers = torch.arange(1, size + 1)
    # Values that are as many as the edges PyG takes for those of edges: it sorts them alike, or leaves some out.
    ordered = encoding.arity == 2 and len(values) == edges.shape[1]
    ((in_any_order, in_order),) = _sums(edges, numbers, torch.zeros_like(numbers), 1).tolist()
    whole = torch.tensor([size, _digest(encoding), in_order if ordered else in_any_order, ordered, number])
    return torch.cat([numbers[:, None], whole.expand(size, -1)], dim=1)


def is_of(encoding: Encoding, rows: Tensor) -> bool:
    """Whether ``pe_NAME_of`` is of this encoding, with these options."""
    return bool((rows[:, ENCODING] == _digest(encoding)).all())


class Origin:
    """What a batch says of the values of an encoding.

    Args:
        encoding: the encoding that is asked for.
        name: of its values.
        batch: the batch.
        sizes: of its graphs.

    Raises:
        EncodingError: nothing says what the values were made from, they are those of another encoding, or nodes have
            been added.
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
        """Check that the graphs are those whose pairs the values are of.

        Args:
            any_edges: whether edges may have changed since.

        Raises:
            EncodingError: nodes have been left out or numbered otherwise, or edges have changed.
        """
        first = (self.sizes.cumsum(0) - self.sizes)[self.graph]
        same = self.rows[:, 0] == torch.arange(len(self.rows)) - first + 1
        if not bool((same & (self.rows[:, SIZE] == self.sizes[self.graph])).all()):
            raise self._changed("nodes have been left out or numbered otherwise")
        sums = _sums(_edges(self.batch).cpu(), self.rows[:, 0], self.graph, len(self.sizes))[self.graph]
        ordered = self.rows[:, ORDERED] == 1
        kept = torch.where(ordered, sums[:, 1], sums[:, 0]) == self.rows[:, EDGES]
        if not bool((kept | (~ordered & any_edges)).all()):
            raise self._changed("edges have changed")

    def unmarked(self, values: Tensor) -> Tensor:
        """Values of all pairs with UNREACHABLE where :func:`marked` has put something else."""
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
    """(2, E) the edges of a graph or batch, also if ``ToSparseTensor`` has moved them."""
    if data.edge_index is None and "adj_t" in data:
        from torch_geometric.utils import to_edge_index

        found: Tensor = to_edge_index(data.adj_t)[0]
        return found.flip(0)
    edges: Tensor = data.edge_index
    return edges


def _sums(edges: Tensor, numbers: Tensor, graph: Tensor, count: int) -> Tensor:
    """(count, 2) of each graph a hash of its edges in any order, and one of them in this order."""
    of = graph[edges[0]]
    per_graph = torch.bincount(of, minlength=count)
    place = torch.arange(len(of)) - (per_graph.cumsum(0) - per_graph)[of] + 1
    source, target = numbers[edges[0]], numbers[edges[1]]
    each = torch.stack([_mixed(source, target, torch.zeros_like(place)), _mixed(source, target, place)], dim=1)
    return torch.zeros(count, 2, dtype=torch.int64).index_add_(0, of, each)


def _mixed(source: Tensor, target: Tensor, place: Tensor) -> Tensor:
    """A number that depends on all three; sums and products of int64 wrap around."""
    found = source * 0x1E3779B97F4A7C15 + target * 0x3F58476D1CE4E5B9 + place * 0x14D049BB133111EB
    for factor in (0x3F51AFD7ED558CCD, 0x44CEB9FE1A85EC53):
        found = (found ^ (found >> 32)) * factor
    return found ^ (found >> 32)


@lru_cache(maxsize=64)
def _digest(encoding: Encoding) -> int:
    """Of an encoding with its options and versions, 63 bits."""
    whole = f"{encoding!r} {sorted(encoding.versions().items())}".encode()
    return int.from_bytes(hashlib.sha256(whole).digest()[:8], "big") >> 1
