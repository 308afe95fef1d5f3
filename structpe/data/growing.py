"""Structures that grow node by node, with the positions of their newest node, for decoders that write graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from structpe.encodings.base import UNREACHABLE, Encoding
from structpe.encodings.columns import same_shape
from structpe.encodings.distance import Distance, UndirectedDistance
from structpe.encodings.label_path import LabelPath
from structpe.encodings.label_path_search import FIRST_STEP, SELF, TOO_LONG, UNKNOWN
from structpe.encodings.order import Order
from structpe.encodings.trees import BranchPath, Depth, SPRRelative
from structpe.errors import EncodingError, StructureError
from structpe.positions import Positions
from structpe.structure import Ids, Structure
from structpe.terms import Lookup

__all__ = ["Growing", "GrowingGraph", "GrowingTree", "Matrix", "clipped", "newest", "unknown_encoding"]


class Growing(ABC):
    """A structure that grows node by node; each node is one unit.

    Args:
        root: label of the first node.

    Raises:
        EncodingError: by all methods, if the structure has no such encoding.
    """

    def __init__(self, root: str = "") -> None:
        self._nodes = [root]

    @property
    def size(self) -> int:
        """n, the number of nodes."""
        return len(self._nodes)

    @property
    @abstractmethod
    def structure(self) -> Structure:
        """The structure so far."""

    @abstractmethod
    def values(self, encoding: Encoding) -> NDArray[Any]:
        """(n, ...) the values of an encoding of nodes, of all nodes so far."""

    @abstractmethod
    def _pairs(self, encoding: Encoding, query: Ids, key: Ids) -> NDArray[Any]:
        """The values of pairs; one of the two is always the newest node."""

    def row(self, encoding: Encoding) -> NDArray[Any]:
        """(n, ...) the values of the pairs whose query is the newest node, for each node as the key."""
        return self._pairs(encoding, np.full(self.size, self.size - 1), np.arange(self.size))

    def column(self, encoding: Encoding) -> NDArray[Any]:
        """(n, ...) the values of the pairs whose key is the newest node, for each node as the query."""
        return self._pairs(encoding, np.arange(self.size), np.full(self.size, self.size - 1))

    def step(self, encodings: Iterable[Encoding]) -> Positions:
        """Positions for a step of a decoder: the newest node is the query, all nodes are the keys."""
        return newest([self], encodings)


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
    """A matrix that grows by doubling: however many rows and columns are added, each number is copied a few times only.

    Args:
        dtype: of the numbers.
    """

    def __init__(self, dtype: Any) -> None:
        self._numbers: NDArray[Any] = np.zeros((16, 16), dtype=dtype)

    def of(self, size: int) -> NDArray[Any]:
        """(size, size) the first rows and columns, to read and to write; 0 where nothing was written."""
        had = self._numbers
        if size > len(had):
            self._numbers = np.zeros((1 << (size - 1).bit_length(),) * 2, dtype=had.dtype)
            self._numbers[: len(had), : len(had)] = had
        return self._numbers[:size, :size]


def clipped(distances: NDArray[np.int64], max_distance: int | None) -> NDArray[np.int64]:
    """Distances clipped to ``max_distance``, to either side; UNREACHABLE remains."""
    if max_distance is None:
        return distances
    return np.where(distances == UNREACHABLE, distances, distances.clip(-max_distance, max_distance))


def unknown_encoding(encoding: Encoding, structure: str, known: Sequence[type[Encoding]]) -> EncodingError:
    """The error for an encoding that a growing structure does not have."""
    names = ", ".join(repr(each.name) for each in known)
    kind = "nodes" if known and known[0].arity == 1 else "pairs"
    wrong = f"encoding {encoding.name!r} is not made node by node for a growing {structure}; of {kind} it has {names}"
    return EncodingError(f"{wrong}. Encode the whole instead: encoding.one(growing.structure)")


_UNREACHED = np.iinfo(np.int64).max // 4  # the length of a missing path: larger than any, and two can be added
_OF_NODES, _OF_PAIRS = (Order, Depth), (Distance, UndirectedDistance)


class GrowingGraph(Growing):
    """A graph to which nodes are added one by one, with edges from and to earlier nodes; node 0 is the root.

    All distances are exact in the graph so far. With k edges to earlier nodes, the row and the column of a new node
    take O(kn) time: each path to it passes one of its neighbours, whose distances are known. A new node may also bring
    *earlier* nodes nearer to one another, if paths lead through it; the distances of earlier pairs are then updated in
    O(n^2), and :attr:`nearer` lists the pairs. A decoder with a cache has read earlier units at their former distances:
    its steps equal the full computation only if no pair is listed, as in a tree, or if each unit is meant to have the
    distances of the graph at the time when it was written.

    Encodings of nodes: ``order`` (of addition), ``depth``. Of pairs: ``distance``, ``undirected-distance``. For label
    paths and positions of trees see :class:`GrowingTree`.

    Args:
        root: label of the first node.
        directed: whether edges have a direction.

    Attributes:
        nearer: (c, 2) the pairs (query, key) of earlier nodes between which the last node made a shorter path, along
            the edges or ignoring directions.
    """

    def __init__(self, root: str = "", directed: bool = True) -> None:
        super().__init__(root)
        self._directed = directed
        self._edges, self._relations = list[tuple[int, int]](), list[str]()
        self._along, self._apart = Matrix(np.int64), Matrix(np.int64)
        self.nearer: Ids = np.zeros((0, 2), dtype=np.int64)

    @property
    def structure(self) -> Structure:
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
        """(n,) the values of an encoding of nodes, of all nodes so far.

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

    def _pairs(self, encoding: Encoding, query: Ids, key: Ids) -> Ids:
        if not isinstance(encoding, Distance | UndirectedDistance):
            raise unknown_encoding(encoding, "graph", _OF_PAIRS)
        signed = isinstance(encoding, Distance) and self._directed
        lengths = (self._along if signed else self._apart).of(self.size)
        to, fro = lengths[query, key], lengths[key, query]
        found = np.where(np.minimum(to, fro) == _UNREACHED, UNREACHABLE, np.where(to <= fro, to, -fro))
        return clipped(found, encoding.max_distance)


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


class GrowingTree(Growing):
    """A rooted tree to which nodes are added one by one, each below any earlier node, as when a decoder writes it.

    The reading order is the order of addition. A new node is thus the last child of its parent, and no value of earlier
    nodes changes: the row of a node when it was added is its row in the whole tree, up to itself. For n nodes a step
    takes O(n) time, with label paths of up to L steps O(nL); all nodes take O(n^2) memory.

    Encodings of nodes: ``order``, ``depth``, ``branch-path`` (tree position encoding). Of pairs: ``distance``,
    ``undirected-distance``, ``spr-relative``, ``label-path`` with one path.
    """

    def __init__(self, root: str = "") -> None:
        super().__init__(root)
        self._relations = [""]
        self._parent, self._depth = [-1], [0]
        self._branch, self._before, self._children = [0], [-1], [list[int]()]
        self._above, self._apart = Matrix(np.bool_), Matrix(np.int64)
        self._above.of(1)[0, 0] = True
        self._known: dict[Encoding, list[NDArray[Any]]] = {}
        self._down: dict[Encoding, Matrix] = {}
        self._named: dict[Encoding, int] = {}

    @property
    def structure(self) -> Structure:
        edges = np.column_stack([self._parent[1:], np.arange(1, self.size)]).astype(np.int64)
        return Structure(tuple(self._nodes), edges, tuple(self._relations[1:]), order=np.arange(self.size), root=0)

    def add(self, parent: int, node: str = "", relation: str = "") -> int:
        """Add a node, and return its number.

        Args:
            parent: the number of an earlier node.
            node: label of the new node.
            relation: label of the edge to it.

        Raises:
            StructureError: there is no such parent.
        """
        new = self.size
        if not 0 <= parent < new:
            raise StructureError(f"the parent is {parent}, but the {new} nodes are 0..{new - 1}")
        above, apart = self._above.of(new + 1), self._apart.of(new + 1)
        above[new, :new], above[new, new] = above[parent, :new], True
        apart[new, :new] = apart[:new, new] = apart[parent, :new] + 1
        siblings = self._children[parent]
        self._branch.append(len(siblings))
        self._before.append(siblings[-1] if siblings else -1)
        siblings.append(new)
        self._children.append([])
        self._nodes.append(node)
        self._relations.append(relation)
        self._parent.append(parent)
        self._depth.append(self._depth[parent] + 1)
        return new

    def values(self, encoding: Encoding) -> NDArray[Any]:
        """(n, ...) the values of an encoding of nodes; those of earlier nodes are kept.

        Raises:
            EncodingError: the tree has no such encoding, or a node has more children than the encoding has places for.
        """
        if isinstance(encoding, Order):
            return np.arange(self.size)
        if isinstance(encoding, Depth):
            return np.array(self._depth)
        if not isinstance(encoding, BranchPath):
            raise unknown_encoding(encoding, "tree", _OF_NODES)
        rows = self._known.setdefault(encoding, [])
        rows += [self._branches(encoding, node) for node in range(len(rows), self.size)]
        return np.stack(rows)

    def _pairs(self, encoding: Encoding, query: Ids, key: Ids) -> NDArray[Any]:
        apart, depth = self._apart.of(self.size)[query, key], np.array(self._depth)
        above = self._above.of(self.size)
        if isinstance(encoding, UndirectedDistance):
            return clipped(apart, encoding.max_distance)
        below, related = depth[key] - depth[query], above[query, key] | above[key, query]
        if isinstance(encoding, Distance):
            return clipped(np.where(related, below, UNREACHABLE), encoding.max_distance)
        if isinstance(encoding, SPRRelative):
            found: Ids = np.where(related, -below, np.sign(query - key) * (depth[query] + depth[key]))
            return found
        if not isinstance(encoding, LabelPath):
            raise unknown_encoding(encoding, "tree", _OF_PAIRS)
        return self._label_paths(encoding, query, key, (apart - below) // 2)

    def _branches(self, encoding: BranchPath, node: int) -> NDArray[np.float32]:
        """The branches on the path from a node to the root, as one-hot vectors."""
        path = np.zeros(encoding.depth * encoding.width, dtype=np.float32)
        for step in range(encoding.depth):
            if self._parent[node] < 0:
                break
            branch = self._branch[node] if not encoding.binary else int(self._before[node] >= 0)
            if branch >= encoding.width:
                wrong = f"node {self._parent[node]} has {branch + 1} children, the width is {encoding.width}"
                remedy = f"give a width of {branch + 1} or more, or binary=True, which converts any tree to width 2"
                raise encoding.error(self.structure, f"{wrong}; {remedy}")
            path[step * encoding.width + branch] = 1.0
            node = self._before[node] if encoding.binary and branch else self._parent[node]
        return path

    def _label_paths(self, encoding: LabelPath, query: Ids, key: Ids, up: Ids) -> Ids:
        """(n, L) symbols of the steps: ``up`` from the query to the lowest common ancestor, then down to the key."""
        known = any(encoding.labels) or self.size == 1 or (encoding.labels and not any(self._relations))
        if encoding.paths != 1 or not known:
            given = f"paths is {encoding.paths}, and {sum(map(bool, encoding.labels))} labels are known"
            wrong = f"a growing tree has one path of known labels for each pair; {given}"
            raise encoding.error(self.structure, f"{wrong}. Give paths=1, and fit the encoding first")
        down_of, depth = self._steps_down(encoding), np.array(self._depth)
        meet = depth[query] - up
        length = up + depth[key] - meet
        most = int(length.max()) if encoding.max_length is None else min(encoding.max_length, int(length.max()))
        step, up = np.arange(max(most, 1)), up[:, None]
        rising, falling = depth[query][:, None] - 1 - step, meet[:, None] + step - up
        deepest = self.size - 1
        symbols = down_of[query[:, None], rising.clip(0, deepest)]
        symbols = np.where(symbols == UNKNOWN, UNKNOWN, symbols + 1)
        symbols = np.where(step < up, symbols, down_of[key[:, None], falling.clip(0, deepest)])
        symbols = np.where(step < length[:, None], symbols, -1)
        symbols[length == 0, 0] = SELF
        if encoding.longer == "symbol" and encoding.max_length is not None:
            symbols[length > encoding.max_length] = np.where(step == 0, TOO_LONG, -1)
        return symbols

    def _steps_down(self, encoding: LabelPath) -> Ids:
        """(n, n) symbols of the steps from the root to each node; kept, since a new node then costs one row."""
        matrix = self._down.setdefault(encoding, Matrix(np.int64))
        done = self._named.get(encoding, 1)
        down_of = matrix.of(self.size)
        numbers = {label: FIRST_STEP + 2 * i for i, label in enumerate(encoding.labels)}
        for node in range(done, self.size):
            last = self._depth[node] - 1
            down_of[node, :last] = down_of[self._parent[node], :last]
            down_of[node, last] = numbers.get(self._relations[node], UNKNOWN)
        self._named[encoding] = self.size
        return down_of
