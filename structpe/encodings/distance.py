"""Shortest-path distances between units: signed along the edges (Graformer), or without direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._shortest import UNREACHED, all_pairs
from structpe.encodings._units import within
from structpe.encodings.base import UNREACHABLE, Column, Encoded, Encoding, check_all_pairs, check_limit
from structpe.structure import Ids, Structure

__all__ = ["Distance", "UndirectedDistance"]


@dataclass(frozen=True)
class Distance(Encoding, name="distance"):
    """r: signed length of the shortest path between the nodes of query t and key s (survey, eq. 31; Schmitt 2021).

    With d the length of the shortest path along the edges, infinite without a path::

        r_ts = UNREACHABLE    if neither d(t, s) nor d(s, t) is finite
               WITHIN + k     if t and s belong to one node, s being its k-th unit after t, k != 0
               +d(t, s)       if d(t, s) <= d(s, t)
               -d(s, t)       otherwise

    On a path graph this is the sequential offset s - t. Undirected structures have no negative distances.

    Args:
        limit: D_max, the largest distance; longer ones are clipped to it. None for no limit.
    """

    arity = 2
    causal = True
    codes = ("unreachable", "within")

    limit: int | None = None

    def __post_init__(self) -> None:
        check_limit(self, self.limit)

    def quadratic(self, structure: Structure) -> bool:
        return not is_path(structure)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        paths = [_of_path(each, each.directed, self.limit) for each in structures]
        others = [each for each, path in zip(structures, paths, strict=True) if path is None]
        check_all_pairs(self, others)
        found = zip(others, all_pairs(others, directed=True), strict=True)
        rest = (_encode(structure, _signed(there), self.limit) for structure, there in found)
        return Column.of([next(rest) if path is None else path for path in paths])


@dataclass(frozen=True)
class UndirectedDistance(Encoding, name="undirected-distance"):
    """d: length of the shortest path between the nodes of two units, ignoring directions.

    Units of one node have ``WITHIN + k`` and pairs without a path ``UNREACHABLE``, as in :class:`Distance`.

    Args:
        limit: the largest distance; longer ones are clipped to it. None for no limit.
    """

    arity = 2
    causal = True
    codes = ("unreachable", "within")

    limit: int | None = None

    def __post_init__(self) -> None:
        check_limit(self, self.limit)

    def quadratic(self, structure: Structure) -> bool:
        return not is_path(structure)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        paths = [_of_path(each, False, self.limit) for each in structures]
        others = [each for each, path in zip(structures, paths, strict=True) if path is None]
        check_all_pairs(self, others)
        found = zip(others, all_pairs(others, directed=False), strict=True)
        rest = (_encode(each, np.where(there == UNREACHED, UNREACHABLE, there), self.limit) for each, there in found)
        return Column.of([next(rest) if path is None else path for path in paths])


def is_path(structure: Structure) -> bool:
    """Whether the nodes are a path in their order, and each is one unit: a plain sequence."""
    nodes = np.arange(structure.size)
    edges = np.column_stack([nodes[:-1], nodes[1:]])
    return structure.owner is None and np.array_equal(structure.edges, edges)


def _of_path(structure: Structure, signed: bool, limit: int | None) -> Encoded | None:
    """The distances of a path, which depend on the offset only; None for other structures."""
    if not is_path(structure):
        return None
    most = structure.size - 1
    lengths = np.arange(-most, most + 1) if limit is None else np.arange(-most, most + 1).clip(-limit, limit)
    return Encoded.of_offsets(lengths if signed else np.abs(lengths))


def _signed(there: Ids) -> Ids:
    back = there.T
    return np.where(np.minimum(there, back) == UNREACHED, UNREACHABLE, np.where(there <= back, there, -back))


def _encode(structure: Structure, nodes: Ids, limit: int | None) -> Encoded:
    if limit is not None:
        nodes = np.where(nodes == UNREACHABLE, nodes, np.clip(nodes, -limit, limit))
    return Encoded.of_pairs(within(structure, nodes))
