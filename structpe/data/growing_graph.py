"""A graph that grows node by node, with the positions of its newest node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.data.growing import Matrix, clipped, newest, unknown_encoding
from structpe.encodings.base import UNREACHABLE, Encoding
from structpe.encodings.depth import Depth
from structpe.encodings.distance import Distance, UndirectedDistance
from structpe.encodings.order import Order
from structpe.errors import StructureError
from structpe.positions import Positions
from structpe.structure import Ids, Structure

__all__ = ["GrowingGraph"]

_UNREACHED = np.iinfo(np.int64).max // 4  # the length of a missing path: larger than any, and two can be added
_OF_NODES, _OF_PAIRS = (Order, Depth), (Distance, UndirectedDistance)


class GrowingGraph:
    """A graph to which nodes are added one by one, with edges from and to earlier nodes; node 0 is the root.

    All distances are exact in the graph so far. With k edges to earlier nodes, the row and the column of a new node
    take O(kn) time: each path to it passes one of its neighbours, whose distances are known. A new node may also bring
    *earlier* nodes nearer to one another, if paths lead through it; the distances of earlier pairs are then updated in
    O(n^2), and :attr:`nearer` lists the pairs. A decoder with a cache has read earlier units at their former distances:
    its steps are the full computation only where no pair is listed, as in a tree, or if each unit is meant to have the
    distances of the graph at the time when it was written.

    Encodings of nodes: ``order`` (of addition), ``depth``. Of pairs: ``distance``, ``undirected-distance``. Each node
    is one unit. Label paths and positions of trees are those of :class:`structpe.data.growing_tree.GrowingTree`.

    Args:
        root: label of the first node.
        directed: whether edges have a direction.

    Attributes:
        nearer: (c, 2) the pairs (query, key) of earlier nodes between which the last node made a shorter path, along
            the edges or ignoring directions.
    """

    def __init__(self, root: str = "", directed: bool = True) -> None:
        self._nodes, self._directed = [root], directed
        self._edges, self._relations = list[tuple[int, int]](), list[str]()
        self._along, self._apart = Matrix(np.int64), Matrix(np.int64)
        self.nearer: Ids = np.zeros((0, 2), dtype=np.int64)

    @property
    def size(self) -> int:
        """n, the number of nodes."""
        return len(self._nodes)

    @property
    def structure(self) -> Structure:
        """The graph so far."""
        edges = np.array(self._edges, dtype=np.int64).reshape(-1, 2)
        order = np.arange(self.size)
        return Structure(tuple(self._nodes), edges, tuple(self._relations), self._directed, order=order, root=0)

    def add(
        self, sources: Sequence[int] = (), targets: Sequence[int] = (), node: str = "", relations: Sequence[str] = ()
    ) -> int:
        """Add a node, and return its number.

        Args:
            sources: earlier nodes with an edge to it.
            targets: earlier nodes to which it has an edge.
            node: its label.
            relations: labels of the edges from the sources and to the targets, in this order; empty labels by default.

        Raises:
            StructureError: there is no such node, or there are relations, but not one for each edge.
        """
        new, joined = self.size, [*sources, *targets]
        if wrong := [each for each in joined if not 0 <= each < new]:
            raise StructureError(f"an edge joins node {wrong[0]}, but the {new} nodes so far are 0..{new - 1}")
        if relations and len(relations) != len(joined):
            raise StructureError(f"{len(relations)} relations for {len(joined)} edges; give one per edge, or none")
        self._nodes.append(node)
        self._edges += [(source, new) for source in sources] + [(new, target) for target in targets]
        self._relations += relations or [""] * len(joined)
        nearer = [_grown(self._apart, new, joined, joined)]
        if self._directed:
            nearer.append(_grown(self._along, new, sources, targets))
        self.nearer = np.unique(np.concatenate(nearer), axis=0)
        return new

    def values(self, encoding: Encoding) -> NDArray[Any]:
        """(n,) the values of an encoding of nodes, of all nodes in the graph so far.

        Raises:
            EncodingError: the graph has no such encoding, or no path leads from the root to a node.
        """
        if isinstance(encoding, Order):
            return np.arange(self.size)
        if not isinstance(encoding, Depth):
            raise unknown_encoding(encoding, "graph", _OF_NODES)
        depth = self._apart.of(self.size)[0]
        if len(missed := np.flatnonzero(depth == _UNREACHED)):
            raise encoding.error(self.structure, f"no path leads from the root to node {missed[0]}; connect it")
        found: Ids = depth.copy()
        return found

    def row(self, encoding: Encoding) -> NDArray[Any]:
        """(n,) the values of the pairs whose query is the newest node, for each node as the key.

        Raises:
            EncodingError: the graph has no such encoding.
        """
        new = self.size - 1
        return self._pairs(encoding, (new, slice(None)), (slice(None), new))

    def column(self, encoding: Encoding) -> NDArray[Any]:
        """(n,) the values of the pairs whose key is the newest node, for each node as the query.

        Raises:
            EncodingError: the graph has no such encoding.
        """
        new = self.size - 1
        return self._pairs(encoding, (slice(None), new), (new, slice(None)))

    def step(self, encodings: Iterable[Encoding]) -> Positions:
        """Positions for a step of a decoder: the newest node is the query, all nodes are the keys.

        Raises:
            EncodingError: the graph has no such encoding.
        """
        return newest([self], encodings)

    def _pairs(self, encoding: Encoding, there: Any, back: Any) -> Ids:
        """The values of pairs, and of the same pairs in the other direction."""
        if not isinstance(encoding, Distance | UndirectedDistance):
            raise unknown_encoding(encoding, "graph", _OF_PAIRS)
        signed = isinstance(encoding, Distance) and self._directed
        lengths = (self._along if signed else self._apart).of(self.size)
        to, fro = lengths[there], lengths[back]
        found = np.where(np.minimum(to, fro) == _UNREACHED, UNREACHABLE, np.where(to <= fro, to, -fro))
        return clipped(found, encoding.limit)


def _grown(matrix: Matrix, new: int, sources: Sequence[int], targets: Sequence[int]) -> Ids:
    """Add a node to a matrix of lengths; (c, 2) which earlier pairs it has brought nearer."""
    lengths = matrix.of(new + 1)
    old = lengths[:new, :new]
    to = old[:, list(sources)].min(1, initial=_UNREACHED - 1) + 1
    out = old[list(targets)].min(0, initial=_UNREACHED - 1) + 1
    lengths[:new, new], lengths[new, :new] = np.minimum(to, _UNREACHED), np.minimum(out, _UNREACHED)
    if not sources or not targets or len({*sources, *targets}) == 1:  # no path leads through it
        return np.zeros((0, 2), dtype=np.int64)
    through = np.minimum(to[:, None] + out[None], _UNREACHED)
    nearer = through < old
    old[nearer] = through[nearer]
    return np.argwhere(nearer)
