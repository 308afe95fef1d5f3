"""Lowest and highest eigenvectors of a weighted graph of columns, standardised to mean 0 and deviation 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._nearby import ranks_of_all
from structpe.encodings._parts import same_size
from structpe.encodings._spectra import canonical_signs, lowest_dense
from structpe.encodings._units import of_units
from structpe.encodings.base import Column, Encoded, Encoding, check_matrices, check_sizes
from structpe.errors import EncodingError
from structpe.structure import Structure

__all__ = ["Tabular"]

Floats = NDArray[np.float64]

_LOW = 0.75
_GAP = 0.5
_FLAT = 1e-7  # a smaller deviation is a rounding error


@dataclass(frozen=True)
class Tabular(Encoding, name="tabular"):
    """z-scores of the eigenvectors 2..k+1 and of the last k of L = I - D^-1/2 A D^-1/2: float32 (2 most).

    A_uw = max(|w_uw|, |w_wu|) with the edge feature ``edge_weight`` as w (1 without the feature), and the largest of
    parallel edges; D is its row sum, 1 for isolated nodes. The vectors are in ascending order of eigenvalues, the first
    k, then the last k; the other columns are 0. In a small graph the two overlap. z = (v - mean) / deviation, with the
    deviation of a sample, or 1 if it is 0. (Tab-PET: the nodes are the columns of a table.)

    k is computed per graph: the number of eigenvalues up to 0.75, without the first. If there are more than 3 of them
    and some gap between neighbours is above 0.5 and above ten times the median gap, only those before the first such
    gap count. k is at least 2 and at most ``most``. The authors' code also looks for such a gap at the upper end, but
    does not use it.

    Signs are those of the encoding ``laplacian``; the graph is decomposed as a whole, as in the code. A full
    decomposition takes cubic time in the number of nodes.

    Args:
        most: largest k, 2 or more; 10 in the code.

    Raises:
        EncodingError: ``most`` is too small, or a weight is not one number.
    """

    arity = 1
    real = True

    most: int = 10

    def __post_init__(self) -> None:
        check_sizes(self, most=self.most)
        if self.most < 2:
            raise EncodingError(f"encoding {self.name!r}: the largest k is {self.most}; give 2 or more")

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        result: dict[int, Encoded] = {}
        for members in same_size(structures):
            check_matrices(self, structures[members[0]].size)
            values, vectors = lowest_dense(_laplacians([self._weights(structures[i]) for i in members]), 1 << 62)
            signed = canonical_signs(vectors, ranks_of_all([structures[i] for i in members]).reshape(values.shape))
            for i, lambdas, columns in zip(members, values, signed, strict=True):
                k = _count(lambdas, self.most)
                scores = _z(np.concatenate([columns[:, 1 : k + 1], columns[:, -k:]], axis=1))
                wide = np.zeros((len(scores), 2 * self.most), dtype=np.float32)
                wide[:, : scores.shape[1]] = scores
                result[i] = Encoded(of_units(structures[i], wide))
        return Column.of([result[i] for i in range(len(structures))])

    def _weights(self, structure: Structure) -> Floats:
        """(n, n) symmetric."""
        given = structure.features.get("edge_weight", np.ones(len(structure.edges)))
        if np.ndim(given) != 1:
            shape = np.shape(given)
            raise self.error(structure, f"the feature 'edge_weight' has shape {shape}; give one number per edge")
        weights = np.zeros((structure.size, structure.size))
        np.maximum.at(weights, tuple(structure.edges.T), np.abs(given).astype(np.float64))
        return np.maximum(weights, weights.T)


def _laplacians(weights: Sequence[Floats]) -> Floats:
    each = np.stack(weights)
    degree = each.sum(axis=2)
    scale = np.where(degree == 0, 1.0, degree) ** -0.5
    result: Floats = np.eye(each.shape[1]) - scale[:, :, None] * each * scale[:, None, :]
    return result


def _count(values: Floats, most: int) -> int:
    """k, from the ascending eigenvalues of one graph."""
    low = values[1:][values[1:] <= _LOW]
    count = len(low)
    if count > 3:
        gaps = np.diff(low)
        large = np.flatnonzero(gaps > max(10 * float(np.median(gaps)), _GAP))
        count = int(large[0]) + 1 if len(large) else count
    return max(2, min(count, most))


def _z(columns: Floats) -> Floats:
    deviation = columns.std(axis=0, ddof=int(len(columns) > 1))
    scores: Floats = (columns - columns.mean(axis=0)) / np.where(deviation < _FLAT, 1.0, deviation)
    return scores
