"""One learned vector per place and frame of a video (Arnab et al. 2021, ViViT)."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import Coordinates
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, Spec
from structpe.positions.grids._shapes import GridTable

__all__ = ["ViViT"]


class ViViT(GridTable, name="vivit"):
    """One learned vector per place and frame of a video (Arnab et al. 2021, ViViT).

    x_tyx + E[1 + (t H + y) W + x], and x + E[0] for the class token: one table (1 + F H W, d) of all tubelets.

    F x H x W tubelets; E starts from N(0, 0.02). (Arnab et al. 2021, section 3.1 and model 1, and their code with
    ``learned_1d``.) It is better to start from a table trained on images: :meth:`start_from` repeats it over time
    (section 3.4). A smaller video uses the first corner of the table. The class token is the unit without a place in
    the grid.

    Of their models with factors of space and time, model 2 reads frames and then a sequence of frames, each stage with
    its own positions: ``vit`` and ``learned``.

    Args:
        dims: sizes of the Transformer.
        encoding: (time, y, x) per unit.
        shape: (F, H, W); 16 x 14 x 14 are tubelets of 2 x 16 x 16 of 32 frames of 224 pixels.

    Raises:
        PositionError: a batch has a place beyond the shape, or the encoding does not give three coordinates.
    """

    spec = Spec("arnab2021", "grid", Cells("A", "APE", learnable=True, recurring=False, unbound=False, params="R*d"))

    def __init__(
        self, dims: Dims, encoding: Encoding = Coordinates(axes=3), shape: tuple[int, int, int] = (16, 14, 14)
    ) -> None:
        super().__init__(dims, encoding, shape, axes=3)

    def start_from(self, image: Tensor) -> None:
        """Take the vectors of images for each frame.

        Args:
            image: (1 + H W, d) such as ``ViT.table``, the class token first.

        Raises:
            PositionError: it has another shape.
        """
        frames, height, width = self.shape
        if image.shape != (1 + height * width, self.dims.width):
            raise PositionError(
                f"position model {self.name!r} starts from a table of shape {(1 + height * width, self.dims.width)}, "
                f"one row for the class token and one per place of a frame; given is {tuple(image.shape)}"
            )
        with torch.no_grad():
            self.table.copy_(torch.cat([image[:1], image[1:].repeat(frames, 1)]))
