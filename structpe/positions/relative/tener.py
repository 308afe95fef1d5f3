"""Sinusoids of offsets that keep direction, without a matrix, as in TENER's code (Yan et al. 2019)."""

from __future__ import annotations

import math

import torch
from torch import nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import of_all_pairs, offsets
from structpe.positions.relative._offset_sinusoids import everywhere, sinusoids
from structpe.positions.sinusoidal._sinusoids import timing
from structpe.terms import Lookup, Terms

__all__ = ["TENER"]


class TENER(PositionModel, name="tener"):
    """Sinusoids of offsets that keep direction, without a matrix, as in TENER's code (Yan et al. 2019).

    s_ij = (q_i + u).k_j + (q_i + v).R[s - t] + k_j.R[t - s],  not divided by sqrt(d_h).

    R[r] (d_h) = cat[sin(r w_c), cos(r w_c)], w_c = 10000^(-c/(d_h/2 - 1)), for c < d_h/2; an odd d_h has a zero after
    them. s - t is key minus query, or any other encoding of pairs. u and v (h, d_h) are of each layer and head. sin(-r)
    = -sin(r): keys before and after are distinguished, as no matrix mixes the channels of R. (Yan et al. 2019, section
    3.2, and their code.)

    As in the code, where the paper and the survey's eq. 22 differ: the last term; s - t where they have t - s; the
    frequencies. Their version is ``tener-survey``. That scores are not scaled is a choice of the paper and part of this
    model; the code has it as an option. It calls u ``r_r_bias`` and v ``r_w_bias``, as if they were Transformer-XL's
    with their names exchanged. Not included, because it does not concern positions: the paper's W_k is the identity,
    while one version of the code learns it; neither has a matrix after the heads. Pairs without a path have R = 0.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        scaled: whether all of s_ij is divided by sqrt(d_h).

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

    def __init__(self, dims: Dims, encoding: Encoding = Offset(), scaled: bool = False) -> None:
        super().__init__(dims, [of_all_pairs(self.name, encoding)])
        self.scale = 1.0 if scaled else math.sqrt(dims.head)
        std = math.sqrt(2 / (dims.heads + dims.head))  # Glorot and Bengio's, as in the code
        self.content = nn.Parameter(torch.randn(dims.layers, dims.heads, dims.head) * std)
        self.position = nn.Parameter(torch.randn(dims.layers, dims.heads, dims.head) * std)

    def prepare(self, positions: Positions) -> tuple[Lookup, Lookup]:
        """R (r, d_h) of each distinct value, and of its negative: once for all layers and heads."""
        of_pairs = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        width, dtype = self.dims.head, self.content.dtype
        return sinusoids(of_pairs, timing, width, dtype), sinusoids(of_pairs, lambda r, w: timing(-r, w), width, dtype)

    def terms(self, prepared: tuple[Lookup, Lookup], site: Site) -> Terms:
        after, before = prepared
        position = self.position[site.layer] * (self.scale / math.sqrt(self.dims.head))
        return Terms(
            key=(after.map(lambda r: r[:, None]),),
            query=(everywhere(self.content[site.layer][None], after), before.map(lambda r: r[:, None])),
            bias=(after.map(lambda r: r @ position.T),),
            scale=self.scale,
        )
