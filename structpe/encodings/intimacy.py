"""Intimacy: the rank of a unit's node by its personalised PageRank from the root."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._nearby import joined
from structpe.encodings._units import of_units
from structpe.encodings.base import Encoded, Encoding, check_matrices
from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = ["Intimacy"]

_SAME = 1e-9  # scores with a smaller relative difference are equal up to rounding


@dataclass(frozen=True)
class Intimacy(Encoding, name="intimacy"):
    """rank(u): 1 + the number of nodes, except the root, with a higher intimacy to the root; 0 for the root.

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
        if structure.root is None:
            raise self.error(structure, "the structure has no root to be near to; give Structure(root=...)")
        return Encoded(of_units(structure, _ranks(self._scores(structure, structure.root), structure.root)))

    def _scores(self, structure: Structure, root: int) -> NDArray[np.float64]:
        check_matrices(self, structure.size)
        there = joined(structure)
        scale = np.maximum(there.sum(axis=1), 1) ** -0.5
        walk = scale[:, None] * there * scale[None, :]
        start = self.restart * (np.arange(structure.size) == root)
        scores: NDArray[np.float64] = np.linalg.solve(np.eye(structure.size) - (1 - self.restart) * walk, start)
        return scores


def _ranks(scores: NDArray[np.float64], root: int) -> Ids:
    others = np.delete(np.arange(len(scores)), root)
    order = others[np.argsort(-scores[others], kind="stable")]
    falls = np.flatnonzero(np.append(True, scores[order[1:]] < scores[order[:-1]] * (1 - _SAME)))[: len(order)]
    result = np.zeros(len(scores), dtype=np.int64)
    result[order] = 1 + np.repeat(falls, np.diff(np.append(falls, len(order))))
    return result
