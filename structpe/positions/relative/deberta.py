"""Disentangled attention: vectors of offsets multiplied with units on both sides (He et al. 2021, DeBERTa)."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from structpe.dropout import Dropout
from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import of_arity, offsets
from structpe.positions._rows import Rows
from structpe.positions.blocks._attention import of_layers
from structpe.terms import Lookup, Terms

__all__ = ["DeBERTa"]


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
        reach: m; 512 in the authors' models.
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
        reach: int = 512,
        interactions: tuple[Literal["c2p", "p2c"], ...] = ("c2p", "p2c"),
        dropout: float = 0.0,
    ) -> None:
        if not interactions or len(set(interactions)) < len(interactions):
            raise PositionError(
                f"position model {self.name!r} needs as interactions 'c2p', 'p2c' or both; given are "
                f"{list(interactions)}"
            )
        rows = Rows(of_arity(self.name, encoding, 2), 2 * reach)
        super().__init__(dims, [encoding], R=rows.size, p=len(interactions))
        self.rows, self.reach, self.which, self.dropout = rows, reach, interactions, Dropout(dropout)
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
        return (self.reach - after).clamp(0, 2 * self.reach - 1)
