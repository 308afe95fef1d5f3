"""Six ways to scale eigenvectors, as in GraphGPS, and that of SAN.

Shapes: b graphs of one size, c nodes each, m eigenvectors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

__all__ = ["NORMS", "Norm"]

Floats = NDArray[np.float64]

Norm: TypeAlias = Literal["L2", "L1", "abs-max", "wavelength", "wavelength-asin", "wavelength-soft", "rows"]
"""How eigenvectors are scaled: to length 1 (L2), to a sum of magnitudes of 1 (L1), to a largest magnitude of 1
(abs-max); the latter, its arcsine, or a soft maximum, times the wavelength 1/sqrt(lambda) (wavelength...); or each
row, the entries of one node, to length 1 (rows)."""

_EPS = 1e-12


def _l2(vectors: Floats, values: Floats) -> Floats:
    return _over(vectors, np.linalg.norm(vectors, axis=1, keepdims=True))


def _l1(vectors: Floats, values: Floats) -> Floats:
    return _over(vectors, np.abs(vectors).sum(axis=1, keepdims=True))


def _abs_max(vectors: Floats, values: Floats) -> Floats:
    return _over(vectors, _largest(vectors))


def _wavelength(vectors: Floats, values: Floats) -> Floats:
    return _over(vectors, _largest(vectors) * _root(values) * 2 / np.pi)


def _wavelength_asin(vectors: Floats, values: Floats) -> Floats:
    waves = np.arcsin(np.clip(_over(vectors, _largest(vectors)), -1, 1))  # rounding may exceed the range
    return _over(waves, _root(values))


def _wavelength_soft(vectors: Floats, values: Floats) -> Floats:
    sizes = np.abs(vectors)
    return _over(vectors, (softmax(sizes, axis=1) * sizes).sum(axis=1, keepdims=True) * _root(values))


def _rows(vectors: Floats, values: Floats) -> Floats:
    return _over(vectors, np.linalg.norm(vectors, axis=2, keepdims=True))


NORMS: Mapping[Norm, Callable[[Floats, Floats], Floats]] = {
    "L2": _l2,
    "L1": _l1,
    "abs-max": _abs_max,
    "wavelength": _wavelength,
    "wavelength-asin": _wavelength_asin,
    "wavelength-soft": _wavelength_soft,
    "rows": _rows,
}
"""(eigenvectors (b, c, m), eigenvalues (b, m)) -> (b, c, m)."""


def _largest(vectors: Floats) -> Floats:
    result: Floats = np.abs(vectors).max(axis=1, keepdims=True)
    return result


def _root(values: Floats) -> Floats:
    """(b, 1, m) sqrt(lambda), or 1 if lambda is 0."""
    return np.where(values < _EPS, 1.0, np.sqrt(np.maximum(values, 0.0)))[:, None]


def _over(vectors: Floats, sizes: Floats) -> Floats:
    return vectors / np.maximum(sizes, _EPS)
