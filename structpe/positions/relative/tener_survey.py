"""Sinusoids of offsets that keep direction, as TENER's paper and the survey have them (Yan et al. 2019)."""

from __future__ import annotations

import math

import torch
from torch import nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import of_all_pairs, offsets
from structpe.positions.relative._offset_sinusoids import everywhere, sinusoids
from structpe.positions.sinusoidal._sinusoids import interleaved
from structpe.terms import Lookup, Terms

__all__ = ["TENERSurvey"]


class TENERSurvey(PositionModel, name="tener-survey"):
    """Sinusoids of offsets that keep direction, as TENER's paper and the survey have them (Yan et al. 2019).

    s_ij = (q_i + u).k_j + (q_i + v).R[t - s],  not divided by sqrt(d_h).

    R[r] (d_h) = sin(r w_0), cos(r w_0), sin(r w_1), ..., w_c = 10000^(-2c/d_h); t - s is query minus key, or the
    negative of any other encoding of pairs. u and v (h, d_h) are of each layer and head. (Survey, eqs. 22 and 23; Yan
    et al. 2019, section 3.2.) The authors' code has one more term, the other sign and other frequencies: ``tener``. The
    survey's W_k is the identity; the projections are not part of a position model. Pairs without a path have R = 0.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.

    Raises:
        PositionError: the encoding does not give one integer per pair.
    """

    spec = Spec(
        "yan2019",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="2*d*l"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="2*d*l*h"),
        note="u and v of a head have its width d/h, so that the factor h is one too many",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Offset()) -> None:
        super().__init__(dims, [of_all_pairs(self.name, encoding)])
        std = math.sqrt(2 / (dims.heads + dims.head))
        self.content = nn.Parameter(torch.randn(dims.layers, dims.heads, dims.head) * std)
        self.position = nn.Parameter(torch.randn(dims.layers, dims.heads, dims.head) * std)

    def prepare(self, positions: Positions) -> Lookup:
        """R (r, d_h) of each distinct value: once for all layers and heads."""
        of_pairs = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        return sinusoids(of_pairs, lambda r, w: interleaved(-r, w), self.dims.head, self.content.dtype)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(
            key=(prepared.map(lambda r: r[:, None]),),
            query=(everywhere(self.content[site.layer][None], prepared),),
            bias=(prepared.map(lambda r: r @ self.position[site.layer].T),),
            scale=math.sqrt(self.dims.head),
        )
