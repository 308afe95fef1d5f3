"""What an encoding shows of a graph as a set of rows, one per node or pair, whatever the nodes are called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from structpe.encodings import (
    RRWP,
    UNREACHABLE,
    Degree,
    Eigenpairs,
    Eigenvalues,
    Electrostatic,
    Encoding,
    HeatKernel,
    HopOverlap,
    Laplacian,
    Motifs,
    PersonalizedPageRank,
    RandomWalk,
    Resistance,
    UndirectedDistance,
    WeisfeilerLehman,
)
from structpe.structure import Structure

__all__ = ["VIEWS", "View", "differ"]

Rows = NDArray[np.float64]

DIRECTIONS = 16
TOLERANCE = 1e-5
"""Far above what float32 leaves, relative to the largest number; what differs by less counts as the same."""
MANY = 400
"""More eigenvectors than any graph here has nodes."""


def as_is(values: Rows) -> Rows:
    """Numbers of nodes: a row each."""
    return values.reshape(len(values), -1)


def logarithms(counts: Rows) -> Rows:
    """log(1 + count): a row for each node. The largest count must not hide the others."""
    return np.log1p(counts)


def of_node_sorted(pairs: Rows) -> Rows:
    """One number per pair (n, n): a row for each node, what it has with all others, in ascending order.

    "Unreachable" is -1 here: its code point is so large that nothing else would count beside it.
    """
    return np.sort(np.where(pairs == UNREACHABLE, -1.0, pairs), axis=1)


def of_pair(pairs: Rows) -> Rows:
    """Several numbers per pair (n, n, w): a row for each pair."""
    return pairs.reshape(-1, pairs.shape[-1])


def magnitudes(pairs: Rows) -> Rows:
    """|v_uj| and lambda_j of (n, k, 3) eigenpairs."""
    return as_is(np.concatenate([np.abs(pairs[..., 0]), pairs[..., 1]], axis=1))


def of_eigenspaces(pairs: Rows) -> Rows:
    """A row (P_i)_uu for each node, with P_i the projection on the i-th eigenspace; and its eigenvalues."""
    members = _members(pairs)
    return np.concatenate([np.square(pairs[..., 0]) @ members, _values(pairs, members)])


def of_eigenspaces_of_pairs(pairs: Rows) -> Rows:
    """A row (P_i)_uw for each pair of nodes; and the eigenvalues."""
    members, v = _members(pairs), pairs[..., 0]
    projections = np.stack([v[:, m] @ v[:, m].T for m in members.T.astype(bool)], axis=-1)
    return np.concatenate([projections.reshape(len(v) ** 2, -1), _values(pairs, members)])


def _members(pairs: Rows) -> Rows:
    """(k, s) which of the vectors belong to which of the s eigenspaces."""
    number = pairs[0, :, 2]
    return (number[:, None] == np.arange(number.max() + 1)).astype(np.float64)


def _values(pairs: Rows, members: Rows) -> Rows:
    """(2, s) eigenvalue and dimension of each eigenspace: two rows more, the same for all nodes."""
    dimensions = members.sum(axis=0)
    return np.stack([pairs[0, :, 1] @ members / dimensions, dimensions])


@dataclass(frozen=True)
class View:
    """A row of the table.

    Attributes:
        name: of the row.
        encoding: what is computed.
        rows: from its values to rows.
        note: what is to be said.
    """

    name: str
    encoding: Encoding
    rows: Callable[[Rows], Rows] = as_is
    note: str = ""

    def fitted(self, graphs: Sequence[Structure]) -> View:
        """The same with what the encoding must learn of a set, its colours say."""
        return replace(self, encoding=self.encoding.fit(graphs))

    def of(self, graphs: Sequence[Structure]) -> list[Rows]:
        """The rows of each graph."""
        encoded = self.encoding.many(graphs)
        values = [e.values if e.index is None else e.pairs() for e in encoded]
        return [self.rows(np.asarray(each, dtype=np.float64)) for each in values]


VIEWS = [
    View("degree", Degree()),
    View("weisfeiler-lehman", WeisfeilerLehman(iterations=None), note="as many rounds as tell nodes apart"),
    View("eigenvalues, 8", Eigenvalues(components=False, skip=0)),
    View("eigenvalues, all", Eigenvalues(MANY, components=False, skip=0)),
    View("laplacian, 8", Laplacian(), note="signs by rule"),
    View("magnitudes of eigenvectors, 8", Eigenpairs(), magnitudes),
    View("eigenspaces, 8", Eigenpairs(whole=True), of_eigenspaces),
    View("eigenspaces, all", Eigenpairs(MANY), of_eigenspaces),
    View("random-walk, 16 steps", RandomWalk()),
    View("heat-kernel, 16 times", HeatKernel()),
    View("electrostatic", Electrostatic()),
    View("motifs: cycles, diamonds", Motifs(), logarithms),
    View("motifs: the same, clique-4", Motifs((*Motifs().motifs, "clique-4")), logarithms),
    View("undirected-distance", UndirectedDistance(), of_node_sorted),
    View("resistance", Resistance(), of_node_sorted),
    View("personalized-pagerank", PersonalizedPageRank(threshold=None), of_node_sorted),
    View("hop-overlap, 3 hops", HopOverlap(), of_pair),
    View("rrwp, 16 powers", RRWP(steps=16), of_pair),
    View("eigenspaces of pairs, all", Eigenpairs(MANY), of_eigenspaces_of_pairs),
]
"""The rows of the table, those of nodes first."""


def differ(one: Rows, other: Rows) -> bool:
    """Whether two sets of rows are different ones, whatever the order of the rows.

    On any line through the origin the sorted shadows of two equal sets are equal, and move no further than the rows do;
    those of different sets differ on almost every line. So rounding cannot make them differ, while chance alone,
    or less than the tolerance, can hide a difference.
    """
    if one.shape != other.shape:
        return True
    width = one.shape[1]
    lines = np.random.default_rng(0).standard_normal((width, DIRECTIONS)) if width > 1 else np.ones((1, 1))
    lines /= np.linalg.norm(lines, axis=0)
    shadows = [np.sort(rows @ lines, axis=0) for rows in (one, other)]
    return bool(np.abs(shadows[0] - shadows[1]).max() > TOLERANCE * (1 + max(np.abs(one).max(), np.abs(other).max())))
