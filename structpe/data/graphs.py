"""Batches of graphs for prediction: nodes of all graphs one after the other, and buckets of them for attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from structpe.data.buckets import cut
from structpe.data.encode import join
from structpe.data.neighbours import Directions, Neighbours
from structpe.encodings.base import Encoded, Encoding
from structpe.positions.base import Positions
from structpe.structure import Structure

__all__ = ["Bucket", "Buckets", "GraphBatch", "GraphExample", "Layout", "collate"]


@dataclass(frozen=True, eq=False)
class GraphExample:
    """A graph made ready for batches, once for a whole training.

    Attributes:
        x: (n, k) features of nodes; None where there are none.
        directions: its messages.
        edge_x: (E, k) features of each message's edge; None where there are none.
        encoded: what the encodings say.
        target: of the graph, or of each of its nodes.
        size: n, the number of nodes.
        counted: (n,) nodes whose target counts; None where a graph has one target.
        root: node that reads out the graph, where one is asked to.
    """

    x: NDArray[Any] | None
    directions: Directions
    edge_x: NDArray[Any] | None
    encoded: Mapping[Encoding, Encoded]
    target: NDArray[Any]
    size: int
    counted: NDArray[np.bool_] | None = None
    root: int = 0

    @classmethod
    def of(
        cls,
        structure: Structure,
        encoded: Mapping[Encoding, Encoded],
        target: NDArray[Any],
        counted: NDArray[np.bool_] | None = None,
    ) -> GraphExample:
        """Its features are those named ``x`` and ``edge_x``. Units are its nodes."""
        x, edge_x = structure.features.get("x"), structure.features.get("edge_x")
        directions = Directions.of(structure)
        return cls(
            x,
            directions,
            None if edge_x is None else edge_x[directions.edge],
            encoded,
            target,
            structure.size,
            counted,
            structure.root or 0,
        )


@dataclass(frozen=True, eq=False)
class Bucket:
    """Some graphs of a batch, padded to the largest of them.

    Attributes:
        shape: b graphs, n places for nodes of each.
        positions: what the encodings say of them.
        present: (b, n) which places hold a node; None where all do.
    """

    shape: tuple[int, int]
    positions: Positions
    present: Bool[Tensor, "b n"] | None = None

    @classmethod
    def of(cls, sizes: Sequence[int], encoded: Mapping[Encoding, Sequence[Encoded]]) -> Bucket:
        """Graphs of these sizes, and what the encodings say of each."""
        positions = join({encoding: list(each) for encoding, each in encoded.items()})
        b, n = len(sizes), max(sizes)
        full = min(sizes) == n
        return cls((b, n), positions, None if full else torch.arange(n)[None] < torch.tensor(sizes)[:, None])

    @property
    def mask(self) -> tuple[Bool[Tensor, "b 1 1 n"], ...]:
        """What hides padding from attention; nothing where there is none."""
        return () if self.present is None else (self.present[:, None, None, :],)

    def to(self, device: torch.device) -> Bucket:
        """The same on another device."""
        return Bucket(self.shape, self.positions.to(device), None if self.present is None else self.present.to(device))


@dataclass(frozen=True, eq=False)
class Buckets(Sequence[Bucket]):
    """The graphs of a batch of N nodes, in order, in buckets that have P places together.

    Attributes:
        each: the buckets.
        places: (P,) the node at each place, 0 where it is padding; None where no graph is padded, so that the nodes lie
            in their places already.
        where: (N,) the place of each node; None likewise.
    """

    each: tuple[Bucket, ...]
    places: Int[Tensor, "P"] | None = None
    where: Int[Tensor, "N"] | None = None

    @classmethod
    def of(cls, each: Sequence[Bucket]) -> Buckets:
        """These, and where in them the nodes are."""
        if all(bucket.present is None for bucket in each):
            return cls(tuple(each))
        present = [torch.ones(b.shape, dtype=torch.bool) if b.present is None else b.present for b in each]
        where = torch.cat([p.flatten() for p in present]).nonzero().squeeze(1)
        places = torch.zeros(sum(p.numel() for p in present), dtype=torch.long)
        places[where] = torch.arange(len(where))
        return cls(tuple(each), places, where)

    def __getitem__(self, number: Any) -> Any:
        return self.each[number]

    def __len__(self) -> int:
        return len(self.each)

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Numbers of graphs and of places for the nodes of each."""
        return tuple(bucket.shape for bucket in self.each)

    @property
    def nodes(self) -> int:
        """N."""
        return sum(b * n for b, n in self.shapes) if self.where is None else len(self.where)

    def cut(self, count: int) -> tuple[Buckets, Buckets]:
        """The first buckets, so many, and the others."""
        return (
            (self, Buckets(()))
            if count == len(self)
            else (Buckets.of(self.each[:count]), Buckets.of(self.each[count:]))
        )

    def rows(self, x: Tensor) -> list[Tensor]:
        """(N, d) to (b, n, d) of each bucket; what padding holds is no one's, and has no gradient."""
        if self.places is not None and self.where is not None:
            x = _moved_rows(x, self.places, self.where)
        parts = torch.split(x, [b * n for b, n in self.shapes])
        return [part.view(*bucket.shape, -1) for part, bucket in zip(parts, self.each, strict=True)]

    def flat(self, rows: Sequence[Tensor]) -> Tensor:
        """(b, n, d) of each bucket to (N, d); the inverse of :meth:`rows`."""
        parts = [part.flatten(0, 1) for part in rows]
        x = parts[0] if len(parts) == 1 else torch.cat(parts)
        return x if self.places is None or self.where is None else _moved_rows(x, self.where, self.places)

    def to(self, device: torch.device) -> Buckets:
        """The same on another device."""
        moved = (None if t is None else t.to(device) for t in (self.places, self.where))
        return Buckets(tuple(bucket.to(device) for bucket in self.each), *moved)


def _moved_rows(x: Tensor, to: Tensor, back: Tensor) -> Tensor:
    moved: Tensor = _Moved.apply(x, to, back)  # type: ignore[no-untyped-call]
    return moved


class _Moved(torch.autograd.Function):
    """x[to], whose gradient is grad[back]: a choice again, where indexing would add up."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, to: Tensor, back: Tensor) -> Tensor:
        ctx.moves = (to, back, len(x))
        return x.index_select(0, to)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        to, back, count = ctx.moves
        if len(to) < count:  # the choice left places out, which are padding: nothing of them is used
            return grad.new_zeros(count, grad.shape[1]).index_copy_(0, to, grad), None, None
        return grad.index_select(0, back), None, None


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """g graphs of N nodes in all, smallest first, and what is to be predicted.

    Attributes:
        x: (N, k) features of nodes; None where there are none.
        near: their messages.
        edge_x: (E, k) features of each message's edge; None where there are none.
        against: (E,) messages against their edge's direction; None where no graph is directed.
        graph: (N,) number of the graph that a node belongs to.
        sizes: (g,) numbers of nodes.
        roots: (g,) node that reads out each graph, where one is asked to.
        buckets: for attention; together all graphs.
        whole: all graphs as one bucket, with the positions; None where the buckets have them.
        target: of each graph, or of each counted node.
        counted: (c,) nodes whose target counts; None where graphs have one.
        order: (g,) place of each graph in the list that the batch was made from.
    """

    x: Tensor | None
    near: Neighbours
    edge_x: Tensor | None
    against: Tensor | None
    graph: Int[Tensor, "N"]
    sizes: Int[Tensor, "g"]
    roots: Int[Tensor, "g"]
    buckets: Buckets
    whole: Buckets | None
    target: Tensor
    counted: Int[Tensor, "c"] | None
    order: Int[Tensor, "g"]

    def to(self, device: torch.device) -> GraphBatch:
        """The same on another device."""
        moved: dict[str, Any] = {
            field.name: None if value is None else value.to(device)
            for field in fields(self)
            for value in [getattr(self, field.name)]
        }
        return GraphBatch(**moved)

    def pin_memory(self) -> GraphBatch:
        """Itself: the batch is small beside what is computed with it."""
        return self


Layout: TypeAlias = Literal["buckets", "beside", "one"]
"""Where positions are: with each bucket; for all graphs as one, beside buckets for attention; in one bucket for all."""


def collate(examples: Sequence[GraphExample], layout: Layout = "buckets") -> GraphBatch:
    """A batch of examples.

    Args:
        examples: in any order.
        layout: ``beside`` for position models that say nothing inside attention, ``one`` for those that must see all
            graphs of a batch at once and do, ``buckets`` for all others.
    """
    order = sorted(range(len(examples)), key=lambda i: examples[i].size)
    each = [examples[i] for i in order]
    sizes = [example.size for example in each]
    starts = np.cumsum([0, *sizes])[:-1]
    encoded = {encoding: [example.encoded[encoding] for example in each] for encoding in each[0].encoded}
    ends = [len(sizes)] if layout == "one" else cut(sizes)
    buckets = [
        Bucket.of(sizes[a:b], {} if layout == "beside" else {e: values[a:b] for e, values in encoded.items()})
        for a, b in pairwise([0, *ends])
    ]
    directed = any(example.directions.against.any() for example in each)
    counted = [example.counted for example in each if example.counted is not None]
    return GraphBatch(
        x=_concatenated([example.x for example in each]),
        near=Neighbours.join([example.directions for example in each], sizes),
        edge_x=_concatenated([example.edge_x for example in each]),
        against=_concatenated([example.directions.against for example in each]) if directed else None,
        graph=torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes)),
        sizes=torch.tensor(sizes),
        roots=torch.from_numpy(starts + [example.root for example in each]),
        buckets=Buckets.of(buckets),
        whole=Buckets.of([Bucket.of(sizes, encoded)]) if layout == "beside" and encoded else None,
        target=_targets(each),
        counted=torch.from_numpy(np.flatnonzero(np.concatenate(counted))) if counted else None,
        order=torch.tensor(order),
    )


def _targets(each: Sequence[GraphExample]) -> Tensor:
    if each[0].counted is None:
        return torch.from_numpy(np.stack([example.target for example in each]))
    return torch.from_numpy(np.concatenate([example.target[example.counted] for example in each]))


def _concatenated(arrays: Sequence[NDArray[Any] | None]) -> Tensor | None:
    given = [array for array in arrays if array is not None]
    return torch.from_numpy(np.concatenate(given)) if given else None
