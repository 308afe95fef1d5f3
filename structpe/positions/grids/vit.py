"""One learned vector per patch of an image, in reading order (Dosovitskiy et al. 2021, ViT)."""

from __future__ import annotations

from typing import Self

import torch
from torch.nn import functional

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import Coordinates
from structpe.positions import Cells, Dims, Spec
from structpe.positions.grids._shapes import GridTable

__all__ = ["ViT"]


class ViT(GridTable, name="vit"):
    """One learned vector per patch of an image, in reading order (Dosovitskiy et al. 2021, ViT).

    x_yx + E[1 + y W + x], and x + E[0] for the class token: one table (1 + H W, d), not one per axis.

    A grid of H x W patches; E starts from N(0, 0.02). (Dosovitskiy et al. 2021, section 3.1, eq. 1; appendix D.4 calls
    it 1-dimensional, and finds the 2-dimensional one, ``vit-2d``, no better.) The authors' table has as many rows as
    the image has tokens, so that theirs is ``learned`` by reading order; here a smaller grid is the upper left of H x
    W. The class token is the unit without a place in the grid: see :func:`structpe.transforms.with_class_token`.

    Args:
        dims: sizes of the Transformer.
        encoding: (y, x) per unit.
        shape: (H, W); 14 x 14 are patches of 16 pixels of an image of 224.

    Raises:
        PositionError: a batch has a place beyond the shape, or the encoding does not give two coordinates.
    """

    spec = Spec(
        "dosovitskiy2021", "grid", Cells("A", "APE", learnable=True, recurring=False, unbound=False, params="R*d")
    )

    def __init__(self, dims: Dims, encoding: Encoding = Coordinates(), shape: tuple[int, int] = (14, 14)) -> None:
        super().__init__(dims, encoding, shape, axes=2)

    def resized(self, shape: tuple[int, int]) -> Self:
        """A model for images of another size, its table interpolated from this one, linearly between corners.

        The vector of the class token stays. (Section 3.2: images larger than those of pre-training.)
        """
        other = type(self)(self.dims, **{**self.options(), "shape": shape}).to(self.table)
        image = self.table[1:].T.reshape(1, -1, *self.shape)
        with torch.no_grad():
            between = functional.interpolate(image, size=tuple(shape), mode="bilinear", align_corners=True)
            other.table.copy_(torch.cat([self.table[:1], between[0].flatten(1).T]))
        return other
