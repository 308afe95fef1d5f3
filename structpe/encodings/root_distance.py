"""The number of edges between a unit's node and the root, with a special value for nodes without a path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from structpe.encodings._units import of_units
from structpe.encodings.base import Encoded, Encoding
from structpe.structure import Structure

__all__ = ["RootDistance"]


@dataclass(frozen=True)
class RootDistance(Encoding, name="root-distance"):
    """h_u: edges on the shortest path from the root, ignoring directions (Zhang et al. 2020, section 3.1).

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
        if structure.root is None:
            raise self.error(structure, "the structure has no root to count from; give Structure(root=...)")
        n, edges = structure.size, structure.edges
        graph = csr_array((np.ones(len(edges)), edges.T), shape=(n, n))
        hops = shortest_path(graph, directed=False, unweighted=True, indices=structure.root)
        reached = np.isfinite(hops)
        return Encoded(of_units(structure, np.where(reached, np.where(reached, hops, 0), self.unreachable).astype(int)))
