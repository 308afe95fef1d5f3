"""A batch: the units of several structures one after the other, with their adjacency, positions and targets.

Text generation and prediction share it. Units are not padded; attention pads them by the layout of the batch, in
buckets of graphs of similar size. Attention over a graph of n units has n^2 cells. Padding all graphs of a batch to the
largest wastes many of them: molecules then take 2.3 times the cells that they need. But each bucket has a fixed cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from structpe.attention import Layout
from structpe.computed import computed
from structpe.encodings.base import Asked, Column, Encoded, Encoding
from structpe.encodings.columns import joined, narrow, starts_of
from structpe.encodings.compiled import OF_A_LIST, compiled
from structpe.encodings.graphs import Graphs, concatenated_once
from structpe.positions import Positions
from structpe.positions.batch import checked, in_buckets
from structpe.structure import Ids, Structure

__all__ = [
    "ON_GPU",
    "OVERHEAD",
    "Batch",
    "CSRAdjacency",
    "EdgeIndex",
    "EdgeTypes",
    "Example",
    "Grouping",
    "as_one",
    "collate",
    "cut",
    "overhead",
    "pad",
]


def as_one(cls: type) -> None:
    """Hide the fields of a frozen dataclass from other libraries, as the last step of its definition.

    At ``bf16-true``, ``16-true`` and ``64-true`` Lightning converts all floating point tensors in the fields of a
    dataclass to the dtype of the model, and refuses frozen ones. But places, targets and features of a batch must keep
    their dtypes: models convert their inputs themselves, and a rounded place is another place.
    """
    del cls.__dataclass_fields__  # type: ignore[attr-defined]  # by which libraries recognise a dataclass


@dataclass(frozen=True, eq=False)
class EdgeIndex:
    """The messages along the edges of one structure, in both directions, grouped by target.

    They are one array, since a batch joins many of them. Its columns have names:

    | column | |
    |---|---|
    | ``source`` | the node that sends a message |
    | ``target`` | the node that receives it, ascending |
    | ``by_source`` | the permutation that groups messages by source |
    | ``reverse`` | whether it goes against the edge's direction; False in an undirected structure |
    | ``edge`` | number of the edge in the structure |

    Attributes:
        rows: (E, 5) the columns.
        degrees: (n,) for a sample, the number of messages to each node in the full graph; otherwise None.
    """

    rows: Ids
    degrees: Ids | None = None

    @classmethod
    def of(cls, structure: Structure) -> EdgeIndex:
        """The messages of a structure. A self-loop carries one message if the structure is undirected, else two."""
        return cls.grouped(*_messages(structure.edges, np.full(len(structure.edges), structure.directed)))

    @classmethod
    def grouped(cls, source: Ids, target: Ids, edge: Ids, reverse: Any, degrees: Ids | None = None) -> EdgeIndex:
        """From all columns but one, grouped by target."""
        rows = np.empty((len(source), 5), dtype=np.int64)
        by_source = np.argsort(narrow(source), kind="stable")
        for column, values in enumerate((source, target, by_source, reverse, edge)):
            rows[:, column] = values
        return cls(rows, degrees)

    @property
    def source(self) -> Ids:
        """(E,) the sender of each message."""
        return self.rows[:, 0]

    @property
    def target(self) -> Ids:
        """(E,) the receiver of each message."""
        return self.rows[:, 1]

    @property
    def by_source(self) -> Ids:
        """(E,) the messages, grouped by source."""
        return self.rows[:, 2]

    @property
    def reverse(self) -> NDArray[np.bool_]:
        """(E,) whether each message goes against its edge."""
        return np.not_equal(self.rows[:, 3], 0)

    @property
    def edge(self) -> Ids:
        """(E,) the edge of each message."""
        return self.rows[:, 4]


def _messages(edges: Ids, directed: NDArray[np.bool_]) -> tuple[Ids, Ids, Ids, NDArray[np.bool_]]:
    """Source, target, edge and direction, as in :class:`EdgeIndex`, of the messages along edges (e, 2)."""
    back = np.flatnonzero(directed | (edges[:, 0] != edges[:, 1]))
    source = np.concatenate([edges[:, 0], edges[back, 1]])
    target = np.concatenate([edges[:, 1], edges[back, 0]])
    order = np.lexsort((narrow(source), narrow(target)))  # numbers of 16 bits are sorted by counting
    reverse = np.concatenate([np.zeros_like(directed), directed[back]])[order]
    return source[order], target[order], np.concatenate([np.arange(len(edges)), back])[order], reverse


@compiled
def _sort_messages(
    edges: Ids, directed: NDArray[np.bool_], starts: Ids, source_starts: Ids, room: Ids, reverse: NDArray[np.bool_]
) -> int:
    """The same by counting, grouped both ways; the number of messages.

    Args:
        edges: (e, 2) source and target.
        directed: (e,) whether an edge has a direction.
        starts: (N + 1,) zeros, which become those of :class:`CSRAdjacency`.
        source_starts: (N + 1,) the same.
        room: (6, 2 e) for source, target, ``target_by_source``, edge, ``by_source``, and messages by source meanwhile.
        reverse: (2 e,) room for whether a message goes against its edge.
    """
    sent = 0
    for e in range(len(edges)):
        for way in range(2 if directed[e] or edges[e, 0] != edges[e, 1] else 1):
            source_starts[edges[e, way] + 1] += 1
            starts[edges[e, 1 - way] + 1] += 1
            sent += 1
    for i in range(len(starts) - 1):
        starts[i + 1] += starts[i]
        source_starts[i + 1] += source_starts[i]
    fill = source_starts[:-1].copy()
    for way in range(2):
        for e in range(len(edges)):
            if way == 0 or directed[e] or edges[e, 0] != edges[e, 1]:
                room[5, fill[edges[e, way]]] = 2 * e + way
                fill[edges[e, way]] += 1
    fill[:] = starts[:-1]
    for k in range(sent):
        e, way = room[5, k] >> 1, room[5, k] & 1
        source, target = edges[e, way], edges[e, 1 - way]
        place = fill[target]
        fill[target] += 1
        room[0, place], room[1, place], room[3, place], reverse[place] = source, target, e, way == 1 and directed[e]
    fill[:] = source_starts[:-1]
    for k in range(sent):
        place = fill[room[0, k]]
        fill[room[0, k]] += 1
        room[4, place], room[2, place] = k, room[1, k]
    return sent


@compiled
def _shift_messages(rows: Ids, sizes: Ids, counts: Ids, messages: Ids, bounds: Ids) -> None:
    """Number the messages of several graphs, whose nodes follow one another, over all of them.

    Args:
        rows: (E, 5) as of :class:`EdgeIndex`, counted in each graph.
        sizes: (g,) nodes of each graph.
        counts: (g,) messages of each.
        messages: (4, E) room for source, target, ``by_source`` and ``target_by_source``.
        bounds: (2, N + 1) zeros, which become ``starts`` and ``source_starts`` of :class:`CSRAdjacency`.
    """
    first = sent = 0
    for g in range(len(sizes)):
        for k in range(sent, sent + counts[g]):
            source, target = rows[k, 0] + first, rows[k, 1] + first
            messages[0, k], messages[1, k], messages[2, k] = source, target, rows[k, 2] + sent
            bounds[0, target + 1] += 1
            bounds[1, source + 1] += 1
        first, sent = first + sizes[g], sent + counts[g]
    for i in range(first):
        bounds[0, i + 1] += bounds[0, i]
        bounds[1, i + 1] += bounds[1, i]
    for k in range(sent):
        messages[3, k] = messages[1, messages[2, k]]


@dataclass(frozen=True, eq=False)
class CSRAdjacency:
    """The messages among the N nodes of a batch, grouped by target (compressed sparse rows).

    Attributes:
        source: (E,) the node that sends each message.
        target: (E,) the node that receives it, sorted.
        starts: (N + 1,) the messages to node i are starts[i]..starts[i + 1] - 1.
        by_source: (E,) the permutation that groups messages by source.
        source_starts: (N + 1,) where the messages from node i start in that order.
        target_by_source: (E,) ``target[by_source]``, which gradients need.
        whole: (N,) for a sample, the number of messages to each node in the full graph; otherwise None.
    """

    source: Int[Tensor, " E"]
    target: Int[Tensor, " E"]
    starts: Int[Tensor, " N1"]
    by_source: Int[Tensor, " E"]
    source_starts: Int[Tensor, " N1"]
    target_by_source: Int[Tensor, " E"]
    whole: Int[Tensor, " N"] | None = None

    @classmethod
    def join(cls, each: Sequence[EdgeIndex], sizes: Sequence[int] | Ids) -> tuple[CSRAdjacency, NDArray[np.bool_]]:
        """Join the messages of several graphs, whose nodes follow one another; whether each goes against its edge."""
        listed = [d.rows for d in each]
        counts, rows = np.array([len(mine) for mine in listed]), joined(listed).reshape(-1, 5)
        reverse, drawn = rows[:, 3] != 0, [d.degrees for d in each if d.degrees is not None]
        whole = torch.from_numpy(np.concatenate(drawn)) if drawn else None
        first, sent = starts_of(sizes), starts_of(counts)
        if _shift_messages.pays(OF_A_LIST + 4 * len(rows)):
            messages, bounds = np.empty((4, len(rows)), np.int64), np.zeros((2, int(first[-1]) + 1), np.int64)
            _shift_messages(rows, np.asarray(sizes), counts, messages, bounds)
            each_source, each_target, order, of_sources = torch.from_numpy(messages).unbind()
            starts, source_starts = torch.from_numpy(bounds).unbind()
            return cls(each_source, each_target, starts, order, source_starts, of_sources, whole), reverse
        (source, target), by_source = rows.T[:2] + first[:-1].repeat(counts), rows[:, 2] + sent[:-1].repeat(counts)
        return cls._of(source, target, by_source, int(first[-1]), whole), reverse

    @classmethod
    def of(cls, graphs: Graphs) -> tuple[CSRAdjacency, Ids, NDArray[np.bool_]]:
        """The messages of structures whose nodes are units; the edge of each, and whether it goes against it."""
        directed = graphs.directed.repeat(graphs.edge_start[1:] - graphs.edge_start[:-1])
        if _sort_messages.pays(OF_A_LIST + 4 * len(directed)):
            return cls._counted(graphs, directed)
        source, target, edge, reverse = _messages(graphs.edges, directed)
        by_source = np.argsort(narrow(source), kind="stable")
        return cls._of(source, target, by_source, int(graphs.start[-1])), edge, reverse

    @classmethod
    def _counted(cls, graphs: Graphs, directed: NDArray[np.bool_]) -> tuple[CSRAdjacency, Ids, NDArray[np.bool_]]:
        edges, bounds = graphs.edges, np.zeros((2, int(graphs.start[-1]) + 1), dtype=np.int64)
        room, reverse = np.empty((6, 2 * len(edges)), dtype=np.int64), np.empty(2 * len(edges), np.bool_)
        sent = _sort_messages(edges, directed, *bounds, room, reverse)
        source, target, target_by_source, edge, by_source, _ = room[:, :sent]
        arrays = (source, target, bounds[0], by_source, bounds[1], target_by_source)
        return cls(*map(torch.from_numpy, arrays)), edge, reverse[:sent]

    @classmethod
    def _of(cls, source: Ids, target: Ids, by_source: Ids, count: int, whole: Tensor | None = None) -> CSRAdjacency:
        starts, source_starts = (starts_of(np.bincount(ends, minlength=count)) for ends in (target, source))
        arrays = (source, target, starts, by_source, source_starts, target[by_source])
        return cls(*(torch.from_numpy(each) for each in arrays), whole=whole)  # type: ignore[misc]  # there are six

    @property
    def count(self) -> int:
        """N, the number of nodes."""
        return len(self.starts) - 1

    @property
    def degrees(self) -> Int[Tensor, " N"]:
        """(N,) number of messages to each node."""
        return self.starts.diff()

    @property
    def whole_degrees(self) -> Int[Tensor, " N"]:
        """(N,) the same in the full graph, from which a sample is drawn."""
        return self.degrees if self.whole is None else self.whole

    def moved(self, move: Callable[[Tensor], Tensor]) -> CSRAdjacency:
        """A copy with ``move`` applied to all tensors."""
        values = (getattr(self, each.name) for each in fields(self))
        each: list[Any] = [None if value is None else move(value) for value in values]
        return CSRAdjacency(*each)


@dataclass(frozen=True)
class EdgeTypes:
    """Numbers for edge labels: each relation in both directions, and the links between the units of one node.

    ``2 i`` is relation i, ``2 i + 1`` its reverse; the last relation is for labels not seen in training. After them
    come the link from a unit to the next one of its node, and the link back.

    Args:
        relations: the known labels.
    """

    relations: tuple[str, ...] = ()

    @classmethod
    def fit(cls, structures: Sequence[Structure]) -> EdgeTypes:
        """Collect the labels of a training set."""
        return cls(tuple(sorted({relation for s in structures for relation in (s.relations or ("",))})))

    @property
    def size(self) -> int:
        """Number of edge labels."""
        return 2 * (len(self.relations) + 1) + 2

    def of(self, structure: Structure) -> tuple[Ids, Ids]:
        """(2, E) edges among units, both ways, and (E,) their labels. Every unit of a node has the node's edges."""
        known = {relation: 2 * i for i, relation in enumerate(self.relations)}
        labels = [known.get(structure.relation(e), 2 * len(self.relations)) for e in range(len(structure.edges))]
        source, target, which = _among_units(structure)
        forward = np.asarray(labels, dtype=np.int64)[which]
        inner = np.flatnonzero(np.diff(structure.unit_owner) == 0)
        index = np.stack(
            [np.concatenate([source, target, inner, inner + 1]), np.concatenate([target, source, inner + 1, inner])]
        )
        within = np.full(len(inner), self.size - 2)
        return index, np.concatenate([forward, forward + 1, within, within + 1])

    def messages(self, structure: Structure) -> tuple[EdgeIndex, Ids]:
        """The messages among units, and (E, 1) their labels as features of edges."""
        (source, target), types = self.of(structure)
        order = np.lexsort((source, target))
        edges = EdgeIndex.grouped(source[order], target[order], np.arange(len(order)), False)
        return edges, types[order][:, None]  # the label tells the direction


def _among_units(structure: Structure) -> tuple[Ids, Ids, Ids]:
    """Source unit, target unit and number of the edge, for every pair of units that an edge joins."""
    numbers = np.arange(len(structure.edges))
    if structure.owner is None:
        return structure.edges[:, 0], structure.edges[:, 1], numbers
    first = np.searchsorted(structure.owner, np.arange(structure.size + 1))
    count = np.diff(first)
    sources, targets = structure.edges[:, 0], structure.edges[:, 1]
    pairs = count[sources] * count[targets]
    which = np.repeat(numbers, pairs)
    inside = np.arange(len(which)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    wide = count[targets][which]
    return first[sources[which]] + inside // wide, first[targets[which]] + inside % wide, which


OVERHEAD = 8192
"""The fixed cost of a bucket, in cells. The time of a training step with molecules is flat from 4,000 to 16,000 on a
CPU."""
ON_GPU = 1 << 22
"""The same on a GPU. On an H100 fewer buckets are faster up to one for all, which would take the most memory."""


def overhead(device: str) -> int:
    """The fixed cost of a bucket on a type of device."""
    return OVERHEAD if device == "cpu" else ON_GPU


def cut(sizes: Sequence[int], overhead: int = OVERHEAD) -> list[int]:
    """Cut graphs, sorted by size, into the buckets of least total cost; return where each bucket ends.

    The cost of a bucket of b graphs, the largest of size m, is b m^2 + overhead. The minimum is exact, by dynamic
    programming over the distinct sizes.

    Args:
        sizes: of the graphs, ascending.
        overhead: fixed cost of a bucket, in cells.
    """
    pays = _cheapest.pays(OF_A_LIST + len(sizes))
    found: Ids = _cheapest(np.asarray(sizes), overhead) if pays else _cheapest.plainly(sizes, overhead)
    ends: list[int] = found.tolist()
    return ends


@compiled
def _cheapest(sizes: Any, overhead: int) -> Any:
    """As :func:`cut`."""
    ends = [i + 1 for i in range(len(sizes)) if i + 1 == len(sizes) or sizes[i + 1] != sizes[i]]  # of each size
    best, before = [0.0], [0]  # least cost of the graphs of the first i sizes, and where their last bucket begins
    for i in range(len(ends)):
        least, chosen, cells = math.inf, 0, sizes[ends[i] - 1] * sizes[ends[i] - 1]
        for first in range(i, -1, -1):
            own = (ends[i] - (ends[first - 1] if first else 0)) * cells + overhead
            if own > least:  # and so is that of longer ones
                break
            if best[first] + own <= least:
                least, chosen = best[first] + own, first
        best.append(least)
        before.append(chosen)
    cuts, upto = [len(sizes)], before[-1]
    while upto:
        cuts.append(ends[upto - 1])
        upto = before[upto]
    return np.array(cuts[::-1])


def padded(sizes: Sequence[int], ends: Sequence[int]) -> int:
    """Number of cells that attention computes with these buckets."""
    return sum((end - start) * sizes[end - 1] ** 2 for start, end in pairwise([0, *ends]))


Grouping: TypeAlias = Literal["buckets", "separate", "together"]
"""How a model reads positions. ``buckets``: bucket by bucket. ``separate``: positions of all structures padded
together, attention in buckets. ``together``: one bucket for positions and attention, with a mask even where nothing is
padded: all batches then have one form, and a model is compiled only once. Every model can read it."""


@dataclass(frozen=True, eq=False)
class Example:
    """A structure prepared for batches, once per training run.

    Attributes:
        x: (n, k) features of units, or (n,) their ids; None without features.
        edges: the messages along its edges.
        edge_x: (E, k) features of each message's edge; None without features.
        encoded: the values of the encodings.
        target: of the structure, or of each of its units; or the ids (m,) of a text. None without a target.
        size: n, the number of units.
        target_mask: (n,) units whose target is used; None if the structure has one target.
        root: the unit that represents the structure, for models that read out the root.
    """

    x: NDArray[Any] | None
    edges: EdgeIndex
    edge_x: NDArray[Any] | None
    encoded: Mapping[Encoding, Encoded]
    target: NDArray[Any] | None
    size: int
    target_mask: NDArray[np.bool_] | None = None
    root: int = 0

    @classmethod
    def of(
        cls,
        structure: Structure,
        encoded: Mapping[Encoding, Encoded],
        target: NDArray[Any] | None = None,
        target_mask: NDArray[np.bool_] | None = None,
        edge_types: EdgeTypes | None = None,
    ) -> Example:
        """Create an example from a structure, with its features ``x`` and ``edge_x``. A node may have several units.

        Args:
            structure: the graph.
            encoded: the values of the encodings.
            target, target_mask: see the attributes.
            edge_types: numbers of edge labels, used as features of edges; each unit of a node gets the edges of the
                node. None for ``edge_x``.
        """
        x, edge_x = structure.features.get("x"), structure.features.get("edge_x")
        if edge_types is not None:
            edges, edge_x = edge_types.messages(structure)
        elif structure.owner is not None:
            edges, edge_x = EdgeTypes().messages(structure)[0], None
        else:
            edges = EdgeIndex.of(structure)
            edge_x = None if edge_x is None else edge_x[edges.edge]
        x = x if x is None or structure.owner is None else x[structure.owner]
        return cls(x, edges, edge_x, encoded, target, structure.unit_count, target_mask, structure.root or 0)


@dataclass(frozen=True, eq=False)
class Batch:
    """g structures with N units in total, sorted by size, and their targets.

    Attributes:
        x: (N, k) features of units, or (N,) their ids; None without features.
        adjacency: the messages of all structures.
        edge_x: (E, k) features of each message's edge; None without features.
        reverse: (E,) whether a message goes against its edge's direction; None if no structure is directed.
        graph: (N,) index of the structure of each unit.
        sizes: (g,) number of units of each structure.
        roots: (g,) the root unit of each structure, for models that read out the root.
        layout: how attention pads the units.
        position_layout: how units are padded for position models: ``layout``, or all structures in one bucket.
        positions: per bucket of ``position_layout``.
        target: of each structure, or of each unit of ``target_mask``; or texts (g, m), padded. None without targets.
        target_mask: (c,) units whose target is used; None if each structure has one target.
        order: (g,) index of each structure in the list from which the batch was created.
        queries: (q, 3) of one knowledge graph: a node, a relation, and 1 if the node is the tail of the triple whose
            head is asked for, 0 if it is the head. None if no pairs are predicted.
    """

    x: Tensor | None
    adjacency: CSRAdjacency
    edge_x: Tensor | None
    reverse: Tensor | None
    graph: Int[Tensor, " N"]
    sizes: Int[Tensor, " g"]
    roots: Int[Tensor, " g"]
    layout: Layout
    position_layout: Layout
    positions: tuple[Positions, ...]
    target: Tensor | None
    target_mask: Int[Tensor, " c"] | None
    order: Int[Tensor, " g"]
    queries: Int[Tensor, "q 3"] | None = None

    @classmethod
    def of(
        cls,
        structures: Sequence[Structure],
        encodings: Sequence[Asked] = (),
        edge_types: EdgeTypes | None = None,
        grouping: Grouping = "buckets",
    ) -> Batch:
        """Create a batch of structures without targets, sorted by size.

        Args:
            structures: one or more.
            encodings: the encodings of the position model, in any form that :func:`structpe.encode` takes.
            edge_types: numbers of edge labels, used as features of edges; None for the structures' ``edge_x``.
            grouping: as the model needs it (:attr:`structpe.nn.stack.Stack.grouping`).

        Raises:
            EncodingError, PositionError: as of :func:`structpe.encode`.
        """
        made, counts = checked(structures, encodings, "Batch.of")
        order = np.argsort(counts, kind="stable")
        each, counts = [structures[i] for i in order.tolist()], sorted(counts)
        layouts = _layouts(counts, grouping, "cpu", bool(made))
        widths = np.repeat(*np.array(layouts[1].shapes).T[::-1])
        with concatenated_once():
            encoded = {encoding: encoding.padded(each, widths) for encoding in dict.fromkeys(made)}
            graphs = Graphs.of(each)
        given = [s.features for s in each]
        x, edge_x = ([of.get(name) for of in given] if any(given) else [None] for name in ("x", "edge_x"))
        if edge_types is not None or graphs.owner is not None or len({values is None for values in edge_x}) > 1:
            values = ({encoding: column[i] for encoding, column in encoded.items()} for i in range(len(each)))
            examples = [Example.of(s, v, edge_types=edge_types) for s, v in zip(each, values, strict=True)]
            return collate(examples, grouping).replaced(order=torch.from_numpy(order))
        adjacency, edge, reverse = CSRAdjacency.of(graphs)
        of_edges = _concatenated(edge_x)
        return Batch(
            x=_concatenated(x),
            adjacency=adjacency,
            edge_x=None if of_edges is None else of_edges[torch.from_numpy(edge)],
            reverse=torch.from_numpy(reverse) if reverse.any() else None,
            roots=torch.from_numpy(graphs.start[:-1] + np.maximum(graphs.roots, 0)),
            **_laid_out(graphs.units, encoded, layouts),
            target=None,
            target_mask=None,
            order=torch.from_numpy(order),
        )

    @property
    def one_bucket(self) -> Layout:
        """The layout of all structures in one bucket, for models that need padded rows, such as a decoder."""
        return self.layout if len(self.layout) == 1 else self._joined

    @computed
    def _joined(self) -> Layout:
        return Layout.of(self.sizes.tolist()).moved(partial(_to, device=self.sizes.device))

    @computed
    def _copies(self) -> dict[torch.device, Batch]:
        return {}

    def to(self, device: torch.device | str) -> Batch:
        """A copy on another device, or the batch itself if it is there already.

        The copy is cached: if all steps of a training have the same graph, the graph and everything computed from its
        edges stay on the GPU.
        """
        where = torch.empty(0, device=device).device  # with the number of the GPU
        if self.order.device == where:
            return self
        if where not in self._copies:
            self._copies[where] = self._moved(partial(_to, device=where))
        return self._copies[where]

    def pin_memory(self) -> Batch:
        """A copy in memory from which a GPU reads while it computes."""
        return self._moved(torch.Tensor.pin_memory)

    def _moved(self, move: Callable[[Tensor], Tensor]) -> Batch:
        """A copy with ``move`` applied to all tensors."""
        moved = {name: _each(getattr(self, name), move) for name in _FIELDS}
        if self.position_layout is self.layout:
            moved["position_layout"] = moved["layout"]
        return Batch(**moved)

    def replaced(self, **values: Any) -> Batch:
        """A copy with other values of these attributes."""
        return Batch(**{name: getattr(self, name) for name in _FIELDS} | values)


_FIELDS = tuple(each.name for each in fields(Batch))
as_one(Batch)


def collate(
    examples: Sequence[Example],
    grouping: Grouping = "buckets",
    padding: int | None = None,
    device: str = "cpu",
) -> Batch:
    """Create a batch from examples.

    Args:
        examples: in any order.
        grouping: ``separate`` for position models without terms in attention; ``together`` for those with terms that
            must see all structures of a batch at once; ``buckets`` for all others.
        padding: id that pads target texts; None if targets are not texts.
        device: type of the device that will compute; a GPU wants fewer buckets.
    """
    sizes = np.array([example.size for example in examples])
    order = sizes.argsort(kind="stable")
    each, sizes = [examples[i] for i in order.tolist()], sizes[order]
    encoded = _of_each([example.encoded for example in each])
    adjacency, reverse = CSRAdjacency.join([example.edges for example in each], sizes)
    masks = [example.target_mask for example in each if example.target_mask is not None]
    return Batch(
        x=_concatenated([example.x for example in each]),
        adjacency=adjacency,
        edge_x=_concatenated([example.edge_x for example in each]),
        reverse=torch.from_numpy(reverse) if reverse.any() else None,
        roots=torch.from_numpy(sizes.cumsum() - sizes + [example.root for example in each]),
        **_laid_out(sizes, encoded, _layouts(sizes.tolist(), grouping, device, bool(encoded))),
        target=_targets(each, padding),
        target_mask=torch.from_numpy(np.concatenate(masks).nonzero()[0]) if masks else None,
        order=torch.from_numpy(order),
    )


def _of_each(given: Sequence[Mapping[Encoding, Encoded]]) -> dict[Encoding, Sequence[Encoded]]:
    """Per encoding, the values of all structures."""
    names = list(given[0])
    if [*map(list, given)].count(names) == len(given):  # faster than to look each up, which computes its hash
        return dict(zip(names, zip(*(each.values() for each in given), strict=True), strict=True))
    return {encoding: [each[encoding] for each in given] for encoding in names}


def _layouts(sizes: list[int], grouping: Grouping, device: str, encoded: bool) -> tuple[Layout, Layout]:
    """How attention and how position models pad structures of these sizes, ascending, some of them encoded or none."""
    together = grouping == "together"
    layout = Layout.of(sizes, [len(sizes)] if together else cut(sizes, overhead(device)), masked=together)
    return layout, Layout.of(sizes) if grouping == "separate" and encoded else layout


def _laid_out(
    sizes: Ids, encoded: Mapping[Encoding, Column | Sequence[Encoded]], layouts: tuple[Layout, Layout]
) -> dict[str, Any]:
    """The fields of a batch that its sizes, ascending, its encoded values and its layouts decide."""
    layout, asked = layouts
    return {
        "graph": torch.from_numpy(np.arange(len(sizes)).repeat(sizes)),
        "sizes": torch.from_numpy(sizes),
        "layout": layout,
        "position_layout": asked,
        "positions": in_buckets(encoded, asked.shapes, asked.present),
    }


def pad(rows: Sequence[NDArray[np.integer[Any]]], padding: int) -> Int[Tensor, "b m"]:
    """Stack rows of ids in one tensor, padded at the end."""
    padded = np.full((len(rows), max(len(row) for row in rows)), padding, dtype=np.int64)
    for place, row in zip(padded, rows, strict=True):
        place[: len(row)] = row
    return torch.from_numpy(padded)


def _targets(each: Sequence[Example], padding: int | None) -> Tensor | None:
    targets = [example.target for example in each if example.target is not None]
    if len(targets) < len(each):
        return None
    if padding is not None:
        return pad(targets, padding)
    if each[0].target_mask is None:
        return torch.from_numpy(np.array(targets))
    return torch.from_numpy(
        np.concatenate([target[example.target_mask] for target, example in zip(targets, each, strict=True)])
    )


def _concatenated(arrays: Sequence[NDArray[Any] | None]) -> Tensor | None:
    given = [array for array in arrays if array is not None]
    return torch.from_numpy(np.concatenate(given)) if given else None


def _each(value: Any, move: Callable[[Tensor], Tensor]) -> Any:
    if value is None:
        return None
    if isinstance(value, Tensor):
        return move(value)
    return tuple(each.moved(move) for each in value) if isinstance(value, tuple) else value.moved(move)


def _to(x: Tensor, device: torch.device) -> Tensor:
    # The host need not wait for a copy to a GPU, which computes later in the same order; a copy back is needed at once.
    return x.to(device, non_blocking=device.type == "cuda")
