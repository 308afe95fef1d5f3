"""The number of edges between a unit's node and the root, with a special value for nodes without a path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from structpe.encodings._from_roots import steps_from_roots
from structpe.encodings._graphs import Graphs
from structpe.encodings.base import Column, Encoded, Encoding
from structpe.structure import Structure

__all__ = ["RootDistance"]


@dataclass(frozen=True)
class RootDistance(Encoding, name="root-distance"):
    """The number of edges between a unit's node and the root, with a special value for nodes without a path.

    h_u: edges on the shortest path from the root, ignoring directions (Zhang et al. 2020, section 3.1).

    As :class:`Depth`, but with a special value for nodes without a path from the root, 99 in the code of Graph-BERT.
    There the root is the node for which a context was sampled.

    Args:
        unreachable: the special value.

    Raises:
        EncodingError: the structure has no root.
    """

    arity = 1
    causal = True

    unreachable: int = 99

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs = Graphs.of(structures)
        steps = steps_from_roots(self, graphs, structures)
        steps[steps < 0] = self.unreachable
        return Column.of_units(graphs.units, graphs.of_units(steps))
