"""One learned vector per row and one per column of an image (Dosovitskiy et al. 2021, ViT, appendix D.4)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import Coordinates
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._checks import of_whole
from structpe.positions.grids._shapes import check_shape, coordinates, half, within

__all__ = ["ViT2D"]


class ViT2D(PositionModel, name="vit-2d"):
    """One learned vector per row and one per column of an image (Dosovitskiy et al. 2021, ViT, appendix D.4).

    x_yx + cat[X[1 + x], Y[1 + y]], with tables X (1 + W, d/2) and Y (1 + H, d/2).

    A grid of H x W patches; the tables start from N(0, 0.02). (Dosovitskiy et al. 2021, appendix D.4, "2-dimensional
    positional embedding", X-embedding first.) The paper does not say what its class token gets; here it gets X[0] and
    Y[0].

    Args:
        dims: sizes of the Transformer; the width must be even.
        encoding: (y, x) per unit.
        shape: (H, W).

    Raises:
        PositionError: an odd width, a batch with a place beyond the shape, or not two coordinates.
    """

    spec = Spec(
        "dosovitskiy2021",
        "grid",
        Cells("A", "APE", learnable=True, recurring=False, unbound=False, params="(2 + H + W)*d//2"),
    )

    def __init__(self, dims: Dims, encoding: Encoding = Coordinates(), shape: tuple[int, int] = (14, 14)) -> None:
        check_shape(self.name, shape, 2)
        half(self.name, dims.width)
        height, width = shape
        super().__init__(dims, [of_whole(self.name, encoding)], H=height, W=width)
        self.shape = tuple(shape)
        self.columns = nn.Parameter(torch.randn(1 + width, dims.width // 2) * 0.02)
        self.rows = nn.Parameter(torch.randn(1 + height, dims.width // 2) * 0.02)

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        places = coordinates(self.name, self.encodings[0], prepared.queries(self.encodings[0]), 2)
        y, column = (within(self.name, places, self.shape) + 1).unbind(-1)
        return x + torch.cat([self.columns[column], self.rows[y]], dim=-1)
