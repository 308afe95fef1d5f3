"""A learned vector per place of a frame and one per frame of a video (Bertasius et al. 2021, TimeSformer)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import GridRank
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._checks import of_whole
from structpe.positions.grids._shapes import check_shape, counts, outside, row_by_row

__all__ = ["TimeSformer"]


class TimeSformer(PositionModel, name="timesformer"):
    """A learned vector per place of a frame and one per frame of a video (Bertasius et al. 2021, TimeSformer).

    x_tyx + E[1 + y W + x] + T[t], and x + E[0] for the class token: one joint table of space, one of time.

    E (1 + H W, d) starts from a normal distribution of deviation 0.02, cut off at 2, T (F, d) at zero. A video of
    another size H' x W', or of F' frames, has the nearest rows: floor(y H/H'), floor(x W/W'), floor(t F/F'). (Bertasius
    et al. 2021 and their code, in which both are added before the blocks; the paper's eq. 1 has one vector per place
    and frame. There are not three tables of time, row and column.) The class token, which has no place in the grid, has
    no time. In the code a frame of as many patches as H W is never interpolated. The attention, alternating between
    space and time, is not part of this model.

    Args:
        dims: sizes of the Transformer.
        encoding: per unit and axis (time, y, x) the count of places up to it, and of all on the line.
        shape: (F, H, W).

    Raises:
        PositionError: an invalid shape, or an encoding that does not give such counts.
    """

    spec = Spec(
        "bertasius2021",
        "grid",
        Cells("A", "APE", learnable=True, recurring=False, unbound=False, params="(1 + H*W + F)*d"),
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = GridRank(axes=3), shape: tuple[int, int, int] = (8, 14, 14)
    ) -> None:
        check_shape(self.name, shape, 3)
        frames, height, width = shape
        super().__init__(dims, [of_whole(self.name, encoding)], F=frames, H=height, W=width)
        self.shape = tuple(shape)
        self.space = nn.Parameter(nn.init.trunc_normal_(torch.empty(1 + height * width, dims.width), std=0.02))
        self.time = nn.Parameter(torch.zeros(frames, dims.width))

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        ranks = counts(self.name, self.encodings[0], prepared.queries(self.encodings[0]), 3)
        places = torch.stack([nearest(ranks[:, :, a], length) for a, length in enumerate(self.shape)], dim=-1)
        in_space = self.space[row_by_row(places[..., 1:], self.shape[1:])]
        in_time = torch.where(outside(places)[..., None], 0, self.time[places[..., 0].clamp(min=0)])
        return x + in_space + in_time


def nearest(ranks: Tensor, length: int) -> Tensor:
    """(b, n) the row, of ``length``, that is nearest to a place of another number of places; -1 for no place.

    Args:
        ranks: (b, n, 2) the count of places up to it, from 1, and of all.
        length: number of rows.
    """
    count, whole = ranks.unbind(-1)
    # float32, as in the authors' interpolation: exact numbers would round differently at a few places.
    scale = torch.tensor(length, dtype=torch.float32, device=ranks.device) / whole.clamp(min=1).float()
    row = ((count - 1).clamp(min=0).float() * scale).floor().long().clamp(max=length - 1)
    return torch.where(whole > 0, row, -1)
