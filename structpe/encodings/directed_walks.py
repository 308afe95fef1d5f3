"""Random walks along the edges of a directed graph, and against them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.base import Column, Encoding, check_all_pairs, check_sizes
from structpe.encodings.columns import to_grid
from structpe.encodings.graphs import Graphs, OwnValues
from structpe.errors import EncodingError
from structpe.structure import Structure

__all__ = ["DirectedWalks"]

_ERRORS = 16
_LEAST = 1e-6


@dataclass(frozen=True)
class DirectedWalks(Encoding, name="directed-walks"):
    """Random walks along edges and against them: where they are after 1, 2, ... steps, and in the long run.

    [P_ts, (P^2)_ts, ..., (P^steps)_ts, S_ts, R_ts, ..., (R^steps)_ts, Z_ts]: values (r, 2 (steps + 1)), float64.

    P_uw = A_uw / sum_x A_ux, and P_uu = 1 for a node without an edge to follow, where a walk stays; A_uw = 1 if an edge
    leads from u to w. R is P of the edges turned around. S = c (I - (1 - c) P)^-1 says where a walk is that begins
    anew with probability c at each step, personalised PageRank, and Z the same of R. (Geisler et al. 2023, directional
    random walks; their code, which counts parallel edges.) Edges without a direction lead both ways. Units of one
    node have the value of the node with itself. Numbers are rounded to 10 decimals, fewer for a small c; pairs that no
    walk joins share a row of zeros, and each other pair of nodes has its own.

    Args:
        steps: of the longest walk; 3 in their code.
        restart: c; 0.05 in their code.

    Raises:
        EncodingError: c is not between 0 and 1, or there are more than 20,000 / sqrt(2 (steps + 1)) nodes.
    """

    arity = 2
    real = True

    steps: int = 3
    restart: float = 0.05

    def __post_init__(self) -> None:
        check_sizes(self, steps=self.steps)
        if not _LEAST <= self.restart < 1:
            raise EncodingError(
                f"encoding {self.name!r}: restart is {self.restart}; give a probability between {_LEAST:g} and 1"
            )

    def many(self, structures: Sequence[Structure]) -> Column:
        numbers = 2 * (self.steps + 1)
        check_all_pairs(self, structures, numbers)
        graphs = Graphs.of(structures)
        found = OwnValues(graphs, np.zeros(numbers))
        for members, linked in graphs.adjacencies(directed=True):
            both = np.stack([*self._walks(linked), *self._walks(linked.swapaxes(1, 2))], axis=-1)
            both = to_grid(both, max(2.0**-38, _ERRORS * np.finfo(np.float64).eps / self.restart))
            found.add(members, both, (both != 0).any(axis=-1))
        return found.column()

    def _walks(self, linked: NDArray[np.bool_]) -> list[NDArray[np.float64]]:
        """The (b, n, n) arrays, steps + 1 of them, of adjacencies (source, target)."""
        size = linked.shape[1]
        stays = np.eye(size, dtype=np.bool_) & ~linked.any(axis=2, keepdims=True)
        step = (linked | stays) / np.maximum(linked.sum(axis=2, keepdims=True), 1)
        found = [step]
        while len(found) < self.steps:
            found.append(found[-1] @ step)
        return [*found, self.restart * np.linalg.inv(np.eye(size) - (1 - self.restart) * step)]
