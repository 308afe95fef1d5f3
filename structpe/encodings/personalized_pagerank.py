"""Personalised PageRank: how often a walk that starts anew at one node is at another."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from structpe.encodings._nearby import joined
from structpe.encodings.base import UNREACHABLE, Encoded, Encoding, narrow
from structpe.errors import EncodingError
from structpe.structure import Structure

__all__ = ["PersonalizedPageRank"]

_LEAST = 1e-9  # below, the matrix is as good as singular


@dataclass(frozen=True)
class PersonalizedPageRank(Encoding, name="personalized-pagerank"):
    """-log(P_ts + 10^-9), float64, of P = c (I - (1 - c) A D^-1)^-1: how rarely a walk from the key is at the query.

    The walk goes along edges either way, A_ij = 1 where one joins i and j and D its column sum, and at each step starts
    anew with probability c; P_ts is the part of the time that it is at t, having started at s. A node without an edge
    is left by starting anew alone, and has P_ss = c. (Page et al. 1999; as Zuegner et al. 2021 code it.) Units have the
    values of their nodes. Values are rounded to 10 decimals, so that nodes alike have the same.

    Args:
        restart: c.
        threshold: pairs with a smaller P are UNREACHABLE; the authors' is e^-5. None keeps them all.

    Raises:
        EncodingError: c is not between 0 and 1, or a threshold that is negative.
    """

    arity = 2
    real = True
    version = 2
    codes = ("unreachable",)

    restart: float = 0.15
    threshold: float | None = 0.006737946999085467

    def __post_init__(self) -> None:
        if not _LEAST <= self.restart < 1:
            raise EncodingError(
                f"encoding {self.name!r}: restart is {self.restart}; give a probability between 0 and 1"
            )
        if self.threshold is not None and not 0 <= self.threshold < math.inf:
            raise EncodingError(f"encoding {self.name!r}: threshold is {self.threshold}; give 0 or more, or None")

    def one(self, structure: Structure) -> Encoded:
        there = joined(structure).astype(np.float64)
        walk = there / np.maximum(there.sum(axis=0), 1)
        share = self.restart * np.linalg.inv(np.eye(structure.size) - (1 - self.restart) * walk)
        rarity = np.round(-np.log(share + 1e-9), 10)
        if self.threshold is not None:
            rarity[rarity > (-math.log(self.threshold) if self.threshold > 0 else np.inf)] = UNREACHABLE
        owner = structure.unit_owner
        values, index = np.unique(rarity[owner[:, None], owner[None, :]], return_inverse=True)
        return Encoded(values, narrow(index.reshape(len(owner), len(owner))))
