"""Intimacy: the rank of a unit's node by its personalised PageRank from the root."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._graphs import Graphs
from structpe.encodings._parts import squares
from structpe.encodings.base import Column, Encoded, Encoding, check_matrices
from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = ["Intimacy"]

Floats = NDArray[np.float64]

_SAME = 1e-9  # scores with a smaller relative difference are equal up to rounding


@dataclass(frozen=True)
class Intimacy(Encoding, name="intimacy"):
    """Intimacy: the rank of a unit's node by its personalised PageRank from the root.

    rank(u): 1 + the number of nodes, except the root, with a higher intimacy to the root; 0 for the root.

    Intimacy is row ``root`` of S = c (I - (1 - c) D^-1/2 A D^-1/2)^-1, with A_ij = 1 if an edge joins i and j in either
    direction, and D its row sum (Zhang et al. 2020, section 3.1; their text normalises by columns, their code by rows
    and columns, as here). Nodes with the same intimacy have the same rank, so that it does not depend on the numbering
    of nodes; in the code they have different ranks, by the order of sorting. All units of a node have its rank.

    The code ranks the k nodes of a context by their intimacy in the whole graph:
    :func:`structpe.transforms.contexts.contexts`.

    Args:
        restart: c.

    Raises:
        EncodingError: the structure has no root, or c is not between 0 and 1.
    """

    arity = 1

    restart: float = 0.15

    def __post_init__(self) -> None:
        if not 0 < self.restart < 1:
            raise EncodingError(f"encoding 'intimacy': restart is {self.restart}; give a probability between 0 and 1")

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        roots = np.array([self._root(each) for each in structures], dtype=np.int64)
        graphs = Graphs.of(structures)
        check_matrices(self, int(graphs.sizes.max(initial=0)))
        result = np.empty(int(graphs.start[-1]), dtype=np.int64)
        for members, linked in squares(graphs):
            places = graphs.start[members][:, None] + np.arange(linked.shape[1])
            result[places] = _ranks(self._scores(linked, roots[members]), roots[members])
        return Column.of_units(graphs.units, graphs.of_units(result))

    def _root(self, structure: Structure) -> int:
        if structure.root is None:
            raise self.error(structure, "the structure has no root to be near to; give Structure(root=...)")
        return structure.root

    def _scores(self, linked: NDArray[np.bool_], roots: Ids) -> Floats:
        """(b, n) of (b, n, n) adjacencies."""
        scale = np.maximum(linked.sum(axis=2), 1) ** -0.5
        walk = scale[:, :, None] * linked * scale[:, None]
        start = self.restart * (np.arange(linked.shape[1]) == roots[:, None])
        scores: Floats = np.linalg.solve(np.eye(linked.shape[1]) - (1 - self.restart) * walk, start[..., None])
        return scores[..., 0]


def _ranks(scores: Floats, roots: Ids) -> Ids:
    """(b, n) ranks of scores; those of roots, which count as the highest, are 0."""
    np.put_along_axis(scores, roots[:, None], np.inf, axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")
    falling = np.take_along_axis(scores, order, axis=1)
    falls = np.zeros(scores.shape, dtype=np.int64)
    falls[:, 1:] = np.arange(1, scores.shape[1]) * (falling[:, 1:] < falling[:, :-1] * (1 - _SAME))
    result = np.empty_like(falls)
    np.put_along_axis(result, order, np.maximum.accumulate(falls, axis=1), axis=1)
    return result
