"""A tree that grows node by node, with the positions of its newest node in time linear in the number of nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.data.growing import Matrix, clipped, newest, unknown_encoding
from structpe.encodings._path_labels import FIRST_STEP, SELF, TOO_LONG, UNKNOWN
from structpe.encodings.base import UNREACHABLE, Encoding
from structpe.encodings.branch_path import BranchPath
from structpe.encodings.depth import Depth
from structpe.encodings.distance import Distance, UndirectedDistance
from structpe.encodings.label_path import LabelPath
from structpe.encodings.order import Order
from structpe.encodings.spr import SPRRelative
from structpe.errors import StructureError
from structpe.positions import Positions
from structpe.structure import Ids, Structure

__all__ = ["GrowingTree"]

_OF_NODES = (Order, Depth, BranchPath)
_OF_PAIRS = (Distance, UndirectedDistance, SPRRelative, LabelPath)


class GrowingTree:
    """A rooted tree to which nodes are added one by one, each below any earlier node, as when a decoder writes it.

    The reading order is the order of addition, so that a new node is the last child of its parent, and no value of
    earlier nodes changes: the row of a node when it was added is its row in the whole tree, up to itself. For n nodes a
    step takes O(n) time, with label paths of up to L steps O(nL); all nodes take O(n^2) memory.

    Encodings of nodes: ``order``, ``depth``, ``branch-path`` (tree position encoding). Of pairs: ``distance``,
    ``undirected-distance``, ``spr-relative``, ``label-path`` with one path. Each node is one unit.

    Args:
        root: label of the root.
    """

    def __init__(self, root: str = "") -> None:
        self._nodes, self._relations = [root], [""]
        self._parent, self._depth = [-1], [0]
        self._branch, self._before, self._children = [0], [-1], [list[int]()]
        self._above, self._apart = Matrix(np.bool_), Matrix(np.int64)
        self._above.of(1)[0, 0] = True
        self._known: dict[Encoding, list[NDArray[Any]]] = {}
        self._down: dict[Encoding, Matrix] = {}
        self._named: dict[Encoding, int] = {}

    @property
    def size(self) -> int:
        """n, the number of nodes."""
        return len(self._nodes)

    @property
    def structure(self) -> Structure:
        """The tree so far."""
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
        for values, value in ((self._nodes, node), (self._relations, relation)):
            values.append(value)
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

    def row(self, encoding: Encoding) -> NDArray[Any]:
        """(n, ...) the values of the pairs whose query is the newest node, for each node as the key.

        Raises:
            EncodingError: the tree has no such encoding.
        """
        return self._pairs(encoding, np.full(self.size, self.size - 1), np.arange(self.size))

    def column(self, encoding: Encoding) -> NDArray[Any]:
        """(n, ...) the values of the pairs whose key is the newest node, for each node as the query.

        Raises:
            EncodingError: the tree has no such encoding.
        """
        return self._pairs(encoding, np.arange(self.size), np.full(self.size, self.size - 1))

    def step(self, encodings: Iterable[Encoding]) -> Positions:
        """Positions for a step of a decoder: the newest node is the query, all nodes are the keys.

        Raises:
            EncodingError: the tree has no such encoding.
        """
        return newest([self], encodings)

    def _pairs(self, encoding: Encoding, query: Ids, key: Ids) -> NDArray[Any]:
        """The values of pairs; one of the two is always the newest node."""
        apart, depth = self._apart.of(self.size)[query, key], np.array(self._depth)
        above = self._above.of(self.size)
        if isinstance(encoding, UndirectedDistance):
            return clipped(apart, encoding.limit)
        below, related = depth[key] - depth[query], above[query, key] | above[key, query]
        if isinstance(encoding, Distance):
            return clipped(np.where(related, below, UNREACHABLE), encoding.limit)
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
                raise encoding.error(
                    self.structure,
                    f"node {self._parent[node]} has {branch + 1} children, the width is {encoding.width}; give a width "
                    f"of {branch + 1} or more, or binary=True, which converts any tree to width 2",
                )
            path[step * encoding.width + branch] = 1.0
            node = self._before[node] if encoding.binary and branch else self._parent[node]
        return path

    def _label_paths(self, encoding: LabelPath, query: Ids, key: Ids, up: Ids) -> Ids:
        """(n, L) symbols of the steps: ``up`` from the query to the lowest common ancestor, then down to the key."""
        if encoding.paths != 1 or not (encoding.labels or self.size == 1):
            raise encoding.error(
                self.structure,
                f"a growing tree has one path of known labels for each pair; paths is {encoding.paths}, and "
                f"{len(encoding.labels)} labels are known. Give paths=1, and fit the encoding first",
            )
        down_of, depth = self._steps_down(encoding), np.array(self._depth)
        meet = depth[query] - up
        length = up + depth[key] - meet
        most = int(length.max()) if encoding.limit is None else min(encoding.limit, int(length.max()))
        step, up = np.arange(max(most, 1)), up[:, None]
        rising, falling = depth[query][:, None] - 1 - step, meet[:, None] + step - up
        deepest = self.size - 1
        symbols = down_of[query[:, None], rising.clip(0, deepest)]
        symbols = np.where(symbols == UNKNOWN, UNKNOWN, symbols + 1)
        symbols = np.where(step < up, symbols, down_of[key[:, None], falling.clip(0, deepest)])
        symbols = np.where(step < length[:, None], symbols, -1)
        symbols[length == 0, 0] = SELF
        if encoding.longer == "symbol" and encoding.limit is not None:
            symbols[length > encoding.limit] = np.where(step == 0, TOO_LONG, -1)
        return symbols

    def _steps_down(self, encoding: LabelPath) -> Ids:
        """(n, n) symbols of the steps from the root to each node; kept, so that a new node costs one row."""
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
