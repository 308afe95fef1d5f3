"""Depth: the number of edges between a unit's node and the root."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from structpe.encodings._trees import depths, starts
from structpe.encodings._units import of_units
from structpe.encodings.base import Column, Encoded, Encoding
from structpe.structure import Ids, Structure

__all__ = ["Depth"]


@dataclass(frozen=True)
class Depth(Encoding, name="depth"):
    """abs(u) = d(u, root): number of edges on the shortest path from the root, ignoring directions.

    In a tree this is the depth, the absolute structural position of Wang X. et al. 2019 (survey, section 4.3.1). In any
    other graph it is the position of Cai & Lam 2020 in AMR: the level in a breadth-first search from the root. All
    units of a node have its depth.

    Raises:
        EncodingError: the structure has no root, or a node that cannot be reached from the root.
    """

    arity = 1
    causal = True

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        parent, start = _search(self, structures)
        depth = depths(parent)
        return Column.of(
            [Encoded(of_units(s, depth[a:b])) for s, a, b in zip(structures, start, start[1:], strict=False)]
        )


def _search(encoding: Depth, structures: Sequence[Structure]) -> tuple[Ids, Ids]:
    """Parent of each node in one breadth-first search of all structures, from a virtual node above all roots."""
    start = starts(structures)
    top = int(start[-1])
    rooted = [int(a) + _root(encoding, s) for s, a in zip(structures, start, strict=False)]
    edges = [s.edges + a for s, a in zip(structures, start, strict=False)]
    source, target = np.concatenate([*edges, np.array([(top, r) for r in rooted], dtype=np.int64).reshape(-1, 2)]).T
    graph = csr_array((np.ones(len(source)), (source, target)), shape=(top + 1, top + 1))
    parent = breadth_first_order(graph, top, directed=False)[1][:top].astype(np.int64)
    _check_reached(encoding, structures, parent, start)
    return np.where(parent == top, -1, parent), start


def _root(encoding: Depth, structure: Structure) -> int:
    if structure.root is None:
        raise encoding.error(structure, "the structure has no root to count from; give Structure(root=...)")
    return structure.root


def _check_reached(encoding: Depth, structures: Sequence[Structure], parent: Ids, start: Ids) -> None:
    missed = np.flatnonzero(parent < 0)
    if not len(missed):
        return
    which = int(np.searchsorted(start, missed[0], side="right")) - 1
    structure, node = structures[which], int(missed[0] - start[which])
    raise encoding.error(
        structure,
        f"no path leads from the root {structure.root} ({structure.nodes[structure.root or 0]!r}) to node "
        f"{node} ({structure.nodes[node]!r}); connect it, or choose an encoding that allows this, such as 'distance'",
    )
