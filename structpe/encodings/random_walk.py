"""Random walks: the probability of a return after 1, 2, ... steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._graphs import Graphs
from structpe.encodings._walks import Walks
from structpe.encodings.base import Column, Encoded, Encoding, check_sizes
from structpe.structure import Structure

__all__ = ["RandomWalk"]

_SECONDS = 1e-9
"""Per start, edge (or node) and step on a large graph: 0.5 to 1.0 on random graphs of 5,000 to 20,000 nodes."""


@dataclass(frozen=True)
class RandomWalk(Encoding, name="random-walk"):
    """Random walks: the probability of a return after 1, 2, ... steps.

    p_u = [(P)_uu, (P^2)_uu, ..., (P^steps)_uu] with P = D^-1 A: float32 (steps).

    (Dwivedi et al. 2022, LSPE; Rampasek et al. 2022, GraphGPS.) A counts edges, each of several parallel ones and each
    self-loop once; D is its row sum, the out-degree in a directed graph. Rows of nodes without an outgoing edge are
    zero, and so are the values of isolated nodes. LSPE writes A D^-1, whose powers have the same diagonals if A is
    symmetric. All units of a node have its vector.

    Walks begin at each node and follow all edges, so a large graph takes time nodes x edges x steps. If this would take
    longer than ``minutes``, by an estimate for one core, an error is raised before it begins.

    All values of a directed graph without cycles are zero, unless directions are ignored. Nodes that an automorphism
    exchanges have the same vector.

    Args:
        steps: number of steps; computed in float64.
        undirected: ignore directions: max(A, A^T) instead of A.
        minutes: time limit for one graph, by an estimate; does not change values.
    """

    arity = 1
    real = True

    steps: int = 16
    undirected: bool = False
    minutes: int = 10

    def __post_init__(self) -> None:
        check_sizes(self, steps=self.steps, minutes=self.minutes)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs = Graphs.of(structures)
        self._check_time(structures, graphs)
        return Column.of_units(graphs.units, graphs.of_units(Walks.of(graphs, self.undirected).returns(self.steps)))

    def _check_time(self, structures: Sequence[Structure], graphs: Graphs) -> None:
        edges = np.diff(graphs.edge_start) * np.where(graphs.directed & (not self.undirected), 1, 2)
        minutes = _SECONDS / 60 * graphs.sizes * (graphs.sizes + edges) * self.steps
        for which in np.flatnonzero(minutes > self.minutes)[:1]:
            least = math.ceil(minutes[which])
            raise self.error(
                structures[which],
                f"{self.steps} steps from each of {graphs.sizes[which]} nodes along {edges[which]} edges take about "
                f"{least} minutes, and {self.minutes} are allowed; take fewer steps, encode parts of the graph "
                f"(structpe.transforms.subgraph), or give minutes: {least} to allow it",
            )
