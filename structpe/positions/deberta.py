"""Disentangled attention: content to position and position to content (DeBERTa)."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from structpe.dropout import Dropout
from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset, Order
from structpe.errors import PositionError
from structpe.positions import Block, Cells, Dims, PositionModel, Positions, Site, Sources, Spec
from structpe.positions.block import allowed, joined, of_layers, softmax, split
from structpe.positions.buckets import log_bucket
from structpe.positions.checks import of_all_pairs, of_arity, of_whole, offsets
from structpe.positions.places import Places
from structpe.positions.tables import Rows
from structpe.terms import Lookup, Terms

__all__ = [
    "DeBERTa",
    "DeBERTaEMD",
    "DeBERTaV2",
]


class DeBERTa(PositionModel, name="deberta"):
    """Disentangled attention: vectors of offsets multiplied with units on both sides (He et al. 2021, DeBERTa).

    s_ij = (q_i.k_j + q_i.K[r] + Q[r].k_j) / sqrt(3 d_h),  K = A W_k + c_k,  Q = A W_q + c_q,  r = clip(t - s + m).

    A (2m, d) is a table of offsets, shared by all layers; W_k, W_q (d, d) and c_k, c_q (d) are of each layer and split
    into heads. t - s is query minus key, or the negative of any other encoding of pairs; clip leaves rows 0..2m - 1.
    "c2p", from content to position, is the second term, "p2c" the third; with only one of them the score is divided by
    sqrt(2 d_h). (He et al. 2021, section 3.1; survey, eqs. 14 and 15.)

    As in the authors' code: both terms have the same r, while eq. 15 of the survey has delta(s, t) in the third. The
    paper's absolute part, the enhanced mask decoder, is a separate model, ``deberta-emd``: add both. Later versions,
    with logarithmic buckets and the matrices of the units for the offsets too, are ``deberta-v2``. Not included: the
    product of two positions ("p2p"), which the code has as an option. Entries start from N(0, 0.02).

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        max_distance: m; 512 in the authors' models.
        interactions: which of the two terms are used.
        dropout: of A.

    Raises:
        PositionError: no interaction or one twice, or an encoding without one integer per pair.
    """

    spec = Spec(
        "he2021",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*d + p*l*(d*d + d)"),
        table1=Cells("B", "both", learnable=True, recurring=True, unbound=False, params="3*t*d"),
        note="the absolute part is 'deberta-emd'; Table 1 counts the tables only, not the matrices of each layer",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Offset(),
        max_distance: int = 512,
        interactions: tuple[Literal["c2p", "p2c"], ...] = ("c2p", "p2c"),
        dropout: float = 0.0,
    ) -> None:
        if not interactions or len(set(interactions)) < len(interactions):
            raise PositionError(
                f"position model {self.name!r} needs as interactions 'c2p', 'p2c' or both; given are "
                f"{list(interactions)}"
            )
        rows = Rows(of_arity(self.name, encoding, 2), 2 * max_distance)
        super().__init__(dims, [encoding], R=rows.size, p=len(interactions))
        self.rows, self.max_distance, self.which, self.dropout = rows, max_distance, interactions, Dropout(dropout)
        self.table = nn.Parameter(torch.randn(rows.size, dims.width) * 0.02)
        self.keys, self.queries = (
            of_layers(dims, dims.width, std=0.02) if each in interactions else nn.ModuleList()
            for each in ("c2p", "p2c")
        )

    def prepare(self, positions: Positions) -> Lookup:
        """The vector (r, d) of each distinct value, once for all layers."""
        of_pairs = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        table = self.dropout(self.table)
        return of_pairs.map(lambda values: table[self.rows.of(values, self._row)])

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        def of_heads(vectors: Tensor, through: nn.ModuleList) -> Tensor:
            projected: Tensor = through[site.layer](vectors)
            return projected.view(*projected.shape[:-1], self.dims.heads, self.dims.head)

        return Terms(
            key=(prepared.map(lambda a: of_heads(a, self.keys)),) if self.keys else (),
            query=(prepared.map(lambda a: of_heads(a, self.queries)),) if self.queries else (),
            scale=math.sqrt(1 / (1 + len(self.which))),
        )

    def _row(self, after: Tensor) -> Tensor:
        return (self.max_distance - after).clamp(0, 2 * self.max_distance - 1)


class DeBERTaEMD(PositionModel, name="deberta-emd"):
    """Absolute positions in the queries of the last layer: DeBERTa's enhanced mask decoder (He et al. 2021).

    q_t = W_q (x_t + P[t]) in the last layer; keys and values are projected from x only. P (t_max, d) is learned.

    DeBERTa uses relative positions only, except where it predicts masked words: there it adds absolute ones. Add it to
    ``deberta``; ``deberta-v2``, which has its own attention, does not support it. (He et al. 2021, section 3.2; survey,
    section 4.1.2.)

    The authors' decoder of the masked language model adds P to the output of the layer before the last, and runs the
    last layer, with its own weights, twice over it: what comes out first are the queries of the second run, and keys
    and values stay those of the layer before. Here the last layer runs once, as for any other model, and what is added
    to the queries is not part of its residual sum. Layers here normalise first: P is added to normalised vectors.
    Entries start from N(0, 0.02).

    Args:
        dims: sizes of the Transformer.
        encoding: integers 0, 1, ... per unit.
        max_length: t_max, number of places.

    Raises:
        PositionError: a batch has a place of ``max_length`` or more.
    """

    spec = Spec(
        "he2021",
        "sequence",
        Cells("A", "APE", learnable=True, recurring=True, unbound=False, params="t*d"),
        note="a part of the survey's row of DeBERTa, in the last layer only",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), max_length: int = 512) -> None:
        super().__init__(dims, [of_whole(self.name, encoding)], t=max_length)
        self.table = nn.Parameter(torch.randn(max_length, dims.width) * 0.02)

    def prepare(self, positions: Positions) -> Tensor:
        """(b or 1, n, d) the vectors of the queries."""
        queries = Places.of(self.name, self.encodings[0], positions, len(self.table)).queries
        rows = self.table[queries]
        return rows[None] if isinstance(queries, slice) else rows

    def sources(self, sources: Sources, prepared: Tensor, site: Site) -> Sources:
        if site.layer < self.dims.layers - 1:
            return sources
        return Sources(sources.query + prepared, sources.key, sources.value)


class DeBERTaV2(Block, name="deberta-v2"):
    """Disentangled attention whose offsets go through the matrices of the units (DeBERTa's later versions).

    s_ij = (q_i.k_j + q_i.K[r] + Q[r].k_j) / sqrt(3 d_h),  K = W_k n(A) + c_k,  Q = W_q n(A) + c_q.

    r = clip(bucket(t - s) + B, 0, 2B - 1), t - s being query minus key, or the negative of any other encoding of pairs.
    Buckets have one offset each up to B/2, then logarithmically more, up to ``max_distance``
    (:func:`structpe.positions.buckets.log_bucket`). A (2B, d) is a table of all layers, n a LayerNorm
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
        num_buckets: B, 2 or more.
        max_distance: offsets from one less on share the last bucket; above B/2 + 1. None: each offset below B has a
            row.
        interactions: which of the two terms are used.
        normalised: whether n is a LayerNorm, as in the authors' trained models.
        dropout: of n(A) and of attention weights.

    Raises:
        PositionError: other buckets, a ``max_distance`` that is not above them, no interaction or one twice, or no
            single integer per pair.
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
        num_buckets: int = 256,
        max_distance: int | None = 512,
        interactions: tuple[Literal["c2p", "p2c"], ...] = ("c2p", "p2c"),
        normalised: bool = True,
        dropout: float = 0.0,
    ) -> None:
        _check(self.name, num_buckets, max_distance, interactions)
        rows = Rows(of_all_pairs(self.name, encoding), 2 * num_buckets)
        super().__init__(dims, [encoding], R=rows.size, n=2 * normalised)
        self.rows, self.num_buckets, self.max_distance, self.dropout = rows, num_buckets, max_distance, Dropout(dropout)
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
        before = -after if self.max_distance is None else log_bucket(-after, self.num_buckets, self.max_distance)
        return (before + self.num_buckets).clamp(0, 2 * self.num_buckets - 1)


def _check(model: str, num_buckets: int, max_distance: int | None, interactions: tuple[str, ...]) -> None:
    half = num_buckets // 2
    if num_buckets < 2 or (max_distance is not None and max_distance <= half + 1):
        raise PositionError(
            f"position model {model!r} needs 2 buckets or more, and max_distance above {half + 1}, half of them and "
            f"one, or None; given are {num_buckets} buckets and max_distance {max_distance}"
        )
    if not interactions or len(set(interactions)) < len(interactions):
        raise PositionError(
            f"position model {model!r} needs as interactions 'c2p', 'p2c' or both; given are {list(interactions)}"
        )
