"""The way from the root, and the relation of parent and child, in two dimensions (Peng et al. 2022)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from structpe.encodings.child_path import ChildPath, ParentChild
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import offsets
from structpe.terms import Factor, Lookup, Terms

__all__ = ["Peng"]


class Peng(PositionModel, name="peng"):
    """s_ij = (q_i.k_j + a_i.b_j + q_i.K[r_ij] + Q[r_ij].k_j) / sqrt(4 d_h), the four terms of their code.

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

    spec = Spec(
        "peng2022",
        "tree",
        Cells(
            "B",
            "MAM",
            learnable=True,
            recurring=True,
            unbound=False,
            params="V*e + (D*e + 1)*d + (e + 1)*d + 4*d + 4*(d*d + d)",
        ),
    )

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
        return Terms(
            factors=(self._global(positions),),
            key=(self._local(positions, self.of_relations[1]),),
            query=(self._local(positions, self.of_relations[0]),),
            scale=0.5,
        )

    def terms(self, prepared: Terms, site: Site) -> Terms:
        return prepared

    def _global(self, positions: Positions) -> Factor:
        encoding = self.encodings[0]
        scale = math.sqrt(4 * self.dims.head)
        left, right = (
            linear(self.ways(self._embedded(ways).flatten(-2)))
            for linear, ways in zip(self.of_ways, (positions.queries(encoding), positions[encoding]), strict=True)
        )
        return Factor(self._heads(left).transpose(1, 2) / scale, self._heads(right).transpose(1, 2))

    def _local(self, positions: Positions, linear: nn.Module) -> Lookup:
        def vectors(values: Tensor) -> Tensor:
            signed = values.sign()[:, None] * self._embedded(values.abs())
            return self._heads(linear(self.relations(signed)))

        return offsets(self.name, self.encodings[1], positions[self.encodings[1]]).map(vectors)

    def _embedded(self, ids: Tensor) -> Tensor:
        embedded: Tensor = self.embedding(ids)
        return torch.where(ids[..., None] == 0, 0, embedded)

    def _heads(self, vectors: Tensor) -> Tensor:
        return vectors.reshape(*vectors.shape[:-1], self.dims.heads, self.dims.head)
