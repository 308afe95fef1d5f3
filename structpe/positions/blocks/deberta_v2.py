"""Disentangled attention whose offsets go through the matrices of the units (DeBERTa's later versions)."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from structpe.dropout import Dropout
from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.errors import PositionError
from structpe.positions import Block, Cells, Dims, Positions, Site, Spec
from structpe.positions._checks import of_all_pairs, offsets
from structpe.positions._rows import Rows
from structpe.positions.blocks._attention import allowed, joined, of_layers, softmax, split
from structpe.positions.buckets._offset_buckets import log_bucket
from structpe.terms import Lookup, Terms

__all__ = ["DeBERTaV2"]


class DeBERTaV2(Block, name="deberta-v2"):
    """Disentangled attention whose offsets go through the matrices of the units (DeBERTa's later versions).

    s_ij = (q_i.k_j + q_i.K[r] + Q[r].k_j) / sqrt(3 d_h),  K = W_k n(A) + c_k,  Q = W_q n(A) + c_q.

    r = clip(bucket(t - s) + B, 0, 2B - 1), t - s being query minus key, or the negative of any other encoding of pairs.
    Buckets have one offset each up to B/2, then logarithmically more, up to ``farthest``
    (:func:`structpe.positions.buckets._offset_buckets.log_bucket`). A (2B, d) is a table of all layers, n a LayerNorm
    or the identity. W_q, W_k (d, d), c_q, c_k (d) are those of the queries q = W_q x + c_q and the keys k = W_k x + c_k
    of the units, of each layer and split into heads: for this reason this model has its own attention, with W_v and
    W_o, instead of the layer's. (He et al. 2021, and their code of versions 2 and 3: "share_att_key",
    "position_buckets", "norm_rel_ebd".) "c2p", from content to position, is the second term, "p2c" the third; with only
    one of them the score is divided by sqrt(2 d_h).

    As in ``deberta``, which has matrices for the offsets only, both terms have the same r. The absolute part of the
    paper, ``deberta-emd``, changes the inputs of queries, and is not supported here. Entries of A and of all W start
    from N(0, 0.02).

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        buckets: B, 2 or more.
        farthest: offsets from one less on share the last bucket; above B/2 + 1. None: each offset below B has a row.
        interactions: which of the two terms are used.
        normalised: whether n is a LayerNorm, as in the authors' trained models.
        dropout: of n(A) and of attention weights.

    Raises:
        PositionError: other buckets, a farthest that is not above them, no interaction or one twice, or no single
            integer per pair.
        UnsupportedTerm: something else than which pairs attend is to act on attention.
    """

    drops = True
    spec = Spec(
        "he2021",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*d + n*d + 4*l*(d*d + d)"),
        table1=Cells("B", "both", learnable=True, recurring=True, unbound=False, params="3*t*d"),
        note="the absolute part is 'deberta-emd'; a block counts its projections",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Offset(),
        buckets: int = 256,
        farthest: int | None = 512,
        interactions: tuple[Literal["c2p", "p2c"], ...] = ("c2p", "p2c"),
        normalised: bool = True,
        dropout: float = 0.0,
    ) -> None:
        _check(self.name, buckets, farthest, interactions)
        rows = Rows(of_all_pairs(self.name, encoding), 2 * buckets)
        super().__init__(dims, [encoding], R=rows.size, n=2 * normalised)
        self.rows, self.buckets, self.farthest, self.dropout = rows, buckets, farthest, Dropout(dropout)
        self.which = interactions
        self.table = nn.Parameter(torch.randn(rows.size, dims.width) * 0.02)
        self.norm = nn.LayerNorm(dims.width, eps=1e-7) if normalised else nn.Identity()
        self.query, self.key, self.value, self.out = (of_layers(dims, dims.width, std=0.02) for _ in range(4))

    def prepare(self, positions: Positions) -> Lookup:
        """n(A)[r] (r, d) of each distinct value, once for all layers."""
        of_pairs = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        table = self.dropout(self.norm(self.table))
        return of_pairs.map(lambda values: table[self.rows.of(values, self._row)])

    def attend(self, x: Tensor, prepared: Lookup, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        seen = allowed(self.name, terms, x)
        weights = self.dropout(softmax(self.scores(x, prepared, site), seen, site.dropout))
        return self.out[site.layer](joined(weights @ self._of_heads(self.value, site, x))), prepared

    def scores(self, x: Tensor, prepared: Lookup, site: Site) -> Tensor:
        """The s_ij (b, h, n, n) of the units x (b, n, d), before any mask."""
        q, k = (self._of_heads(through, site, x) for through in (self.query, self.key))
        index = prepared.places()[:, None].expand(len(x), self.dims.heads, -1, -1)  # one structure may be for all
        score = q @ k.transpose(-1, -2)
        if "c2p" in self.which:
            of_offsets = self._of_offsets(self.key, site, prepared)
            score = score + (q @ of_offsets.transpose(-1, -2)).gather(-1, index)
        if "p2c" in self.which:
            of_offsets = self._of_offsets(self.query, site, prepared)
            score = score + (k @ of_offsets.transpose(-1, -2)).gather(-1, index.transpose(-1, -2)).transpose(-1, -2)
        return score / math.sqrt((1 + len(self.which)) * self.dims.head)

    def _of_heads(self, through: nn.ModuleList, site: Site, x: Tensor) -> Tensor:
        """(..., h, n, d_h) from (..., n, d)."""
        return split(through[site.layer](x), self.dims.heads)

    def _of_offsets(self, through: nn.ModuleList, site: Site, prepared: Lookup) -> Tensor:
        """(b, h, r, d_h) the vector of each distinct value that a structure uses, each made once: from (r, d)."""
        made = self._of_heads(through, site, prepared.table).transpose(0, 1)
        return made[prepared.rows].transpose(1, 2)

    def _row(self, after: Tensor) -> Tensor:
        before = -after if self.farthest is None else log_bucket(-after, self.buckets, self.farthest)
        return (before + self.buckets).clamp(0, 2 * self.buckets - 1)


def _check(model: str, buckets: int, farthest: int | None, interactions: tuple[str, ...]) -> None:
    half = buckets // 2
    if buckets < 2 or (farthest is not None and farthest <= half + 1):
        raise PositionError(
            f"position model {model!r} needs 2 buckets or more, and farthest above {half + 1}, half of them and one, "
            f"or None; given are {buckets} buckets and farthest {farthest}"
        )
    if not interactions or len(set(interactions)) < len(interactions):
        raise PositionError(
            f"position model {model!r} needs as interactions 'c2p', 'p2c' or both; given are {list(interactions)}"
        )
