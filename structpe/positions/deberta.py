"""Disentangled attention: content to position and position to content (DeBERTa).

t - s is query minus key, or the negative of any other encoding of pairs.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from structpe.dropout import Dropout
from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset, Order
from structpe.errors import PositionError
from structpe.positions import Block, Cells, Dims, Positions, Site, Sources, Spec
from structpe.positions.batch import of_all_pairs, offsets
from structpe.positions.block import allowed, joined, of_layers, softmax, split
from structpe.positions.buckets import log_bucket
from structpe.positions.places import PlaceRows, PlacesModel
from structpe.positions.tables import BOUND, PairModel, Rows
from structpe.terms import Lookup, Terms

__all__ = ["DeBERTa", "DeBERTaEMD", "DeBERTaV2"]

Interactions: TypeAlias = tuple[Literal["c2p", "p2c"], ...]
TABLE1 = Cells("B", "both", learnable=True, recurring=True, unbound=False, params="3*t*d")


def _check_interactions(model: str, interactions: Interactions) -> None:
    if not interactions or len(set(interactions)) < len(interactions):
        raise PositionError(
            f"position model {model!r} needs as interactions 'c2p', 'p2c' or both; given are {list(interactions)}"
        )


def _row(after: Tensor, most: int) -> Tensor:
    """clip(m - r, 0, 2m - 1) of the offsets r, key minus query."""
    return (most - after).clamp(0, 2 * most - 1)


def _bucket_row(after: Tensor, num_buckets: int, max_distance: int | None) -> Tensor:
    """clip(bucket(-r) + B, 0, 2B - 1) of the offsets r, key minus query."""
    before = -after if max_distance is None else log_bucket(-after, num_buckets, max_distance)
    return (before + num_buckets).clamp(0, 2 * num_buckets - 1)


class DeBERTa(PairModel, name="deberta"):
    """Disentangled attention: vectors of offsets multiplied with units on both sides (He et al. 2021, DeBERTa).

    s_ij = (q_i.k_j + q_i.K[r] + Q[r].k_j) / sqrt(3 d_h),  K = A W_k + c_k,  Q = A W_q + c_q,  r = clip(t - s + m).

    A (2m, d) is a table of offsets, shared by all layers; W_k, W_q (d, d) and c_k, c_q (d) are of each layer and split
    into heads; clip leaves rows 0..2m - 1. (He et al. 2021, section 3.1; survey, eqs. 14 and 15.)

    As in the authors' code: both terms have the same r, while eq. 15 of the survey has delta(s, t) in the third. The
    paper's absolute part, the enhanced mask decoder, is a separate model, ``deberta-emd``: add both. Later versions,
    with logarithmic buckets and the matrices of the units for the offsets too, are ``deberta-v2``. Not included: the
    product of two positions ("p2p"), which the code has as an option. Entries start from N(0, 0.02).

    Args:
        max_distance: m; 512 in the authors' models.
        interactions: which terms are used: "c2p", from content to position, is the second, "p2c" the third; with only
            one of them the score is divided by sqrt(2 d_h).
        dropout: of A.

    Raises:
        PositionError: no interaction or one twice.
    """

    spec = Spec(
        "he2021",
        "sequence",
        BOUND("R*d + p*l*(d*d + d)"),
        table1=TABLE1,
        note="the absolute part is 'deberta-emd'; Table 1 counts the tables only, not the matrices of each layer",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Offset(),
        max_distance: int = 512,
        interactions: Interactions = ("c2p", "p2c"),
        dropout: float = 0.0,
    ) -> None:
        super().__init__(dims, encoding)
        _check_interactions(self.name, interactions)
        self.rows = Rows(encoding, 2 * max_distance, partial(_row, most=max_distance))
        self.sizes = {"R": self.rows.size, "p": len(interactions)}
        self.which, self.dropout = interactions, Dropout(dropout)
        self.table = nn.Parameter(torch.randn(self.rows.size, dims.width) * 0.02)
        self.keys, self.queries = (
            of_layers(dims, dims.width, std=0.02) if each in interactions else nn.ModuleList()
            for each in ("c2p", "p2c")
        )

    def prepare(self, positions: Positions) -> Lookup:
        """The vector (r, d) of each distinct value, once for all layers."""
        table = self.dropout(self.table)
        return self.of_pairs(positions).map(lambda values: table[self.rows.of(values)])

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        def of_heads(through: nn.ModuleList) -> tuple[Lookup, ...]:
            if not through:
                return ()
            heads = self.dims.heads, self.dims.head
            return (prepared.map(lambda vectors: through[site.layer](vectors).unflatten(-1, heads)),)

        scale = math.sqrt(1 / (1 + len(self.which)))
        return Terms(key=of_heads(self.keys), query=of_heads(self.queries), scale=scale)


class DeBERTaEMD(PlacesModel, name="deberta-emd"):
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
    """

    spec = Spec(
        "he2021",
        "sequence",
        Cells("A", "APE", learnable=True, recurring=True, unbound=False, params="t*d"),
        note="a part of the survey's row of DeBERTa, in the last layer only",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), max_length: int = 512) -> None:
        super().__init__(dims, encoding, max_length, t=max_length)
        self.table = nn.Parameter(torch.randn(max_length, dims.width) * 0.02)

    def prepare(self, positions: Positions) -> Tensor:
        """(b or 1, n, d) the vectors of the queries."""
        places: PlaceRows = super().prepare(positions)
        rows = self.table[places.queries]
        return rows[None] if isinstance(places.queries, slice) else rows

    def sources(self, sources: Sources, prepared: Tensor, site: Site) -> Sources:
        if site.layer < self.dims.layers - 1:
            return sources
        return Sources(sources.query + prepared, sources.key, sources.value)


class DeBERTaV2(Block, name="deberta-v2"):
    """Disentangled attention whose offsets go through the matrices of the units (DeBERTa's later versions).

    s_ij = (q_i.k_j + q_i.K[r] + Q[r].k_j) / sqrt(3 d_h),  K = W_k n(A) + c_k,  Q = W_q n(A) + c_q.

    r = clip(bucket(t - s) + B, 0, 2B - 1). Buckets have one offset each up to B/2, then logarithmically more, up to
    ``max_distance`` (:func:`structpe.positions.buckets.log_bucket`). A (2B, d) is a table of all layers, n a LayerNorm
    or the identity. W_q, W_k (d, d), c_q, c_k (d) are those of the queries q = W_q x + c_q and the keys k = W_k x + c_k
    of the units, of each layer and split into heads: for this reason this model has its own attention, with W_v and
    W_o, instead of the layer's. (He et al. 2021, and their code of versions 2 and 3: "share_att_key",
    "position_buckets", "norm_rel_ebd".)

    As in ``deberta``, which has matrices for the offsets only, both terms have the same r. The absolute part of the
    paper, ``deberta-emd``, changes the inputs of queries, and is not supported here. Entries of A and of all W start
    from N(0, 0.02).

    Args:
        encoding: signed integers per pair.
        num_buckets: B, 2 or more.
        max_distance: offsets from one less on share the last bucket; above B/2 + 1. None: each offset below B has a
            row.
        interactions: which terms are used, as in ``deberta``.
        normalised: whether n is a LayerNorm, as in the authors' trained models.
        dropout: of n(A) and of attention weights.

    Raises:
        PositionError: other buckets, a ``max_distance`` that is not above them, no interaction or one twice, or no
            single integer per pair.
    """

    drops = True
    spec = Spec(
        "he2021",
        "sequence",
        BOUND("R*d + n*d + 4*l*(d*d + d)"),
        table1=TABLE1,
        note="the absolute part is 'deberta-emd'; a block counts its projections",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Offset(),
        num_buckets: int = 256,
        max_distance: int | None = 512,
        interactions: Interactions = ("c2p", "p2c"),
        normalised: bool = True,
        dropout: float = 0.0,
    ) -> None:
        half = num_buckets // 2
        if num_buckets < 2 or (max_distance is not None and max_distance <= half + 1):
            raise PositionError(
                f"position model {self.name!r} needs 2 buckets or more, and max_distance above {half + 1}, half of "
                f"them and one, or None; given are {num_buckets} buckets and max_distance {max_distance}"
            )
        _check_interactions(self.name, interactions)
        row = partial(_bucket_row, num_buckets=num_buckets, max_distance=max_distance)
        rows = Rows(of_all_pairs(self.name, encoding), 2 * num_buckets, row)
        super().__init__(dims, [encoding], R=rows.size, n=2 * normalised)
        self.rows, self.which, self.dropout = rows, interactions, Dropout(dropout)
        self.table = nn.Parameter(torch.randn(rows.size, dims.width) * 0.02)
        self.norm = nn.LayerNorm(dims.width, eps=1e-7) if normalised else nn.Identity()
        self.query, self.key, self.value, self.out = (of_layers(dims, dims.width, std=0.02) for _ in range(4))

    def prepare(self, positions: Positions) -> Lookup:
        """n(A)[r] (r, d) of each distinct value, once for all layers."""
        of_pairs = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        table = self.dropout(self.norm(self.table))
        return of_pairs.map(lambda values: table[self.rows.of(values)])

    def attend(self, x: Tensor, prepared: Lookup, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        seen = allowed(self.name, terms, x)
        weights = self.dropout(softmax(self.scores(x, prepared, site), seen, site.dropout))
        return self.out[site.layer](joined(weights @ self._of_heads(self.value, site, x))), prepared

    def scores(self, x: Tensor, prepared: Lookup, site: Site) -> Tensor:
        """The s_ij (b, h, n, n) of the units x (b, n, d), before any mask."""
        q, k = (self._of_heads(through, site, x) for through in (self.query, self.key))
        index = prepared.dense_index()[:, None].expand(len(x), self.dims.heads, -1, -1)  # one structure may be for all
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
