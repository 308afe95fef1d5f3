"""Rotary positions of images with learned frequencies of both axes (Heo et al. 2024)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import Coordinates
from structpe.positions import Cells, Dims, Spec
from structpe.positions.rotary._learned_turns import LearnedTurns
from structpe.positions.rotary._turns import check_even

__all__ = ["MixedRotary"]


class MixedRotary(LearnedTurns, name="mixed-rotary"):
    """Rotary positions of images with learned frequencies of both axes (Heo et al. 2024).

    The channels (2i, 2i+1) of each head are turned by v_i . (y, x); v learned, (d_h/2, 2) per layer and head.

    RoPE-Mixed: unlike ``axial-rotary``, a pair of channels sees diagonal directions too. q.k depends only on the
    offsets on both axes. (Heo et al. 2024, section 3.2, "mixed learnable frequency", and their code.) As there, v
    starts with lengths base^(-2i/d_h) for i < d_h/4, twice, in a direction drawn for each layer and head, and in the
    direction at right angles to it.

    As in the code, except that v has an odd pair more if 4 does not divide d_h. Coordinates of a unit without a place
    (a class token) are -1 and are taken as 0, so that it is not turned.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: (y, x) per unit.
        base: of the lengths that v starts from; 10 in the code.

    Raises:
        PositionError: the width of a head is odd, or another number of coordinates.
    """

    spec = Spec("heo2024", "grid", Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="d*l"))

    interleaved = True

    def __init__(self, dims: Dims, encoding: Encoding = Coordinates(), base: float = 10.0) -> None:
        check_even(self.name, dims)
        super().__init__(dims, encoding, 2, _start(dims, base))

    def _angles(self, vectors: Tensor, layer: int) -> Tensor:
        places = vectors if vectors.is_floating_point() else vectors.clamp(min=0)
        return super()._angles(places, layer)


def _start(dims: Dims, base: float) -> Tensor:
    """(l, h, d_h/2, 2) lengths in two directions at right angles."""
    pairs = dims.head // 2
    length = base ** (-4 * torch.arange(-(-pairs // 2)) / dims.head)
    angle = torch.rand(dims.layers, dims.heads, 1) * 2 * math.pi
    x, y = (
        torch.cat([length * wave(angle), length * wave(angle + math.pi / 2)], dim=-1)[..., :pairs]
        for wave in (torch.cos, torch.sin)
    )
    return torch.stack([y, x], dim=-1)
