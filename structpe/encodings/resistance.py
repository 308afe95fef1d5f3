"""Resistance between two nodes, with edges as wires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._nearby import joined
from structpe.encodings._parts import same_size
from structpe.encodings._rounding import distinct
from structpe.encodings._spectra import lowest_dense, plain_laplacians
from structpe.encodings.base import UNREACHABLE, Encoded, Encoding, check_all_pairs, narrow
from structpe.structure import Structure

__all__ = ["Resistance"]

Floats = NDArray[np.float64]

_ZERO = 1e-8
_ERRORS = 64
_LEAST = 2.0**-38  # rounds to 10 decimals


@dataclass(frozen=True)
class Resistance(Encoding, name="resistance"):
    """R_ts = G_tt + G_ss - 2 G_ts, float64, with G the pseudo-inverse of L = D - A; UNREACHABLE between parts.

    (Klein and Randic 1993; as a position in attention, Zhang et al. 2023.) The effective resistance between the nodes
    of two units if every undirected edge is a wire of resistance 1, where parallel ones count once. It is at most the
    length of a shortest path, and decreases with the number of paths. Units of one node have 0. Values that differ by
    less than the errors of the decomposition are made equal, so that equivalent pairs have the same: they are rounded
    to 10 decimals in small graphs, and to fewer in long ones, whose errors are larger. A full decomposition takes cubic
    time in the number of nodes.

    Raises:
        EncodingError: more than 20,000 nodes.
    """

    arity = 2
    real = True
    version = 2
    codes = ("unreachable",)

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> list[Encoded]:
        check_all_pairs(self, structures)
        result: dict[int, Encoded] = {}
        for members in same_size(structures):
            linked = np.stack([joined(structures[i]) for i in members])
            values, vectors = lowest_dense(plain_laplacians(linked), linked.shape[1])
            zero = values < _ZERO
            green = vectors * np.where(zero, 0.0, 1 / np.where(zero, 1.0, values))[:, None] @ vectors.swapaxes(1, 2)
            apart = vectors * zero[:, None] @ vectors.swapaxes(1, 2) < _ZERO  # nodes of different parts
            own = np.diagonal(green, axis1=1, axis2=2)
            ohms = own[:, :, None] + own[:, None] - 2 * green
            for each, i in enumerate(members):
                result[i] = _of_pairs(structures[i], ohms[each], apart[each], values[each])
        return [result[i] for i in range(len(structures))]


def _of_pairs(structure: Structure, ohms: Floats, apart: NDArray[np.bool_], eigenvalues: Floats) -> Encoded:
    ohms = np.where(apart, 0.0, ohms)
    # The error of an eigenvalue is about eps times the largest one, that of its inverse this over its square.
    spread = eigenvalues[-1] / eigenvalues[eigenvalues >= _ZERO].min(initial=1.0)
    distinct_ohms, index = distinct(ohms, max(_LEAST, _ERRORS * np.finfo(np.float64).eps * spread * ohms.max()))
    index[apart] = len(distinct_ohms)
    owner = structure.unit_owner
    used, of_units = np.unique(index[owner[:, None], owner], return_inverse=True)
    values = np.append(distinct_ohms, float(UNREACHABLE))[used]
    return Encoded(values, narrow(of_units.reshape(len(owner), len(owner))))
