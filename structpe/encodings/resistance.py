"""Resistance between two nodes, with edges as wires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._graphs import Graphs
from structpe.encodings._own_values import OwnValues
from structpe.encodings._parts import squares
from structpe.encodings._rounding import to_grid
from structpe.encodings._spectra import lowest_dense, plain_laplacians
from structpe.encodings.base import UNREACHABLE, Column, Encoded, Encoding, check_all_pairs
from structpe.structure import Structure

__all__ = ["Resistance"]

Floats = NDArray[np.float64]

_ZERO = 1e-8
_ERRORS = 64
_LEAST = 2.0**-38  # rounds to 10 decimals


@dataclass(frozen=True)
class Resistance(Encoding, name="resistance"):
    """Resistance between two nodes, with edges as wires.

    R_ts = G_tt + G_ss - 2 G_ts, float64, with G the pseudo-inverse of L = D - A; UNREACHABLE between parts.

    (Klein and Randic 1993; as a position in attention, Zhang et al. 2023.) The effective resistance between the nodes
    of two units if every undirected edge is a wire of resistance 1, where parallel ones count once. It is at most the
    length of a shortest path, and decreases with the number of paths. Units of one node have 0. Each pair of nodes of
    one part has its own row, rounded to more than the errors of the decomposition, so that equivalent pairs have the
    same number: to 10 decimals in small graphs, and to fewer in long ones, whose errors are larger. A full
    decomposition takes cubic time in the number of nodes.

    Raises:
        EncodingError: more than 20,000 nodes.
    """

    arity = 2
    real = True
    version = 2
    codes = ("unreachable",)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        check_all_pairs(self, structures)
        graphs = Graphs.of(structures)
        found = OwnValues(graphs, np.array(float(UNREACHABLE)))
        for members, linked in squares(graphs):
            ohms, there = _ohms(linked)
            found.add(members, ohms.reshape(len(members), -1), there.reshape(len(members), -1))
        return found.column()


def _ohms(linked: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_]]:
    """(b, n, n) resistances, and which nodes are of one part."""
    values, vectors = lowest_dense(plain_laplacians(linked), linked.shape[1])
    zero = values < _ZERO
    inverse = np.where(zero, 0.0, 1 / np.where(zero, 1.0, values))
    green = vectors * inverse[:, None] @ vectors.swapaxes(1, 2)
    together = vectors * zero[:, None] @ vectors.swapaxes(1, 2) >= _ZERO
    own = np.diagonal(green, axis1=1, axis2=2)
    ohms = np.where(together, own[:, :, None] + own[:, None] - 2 * green, 0.0)
    # The error of an eigenvalue is about eps times the largest one, that of its inverse this over its square.
    spread = values[:, -1] * inverse.max(axis=1)
    errors = np.maximum(_LEAST, _ERRORS * np.finfo(np.float64).eps * spread * ohms.max(axis=(1, 2)))
    return np.maximum(to_grid(ohms, errors[:, None, None]), 0.0), together
