"""Weisfeiler-Lehman roles: nodes with similar surroundings have the same number."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from structpe.encodings.base import FIT, check_limits, check_sizes
from structpe.encodings.columns import as_items
from structpe.encodings.graphs import Graphs, OfNodes
from structpe.structure import Ids, Structure

__all__ = ["WeisfeilerLehman"]


@dataclass(frozen=True)
class WeisfeilerLehman(OfNodes, name="weisfeiler-lehman"):
    """Weisfeiler-Lehman roles: nodes with similar surroundings have the same number.

    role(u): the number of the unit's colour after some rounds of Weisfeiler-Lehman refinement.

    All nodes begin with the colour "1". In each round a node's new colour is the MD5 sum of the text
    ``own_neighbour_neighbour_...``, with the sorted colours of its distinct neighbours in any direction. MD5 gives the
    same colour on every machine, and to equivalent nodes of different structures. Values: 1 + i is ``roles[i]``, 0 an
    unknown colour. (Zhang et al. 2020, section 3.1.)

    The authors' code, and that of Dwivedi & Bresson, discards its second round, so a role depends only on the
    degree of a node: ``iterations=1``. Then the numbers are those of the code if :meth:`fit` has seen one graph, as the
    code does. (In later rounds the code refines numbers of colours, which depend on the other graphs of the data set;
    here the colours themselves are refined.)

    Args:
        roles: the known colours, sorted; :meth:`fit` finds them.
        iterations: number of rounds; None for the number after which no round distinguishes more nodes of a structure.
        max_roles: how many colours :meth:`fit` keeps, the most frequent ones; None for all.

    Raises:
        EncodingError: no role is known yet, or a number below 1.
    """

    roles: tuple[str, ...] = ()
    iterations: int | None = 1
    max_roles: int | None = None

    def __post_init__(self) -> None:
        check_limits(self, iterations=self.iterations, max_roles=self.max_roles)
        if self.iterations is not None:
            check_sizes(self, iterations=self.iterations)

    @property
    def size(self) -> int:
        """Number of values, and of the rows of a learned table."""
        return 1 + len(self.roles)

    def fit(self, structures: Sequence[Structure]) -> WeisfeilerLehman:
        graphs = Graphs.of(structures)
        near = graphs.steps(back=True)
        rounds = self.iterations or _rounds(graphs, near)
        colours, names = _refined_often(near, rounds)
        times = dict(zip(names, np.bincount(colours, minlength=len(names)).tolist(), strict=True))
        ranked = sorted(times, key=lambda colour: (-times[colour], colour))
        return replace(self, roles=tuple(sorted(ranked[: self.max_roles])), iterations=rounds)

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> Ids:
        if structures and (not self.roles or self.iterations is None):
            raise self.error(structures[0], f"it knows no role yet; {FIT}")
        colours, names = _refined_often(graphs.steps(back=True), self.iterations or 1)
        known = {colour: i for i, colour in enumerate(self.roles, start=1)}
        numbers: Ids = np.array([known.get(name, 0) for name in names], dtype=np.int64)
        return numbers[colours]


def _refined_often(near: csr_array, rounds: int) -> tuple[Ids, list[str]]:
    """The colour of each node after some rounds; see :func:`_refined`."""
    colours, names = np.zeros(near.shape[0], dtype=np.int64), ["1"]
    for _ in range(rounds):
        colours, names = _refined(near, colours, names)
    return colours, names


def _refined(near: csr_array, colours: Ids, names: Sequence[str]) -> tuple[Ids, list[str]]:
    """The next colours (T,), as indices of sorted names.

    Args:
        near: (T, T) the distinct neighbours of each node, in any direction.
        colours: (T,) index of the name of each node's colour.
        names: sorted; colours then sort as their names do.
    """
    degree = np.diff(near.indptr)
    around = np.repeat(np.arange(len(degree)), degree) * len(names) + colours[near.indices]
    around.sort()  # by node, then by colour: one sort for the neighbours of all nodes
    around %= len(names)
    found, finer = dict[str, int](), np.empty_like(colours)
    for size in np.unique(degree):
        nodes = np.flatnonzero(degree == size)
        own = colours[nodes]
        rows = np.column_stack([own, around[near.indptr[nodes][:, None] + np.arange(size)]])
        _, first, which = np.unique(as_items(rows), return_index=True, return_inverse=True)
        texts = ["_".join([names[colour] for colour in row]) for row in rows[first].tolist()]
        # Half of the sum is enough to distinguish colours, and sorts as the whole does.
        sums = [hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:16] for text in texts]
        finer[nodes] = np.array([found.setdefault(each, len(found)) for each in sums])[which]
    ordered = sorted(found)
    place = np.empty(len(found), dtype=np.int64)
    place[[found[name] for name in ordered]] = np.arange(len(found))
    return place[finer], ordered


def _rounds(graphs: Graphs, near: csr_array) -> int:
    """Number of rounds until one does not distinguish more nodes of any structure than the one before."""
    colours, names = _refined_often(near, 1)
    most, before = 1, _distinct(graphs, colours)
    unsettled = np.ones(len(before), dtype=np.bool_)
    while unsettled.any():
        colours, names = _refined(near, colours, names)
        found = _distinct(graphs, colours)
        unsettled &= found != before
        most, before = most + bool(unsettled.any()), found
    return most


def _distinct(graphs: Graphs, colours: Ids) -> Ids:
    """(g,) number of colours in each structure."""
    width = int(colours.max(initial=0)) + 1
    return np.bincount(np.unique(graphs.graph * width + colours) // width, minlength=len(graphs.sizes))
