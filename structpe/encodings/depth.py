"""Depth: the number of edges between a unit's node and the root."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._from_roots import steps_from_roots
from structpe.encodings._graphs import Graphs
from structpe.encodings.base import Column, Encoded, Encoding
from structpe.structure import Structure

__all__ = ["Depth"]


@dataclass(frozen=True)
class Depth(Encoding, name="depth"):
    """Depth: the number of edges between a unit's node and the root.

    abs(u) = d(u, root): number of edges on the shortest path from the root, ignoring directions.

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
        graphs = Graphs.of(structures)
        depth = steps_from_roots(self, graphs, structures)
        if len(missed := np.flatnonzero(depth < 0)):
            which = int(graphs.graph[missed[0]])
            structure, node = structures[which], int(missed[0] - graphs.start[which])
            raise self.error(
                structure,
                f"no path leads from the root {structure.root} ({structure.nodes[structure.root or 0]!r}) to node "
                f"{node} ({structure.nodes[node]!r}); connect it, or choose an encoding that allows this, such as "
                f"'distance'",
            )
        return Column.of_units(graphs.units, graphs.of_units(depth))
