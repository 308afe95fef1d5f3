"""ComRoPE: rotations by exponentials of learned matrices that commute (Yu et al. 2025)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import Coordinates
from structpe.positions import Cells, Dims, Spec
from structpe.positions.rotary._lie import LieModel, block_of, skew

__all__ = ["ComRoPE"]


class ComRoPE(LieModel, name="comrope"):
    """ComRoPE: rotations by exponentials of learned matrices that commute (Yu et al. 2025).

    (q_i, k_j) -> (R(x_i) q_i, R(x_j) k_j),  R(x) = exp((sum_c m_c x_c) (B - B^T)),  B and m_c learned.

    The matrices of all axes are multiples of one, so that they commute: q.k depends only on the offsets on all axes,
    unlike in ``liere``. R turns blocks of g channels; each layer, head and block has its own B (g, g), each layer and
    block its own m_c for each axis. (Yu et al. 2025, "linearly dependent", ComRoPE-LD, and their code; their ComRoPE-AP
    gives each axis blocks of its own.) As in the code m and the entries of B start from N(0, 1), and coordinates c as
    (c + 1/2) / places: the half cancels in offsets. Compared with that code in float64. B is stored as what matters of
    it, the entries above the diagonal of B - B^T, which start from N(0, 2).

    Args:
        dims: sizes of the Transformer.
        encoding: coordinates per unit; a sequence has one axis, the others are 0.
        axes: how many coordinates.
        block: g; None for 8, or the width of a head if that is smaller.
        extent: number of places along an axis in training.

    Raises:
        PositionError: a block is no pair, or wider than a head; the extent is 0 or less; another number of coordinates.
    """

    spec = Spec(
        "yu2025",
        "grid",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="l*p*(h*g*(g - 1)//2 + a)"),
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Coordinates(),
        axes: int = 2,
        block: int | None = None,
        extent: float = 14.0,
    ) -> None:
        self.block = block_of(self.name, dims, block)
        blocks = dims.head // self.block
        super().__init__(dims, encoding, axes, extent, p=blocks, a=axes, g=self.block)
        entries = torch.randn(dims.layers, dims.heads, blocks, 1, self.block * (self.block - 1) // 2)
        self.entries = nn.Parameter(entries * 2**0.5)
        self.multiples = nn.Parameter(torch.randn(dims.layers, blocks, axes))

    def generators(self, layer: int) -> Tensor:
        return skew(self.entries[layer], self.block) * self.multiples[layer, ..., None, None]
