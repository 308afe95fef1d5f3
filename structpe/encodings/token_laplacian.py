"""Laplacian eigenvectors at both ends of each token, for nodes and edges as tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structpe.encodings._parts import adjacencies
from structpe.encodings._spectra import canonical_signs, laplacians, lowest_dense
from structpe.encodings._tokens import endpoints
from structpe.encodings._units import of_units
from structpe.encodings.base import Encoded, Encoding, check_matrices, check_sizes
from structpe.structure import Structure

__all__ = ["TokenLaplacian"]


@dataclass(frozen=True)
class TokenLaplacian(Encoding, name="token-laplacian"):
    """[P_u, P_v]: float32 (2k), the entries of nodes u and v in the k lowest eigenvectors of I - D^-1/2 A D^-1/2.

    u = v for a token of a node; u is the source and v the target for a token of an edge, see
    :func:`structpe.transforms.edge_tokens.edge_tokens`; without it every token is a node. In the original graph A_ij =
    1 if an edge joins i and j, in either direction; D is its row sum, at least 1. As in the code of TokenGT (Kim et al.
    2022) the graph is decomposed as a whole, the trivial eigenvector is the first, and missing columns of a small graph
    are zero. Signs are those of :class:`Laplacian`. It uses a full decomposition, for graphs of a few thousand nodes.

    Args:
        k: number of eigenvectors.

    Raises:
        EncodingError: a token of an edge does not have one source and one target.
    """

    arity = 1
    real = True

    k: int = 16

    def __post_init__(self) -> None:
        check_sizes(self, k=self.k)

    def one(self, structure: Structure) -> Encoded:
        nodes, ends, edges = endpoints(self, structure)
        m = len(nodes)
        check_matrices(self, m)
        # Nodes are in reading order here, which breaks ties of signs.
        with_part = np.column_stack([np.zeros(len(edges), dtype=np.int64), edges])
        _, vectors = lowest_dense(laplacians(adjacencies(with_part, 1, m)), self.k)
        rows = np.zeros((m, self.k), dtype=np.float32)
        rows[:, : vectors.shape[-1]] = canonical_signs(vectors, np.arange(m)[None])[0]
        return Encoded(of_units(structure, rows[ends].reshape(len(ends), 2 * self.k)))
