"""Lowest and highest eigenvectors of a weighted graph of columns, standardised to mean 0 and deviation 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.base import check_matrices, check_sizes
from structpe.encodings.columns import groups, ranges
from structpe.encodings.graphs import Graphs, OfNodes, ranks_of_all
from structpe.encodings.spectra import canonical_signs, lowest_dense
from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = ["Tabular"]


Floats = NDArray[np.float64]

_LOW = 0.75
_GAP = 0.5
_FLAT = 1e-7  # a smaller deviation is a rounding error


@dataclass(frozen=True)
class Tabular(OfNodes, name="tabular"):
    """Lowest and highest eigenvectors of a weighted graph of columns, standardised to mean 0 and deviation 1.

    z-scores of the eigenvectors 2..k+1 and of the last k of L = I - D^-1/2 A D^-1/2: float32 (2 max_k).

    A_uw = max(|w_uw|, |w_wu|) with the edge feature ``edge_weight`` as w (1 without the feature), and the largest of
    parallel edges; D is its row sum, 1 for isolated nodes. The vectors are in ascending order of eigenvalues, the first
    k, then the last k; the other columns are 0. In a small graph the two overlap. z = (v - mean) / deviation, with the
    deviation of a sample, or 1 if it is 0. (Tab-PET: the nodes are the columns of a table.)

    k is computed per graph: the number of eigenvalues up to 0.75, without the first. If there are more than 3 of them
    and some gap between neighbours is above 0.5 and above ten times the median gap, only those before the first such
    gap count. k is at least 2 and at most ``max_k``. The authors' code also looks for such a gap at the upper end, but
    does not use it.

    Signs are those of the encoding ``laplacian``; the graph is decomposed as a whole, as in the code. A full
    decomposition takes cubic time in the number of nodes.

    Args:
        max_k: largest k, 2 or more; 10 in the code.

    Raises:
        EncodingError: ``max_k`` is too small, or a weight is not one number.
    """

    real = True

    max_k: int = 10

    def __post_init__(self) -> None:
        check_sizes(self, max_k=self.max_k)
        if self.max_k < 2:
            raise EncodingError(f"encoding {self.name!r}: the largest k is {self.max_k}; give 2 or more")

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> NDArray[np.float32]:
        weights, rank = self._weights(structures), ranks_of_all(structures)
        check_matrices(self, int(graphs.sizes.max(initial=0)))
        result = np.zeros((int(graphs.start[-1]), 2 * self.max_k), dtype=np.float32)
        for members in groups(graphs.sizes):
            nodes = graphs.start[members][:, None] + np.arange(graphs.sizes[members[0]])
            values, vectors = lowest_dense(_laplacians(_matrices(graphs, members, weights)), 1 << 62)
            signed, counts = canonical_signs(vectors, rank[nodes]), _counts(values, self.max_k)
            for k in np.unique(counts):
                same = counts == k
                columns = signed[same]
                scores = _z(np.concatenate([columns[..., 1 : k + 1], columns[..., -k:]], axis=2))
                result[nodes[same], : scores.shape[2]] = scores
        return result

    def _weights(self, structures: Sequence[Structure]) -> Floats:
        """(E,) of all edges."""
        found = [np.zeros(0)]
        for structure in structures:
            given = structure.features.get("edge_weight", np.ones(len(structure.edges)))
            if np.ndim(given) != 1:
                shape = np.shape(given)
                raise self.error(structure, f"the feature 'edge_weight' has shape {shape}; give one number per edge")
            found.append(np.abs(given).astype(np.float64))
        return np.concatenate(found)


def _matrices(graphs: Graphs, members: Ids, weights: Floats) -> Floats:
    """(b, n, n) the largest weight of the edges between two nodes, in either direction, of structures of one size."""
    counts = np.diff(graphs.edge_start)[members]
    edges = ranges(graphs.edge_start[members], counts)
    source, target = (graphs.edges[edges] - np.repeat(graphs.start[members], counts)[:, None]).T
    result = np.zeros((len(members), int(graphs.sizes[members[0]]), int(graphs.sizes[members[0]])))
    np.maximum.at(result, (np.repeat(np.arange(len(members)), counts), source, target), weights[edges])
    return np.maximum(result, result.swapaxes(1, 2))


def _laplacians(each: Floats) -> Floats:
    degree = each.sum(axis=2)
    scale = np.where(degree == 0, 1.0, degree) ** -0.5
    result: Floats = np.eye(each.shape[1]) - scale[:, :, None] * each * scale[:, None, :]
    return result


def _counts(values: Floats, most: int) -> Ids:
    """(b,) k, from the ascending eigenvalues (b, n) of each graph."""
    counts = (values[:, 1:] <= _LOW).sum(axis=1)
    for count in np.unique(counts[counts > 3]):
        same = np.flatnonzero(counts == count)
        gaps = np.diff(values[same, 1 : count + 1], axis=1)
        large = gaps > np.maximum(10 * np.median(gaps, axis=1, keepdims=True), _GAP)
        counts[same] = np.where(large.any(axis=1), large.argmax(axis=1) + 1, count)
    kept: Ids = np.maximum(2, np.minimum(counts, most))
    return kept


def _z(columns: Floats) -> Floats:
    """(b, n, m) with mean 0 and deviation 1 over nodes."""
    deviation = columns.std(axis=1, ddof=int(columns.shape[1] > 1), keepdims=True)
    mean = columns.mean(axis=1, keepdims=True)
    scores: Floats = (columns - mean) / np.where(deviation < _FLAT, 1.0, deviation)
    return scores
