"""Laplacian eigenvectors at both ends of each token, for nodes and edges as tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.encodings._graphs import Graphs
from structpe.encodings._parts import adjacencies, groups
from structpe.encodings._spectra import canonical_signs, laplacians, lowest_dense
from structpe.encodings._tokens import endpoints
from structpe.encodings.base import Column, Encoded, Encoding, check_matrices, check_sizes
from structpe.structure import Structure

__all__ = ["TokenLaplacian"]


@dataclass(frozen=True)
class TokenLaplacian(Encoding, name="token-laplacian"):
    """Laplacian eigenvectors at both ends of each token, for nodes and edges as tokens.

    [P_u, P_v]: float32 (2k), the entries of nodes u and v in the k lowest eigenvectors of I - D^-1/2 A D^-1/2.

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
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        found = [endpoints(self, each) for each in structures]
        counts = np.array([len(nodes) for nodes, _, _ in found], dtype=np.int64)
        check_matrices(self, int(counts.max(initial=0)))
        rows = [np.zeros((0, 0))] * len(found)
        for members in groups(counts):
            b, m = len(members), int(counts[members[0]])
            edges = [found[i][2] for i in members]
            part = np.repeat(np.arange(b), [len(each) for each in edges])
            matrices = laplacians(adjacencies(np.column_stack([part, np.concatenate(edges)]), b, m))
            vectors = lowest_dense(matrices, self.k)[1]
            # Nodes are in reading order here, which breaks ties of signs.
            signed = canonical_signs(vectors, np.broadcast_to(np.arange(m), (b, m)))
            wide = np.zeros((b, m, self.k), dtype=np.float32)
            wide[..., : signed.shape[-1]] = signed
            for i, of_nodes in zip(members.tolist(), wide, strict=True):
                rows[i] = of_nodes[found[i][1]].reshape(-1, 2 * self.k)
        graphs = Graphs.of(structures)
        nothing = np.zeros((0, 2 * self.k), dtype=np.float32)
        return Column.of_units(graphs.units, graphs.of_units(np.concatenate([nothing, *rows])))
