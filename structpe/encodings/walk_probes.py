"""Return probabilities of one large graph, estimated by products of its steps with random signs.

For a matrix R (n, m) of random signs, R R^T / m is the identity on average. So (P^a R) and ((P^b)^T R), multiplied
elementwise and averaged over the m columns, are the diagonal of P^(a+b) on average: m numbers for each node and step in
place of n. The first powers, which are sparse, are computed as they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from structpe.structure import Ids

__all__ = ["estimated"]

Floats = NDArray[np.float64]

_TOGETHER = 32  # columns of signs
_CELLS = 1 << 24  # numbers of a matrix of signs, and products of a power that is computed as it is


def estimated(walk: csr_array, symmetric: bool, steps: int, probes: int, seed: int, rank: Ids) -> tuple[Floats, Floats]:
    """(n, steps) estimates of the diagonals of P, P^2, ..., and their standard errors; 0 where they are exact.

    Args:
        walk: (n, n) P, or a symmetric matrix with the same diagonals.
        symmetric: which of both.
        steps: how many powers.
        probes: m, 2 or more.
        seed: of the generator that draws signs.
        rank: (n,) places of nodes in the order in which signs are drawn.
    """
    values, squares = np.zeros((2, walk.shape[0], steps))
    known = _first(walk, symmetric, min(probes * walk.nnz, _CELLS), values)
    generator, ahead = np.random.default_rng(seed), walk.astype(np.float32)
    back = ahead if symmetric else ahead.T.tocsr()
    together = max(1, min(_TOGETHER, _CELLS // max(1, len(rank))))
    for first in range(0, probes if known < steps else 0, together):
        signs = generator.integers(0, 2, (len(rank), min(together, probes - first)), dtype=np.int8)
        to = of = 2 * signs[rank].astype(np.float32) - 1  # P^a R and (P^b)^T R
        for step in range(steps):
            if step % 2 == 0:
                to = ahead @ to
            else:
                of = to if symmetric else back @ of
            if step >= known:
                products = to * of
                values[:, step] += products.sum(axis=1)
                squares[:, step] += np.square(products).sum(axis=1)
    values[:, known:] /= probes
    spread = np.maximum(squares[:, known:] / probes - np.square(values[:, known:]), 0)
    errors = np.zeros_like(values)
    errors[:, known:] = np.sqrt(spread / (probes - 1))
    return values.clip(0, 1), errors


def _first(walk: csr_array, symmetric: bool, most: int, values: Floats) -> int:
    """The first steps, by powers that take up to so many products; how many there are."""
    steps, known = values.shape[1], 2
    power, back = walk, walk if symmetric else walk.T.tocsr()
    values[:, 0] = walk.diagonal()
    if steps == 1:
        return 1
    values[:, 1] = power.multiply(back).sum(axis=1)
    lengths = np.diff(walk.indptr)
    while known < steps and lengths[power.indices].sum() <= most:
        power = power @ walk
        values[:, known] = power.multiply(back).sum(axis=1)
        back, known = power if symmetric else power.T.tocsr(), known + 1
        if known < steps:
            values[:, known] = power.multiply(back).sum(axis=1)
            known += 1
    return known
