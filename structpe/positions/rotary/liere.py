"""LieRE: queries and keys rotated by exponentials of learned matrices (Ostmeier et al. 2024)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import Coordinates
from structpe.positions import Cells, Dims, Spec
from structpe.positions.rotary._lie import LieModel, block_of, skew

__all__ = ["LieRE"]


class LieRE(LieModel, name="liere"):
    """LieRE: queries and keys rotated by exponentials of learned matrices (Ostmeier et al. 2024).

    (q_i, k_j) -> (R(x_i) q_i, R(x_j) k_j),  R(x) = exp(sum_c x_c (U_c - U_c^T)), U_c learned, upper triangular.

    R turns blocks of g channels of a head; each layer, head, block and axis has its own U_c (g, g), and channels after
    the last whole block stay as they are. With g = 2 this is ``mixed-rotary`` with another start. (Ostmeier et al.
    2024, section 4; their code: "learned", per layer and head. g = 8 is their LieRE_8; LieRE_64 has g = d_h, whose
    exponentials take much longer.) As there, the entries start from U(0, 2 pi), and coordinates go from 0 to 1: they
    are divided by ``extent``.

    On one axis the rotations commute and scores depend on offsets only; on several they do not, unless g = 2: then
    scores depend on both places. Compared with the authors' code in float64. A class token, without a place, is not
    turned.

    Args:
        dims: sizes of the Transformer.
        encoding: coordinates per unit; a sequence has one axis, the others are 0.
        axes: how many coordinates.
        block: g; None for 8, or the width of a head if that is smaller.
        extent: largest coordinate in training.

    Raises:
        PositionError: a block is no pair, or wider than a head; the extent is 0 or less; another number of coordinates.
    """

    spec = Spec(
        "ostmeier2024",
        "grid",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="l*h*p*a*g*(g - 1)//2"),
        note="relative on one axis; on several axes rotations do not commute, but for blocks of 2",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Coordinates(),
        axes: int = 2,
        block: int | None = None,
        extent: float = 13.0,
    ) -> None:
        self.block = block_of(self.name, dims, block)
        blocks = dims.head // self.block
        super().__init__(dims, encoding, axes, extent, p=blocks, a=axes, g=self.block)
        entries = torch.rand(dims.layers, dims.heads, blocks, axes, self.block * (self.block - 1) // 2)
        self.entries = nn.Parameter(entries * 2 * math.pi)

    def generators(self, layer: int) -> Tensor:
        return skew(self.entries[layer], self.block)
