"""The way from the root, and the relation of parent and child, in two dimensions (Peng et al. 2022)."""

from __future__ import annotations

import math
from typing import cast

from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.child_path import ChildPath, ParentChild
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import offsets
from structpe.terms import Factor, Lookup, Terms

__all__ = ["Peng"]

_PARAMS = "V*e + (D*e + 1)*d + (e + 1)*d + 4*d + 4*(d*d + d)"
"""Formula of the number of parameters."""


class Peng(PositionModel, name="peng"):
    """The way from the root, and the relation of parent and child, in two dimensions (Peng et al. 2022).

    s_ij = (q_i.k_j + a_i.b_j + q_i.K[r_ij] + Q[r_ij].k_j) / sqrt(4 d_h), the four terms of their code.

    Global: a = A z, b = B z, z_u = LN(T cat[E[id_0], E[id_1], ...]), id being the way from the root to u: a node that
    is the i-th of n siblings has i + n(n-1)/2. Local: r_ij is the id of the child where one is the parent of the other,
    or none; Q = A' y, K = B' y, y[r] = LN(T' (+E[r])) if j is the child, LN(T' (-E[r])) if it is the parent, and LN(T'
    0) if neither. E (V, e) is for both, its row 0 is zero; T (D e -> d), T' (e -> d) and A, B, A', B' (d -> d) have
    biases, and all are shared by all layers. (Peng et al. 2022, section 3, and their code.)

    There the content is divided in the same way, by a command-line option instead of 4. Row 0 of E is never trained
    there either, but random; with zero, pairs without a relation have only the vector of T'.

    Args:
        dims: sizes of the Transformer.
        encoding: the way from the root.
        relation: of parent and child; as wide as the ways.
        embedding: e.

    Raises:
        PositionError: ways and relations of another width, or an embedding below 1.
    """

    spec = Spec("peng2022", "tree", Cells("B", "MAM", learnable=True, recurring=True, unbound=False, params=_PARAMS))

    def __init__(
        self, dims: Dims, encoding: ChildPath = ChildPath(), relation: ParentChild = ParentChild(), embedding: int = 8
    ) -> None:
        if encoding.width != relation.width or embedding < 1:
            raise PositionError(
                f"position model {self.name!r} needs ways and relations of one width and an embedding of 1 or more; "
                f"given are widths {encoding.width} and {relation.width}, embedding {embedding}"
            )
        ids, d = 1 + encoding.width * (encoding.width + 1) // 2, dims.width
        super().__init__(dims, [encoding, relation], V=ids, e=embedding, D=encoding.depth)
        self.embedding = nn.Embedding(ids, embedding, padding_idx=0)
        nn.init.xavier_normal_(self.embedding.weight)
        self.ways = nn.Sequential(nn.Linear(encoding.depth * embedding, d), nn.LayerNorm(d))
        self.relations = nn.Sequential(nn.Linear(embedding, d), nn.LayerNorm(d))
        self.of_ways = nn.ModuleList(nn.Linear(d, d) for _ in range(2))
        self.of_relations = nn.ModuleList(nn.Linear(d, d) for _ in range(2))

    def prepare(self, positions: Positions) -> Terms:
        """The terms, which are the same for every layer."""
        query, key = self._local(positions)
        return Terms(factors=(self._global(positions),), key=(key,), query=(query,), scale=0.5)

    def terms(self, prepared: Terms, site: Site) -> Terms:
        return prepared

    def _global(self, positions: Positions) -> Factor:
        ways, of_queries = positions[self.encodings[0]], positions.queries(self.encodings[0])
        left, right = (cast(nn.Linear, each) for each in self.of_ways)
        keys = self._ways(ways)
        queries = keys if of_queries is ways else self._ways(of_queries)
        scale = math.sqrt(4 * self.dims.head)
        a = functional.linear(queries, left.weight / scale, left.bias / scale)
        return Factor(self._heads(a).transpose(1, 2), self._heads(right(keys)).transpose(1, 2))

    def _ways(self, ids: Tensor) -> Tensor:
        """(b, n, d) z of ways (b, n, D)."""
        encoded: Tensor = self.ways(functional.embedding(ids, self._table()).flatten(-2))
        return encoded

    def _local(self, positions: Positions) -> list[Lookup]:
        """Q and K of each relation."""
        related = offsets(self.name, self.encodings[1], positions[self.encodings[1]])
        values = related.table
        y = self.relations(values.sign()[:, None] * functional.embedding(values.abs(), self._table()))
        return [Lookup(self._heads(of(y)), related.rows, related.index) for of in self.of_relations]

    def _table(self) -> Tensor:
        """E, whose row 0 is zero."""
        return functional.pad(self.embedding.weight[1:], (0, 0, 1, 0))

    def _heads(self, vectors: Tensor) -> Tensor:
        return vectors.reshape(*vectors.shape[:-1], self.dims.heads, self.dims.head)
