"""A walk through a rooted graph that visits every edge once: along edges as far as possible, then against one."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Branch", "walked"]


class Branch(NamedTuple):
    """An edge, written at one of its ends.

    Attributes:
        edge: its number.
        other: its other end.
        inverted: whether it is written at its target.
        introduces: whether the other end is visited for the first time.
    """

    edge: int
    other: int
    inverted: bool
    introduces: bool


def walked(edges: Sequence[Sequence[int]], inverted: Sequence[bool], root: int, size: int) -> list[list[Branch]]:
    """The edges of each node on the walk; a node without a path is never introduced.

    Args:
        edges: source and target of each.
        inverted: whether to write each edge at its target instead of its source; it is written at the other end if the
            walk does not visit this one.
        root: the first node of the walk.
        size: number of nodes.
    """
    walk = _Walk(edges, inverted, size)
    walk.go(root)
    while walk.turn():
        pass
    return walk.branches


class _Walk:
    def __init__(self, edges: Sequence[Sequence[int]], inverted: Sequence[bool], size: int) -> None:
        self.ends = [(t, s) if turned else (s, t) for (s, t), turned in zip(edges, inverted, strict=True)]
        self.inverted = list(inverted)
        self.branches: list[list[Branch]] = [[] for _ in range(size)]
        self.seen = [False] * size
        self.here: list[list[int]] = [[] for _ in range(size)]
        self.there: list[list[int]] = [[] for _ in range(size)]
        for edge, (site, other) in enumerate(self.ends):
            self.here[site].append(edge)
            self.there[other].append(edge)
        self.waiting: list[int] = []
        """Edges from other nodes to nodes already seen, the first on top."""

    def go(self, node: int) -> None:
        """Write everything that can be reached from a node."""
        self._see(node)
        stack = [(node, iter(self.here[node]))]
        while stack:
            site, edges = stack[-1]
            for edge in edges:
                other = self.ends[edge][1]
                new = not self.seen[other]
                self.branches[site].append(Branch(edge, other, self.inverted[edge], new))
                if new:
                    self._see(other)
                    stack.append((other, iter(self.here[other])))
                    break
            else:
                stack.pop()

    def turn(self) -> bool:
        """Walk against the first edge that leads to an unseen node. Returns whether there was one."""
        while self.waiting:
            edge = heapq.heappop(self.waiting)
            site, other = self.ends[edge]
            if not self.seen[site]:
                self.branches[other].append(Branch(edge, site, not self.inverted[edge], True))
                self.here[site].remove(edge)
                self.go(site)
                return True
        return False

    def _see(self, node: int) -> None:
        self.seen[node] = True
        for edge in self.there[node]:
            heapq.heappush(self.waiting, edge)
