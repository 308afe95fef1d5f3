"""Resistance between two nodes, each edge being a wire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._nearby import joined
from structpe.encodings._parts import same_size
from structpe.encodings._spectra import lowest_dense, plain_laplacians
from structpe.encodings.base import UNREACHABLE, Encoded, Encoding, narrow
from structpe.structure import Structure

__all__ = ["Resistance"]

_ZERO = 1e-8


@dataclass(frozen=True)
class Resistance(Encoding, name="resistance"):
    """R_ts = G_tt + G_ss - 2 G_ts, float64, with G the pseudo-inverse of L = D - A; UNREACHABLE between parts.

    (Klein and Randic 1993; as a position in attention, Zhang et al. 2023.) The effective resistance between the nodes
    of two units if every edge, walked both ways, is a wire of resistance 1, parallel ones counting once: at most the
    length of a shortest path, and less the more ways there are. Units of one node have 0. Values are rounded to 10
    decimals, so that pairs alike have the same. Takes a full decomposition: cubic in the number of nodes.
    """

    arity = 2
    real = True
    version = 2
    codes = ("unreachable",)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> list[Encoded]:
        result: dict[int, Encoded] = {}
        for members in same_size(structures):
            linked = np.stack([joined(structures[i]) for i in members])
            values, vectors = lowest_dense(plain_laplacians(linked), linked.shape[1])
            zero = values < _ZERO
            green = vectors * np.where(zero, 0.0, 1 / np.where(zero, 1.0, values))[:, None] @ vectors.swapaxes(1, 2)
            apart = vectors * zero[:, None] @ vectors.swapaxes(1, 2) < _ZERO  # between parts: no common constant
            own = np.diagonal(green, axis1=1, axis2=2)
            ohms = np.where(apart, UNREACHABLE, np.round(own[:, :, None] + own[:, None] - 2 * green, 10) + 0.0)
            for i, of_nodes in zip(members, ohms, strict=True):
                owner = structures[i].unit_owner
                distinct, index = np.unique(of_nodes[owner[:, None], owner], return_inverse=True)
                result[i] = Encoded(distinct, narrow(index.reshape(len(owner), len(owner))))
        return [result[i] for i in range(len(structures))]
