"""Bilevel positions: places within a segment at the input, segments in attention (He Z. et al. 2024)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.segments import SegmentNumber, SegmentPlace
from structpe.positions import Cells, Dims, Positions, Site, Spec
from structpe.positions._checks import indices, of_whole
from structpe.positions.rotary._turns import RotaryModel, Turns
from structpe.positions.sinusoidal._sinusoids import inverse_frequencies
from structpe.terms import Terms

__all__ = ["BiPE"]


class Both(NamedTuple):
    """Rows of the table (b, n), and the angles."""

    places: Tensor
    turns: Turns


class BiPE(RotaryModel, name="bipe"):
    """Bilevel positions: places within a segment at the input, segments in attention (He Z. et al. 2024).

    x_t + P_min(w, T-1) at the input, w the place in the segment of t; ``rotary-half`` by the number of the segment.

    Absolute positions say where a unit is in its sentence, relative ones which sentence that is, so that a text of more
    sentences has no new place within one. P (T, d) is learned. (He Z. et al. 2024, section 3.2, BiPE-RoPE, and their
    code, where a full stop or line break ends a segment.) As in the code P starts from N(0, 0.02). Compared with the
    segments of that code. Their BiPE-ALiBi is ``learned`` on "segment-place" with a bias on segments 96 times as steep
    as ``alibi``.

    Segments are those of the feature "separator"; a structure without it is one segment.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        within: w, a whole number per unit.
        between: the number of the segment, one number per unit.
        length: T.
        base: of the inverse frequencies.

    Raises:
        PositionError: the width of a head is odd, or an encoding gives no whole number, or a vector per unit.
    """

    spec = Spec(
        "he2024",
        "sequence",
        Cells("B", "both", learnable=True, recurring=True, unbound=False, params="T*d"),
        note="any number of segments is distinguished, but only T places in each",
    )

    def __init__(
        self,
        dims: Dims,
        within: Encoding = SegmentPlace(),
        between: Encoding = SegmentNumber(),
        length: int = 512,
        base: float = 10000.0,
    ) -> None:
        self._begin(dims, [of_whole(self.name, within), between])
        self.base, self.sizes = base, {"T": length}
        self.table = nn.Parameter(torch.randn(length, dims.width) * 0.02)

    def prepare(self, positions: Positions) -> Both:
        """The places and angles, once for all layers."""
        within, between = self.encodings
        places = indices(self.name, within, positions.queries(within)).clamp(max=len(self.table) - 1)
        frequencies = inverse_frequencies(self.dims.head, places.device, self.base)
        keys, queries = positions[between], positions.queries(between)
        angles = ((each[..., None].double() * frequencies)[:, None] for each in (queries, keys))
        return Both(places, Turns(*angles))

    def inputs(self, x: Tensor, prepared: Both) -> Tensor:
        return x + self.table[prepared.places].to(x.dtype)

    def terms(self, prepared: Both, site: Site) -> Terms:
        return super().terms(prepared.turns, site)
