"""Axial positions: one table for the segment, one for the place within it (Kitaev et al. 2020)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._checks import holds, indices, of_whole

__all__ = ["Reformer"]


class Reformer(PositionModel, name="reformer"):
    """Axial positions: one table for the segment, one for the place within it (Kitaev et al. 2020).

    x_t + cat[S_(t // n), W_(t mod n)]: S (m, d_1) one row per segment, W (n, d - d_1) per place in a segment.

    m n positions for m d_1 + n (d - d_1) numbers. Both tables start from N(0, 1). (Kitaev et al. 2020, in their code
    only; survey, eq. 5 and figure 3.)

    As the code does it: the first d_1 channels are for the segment, the slow index, and the last ones for the place
    within it. The survey's eq. 5 exchanges d_1 and d_2; the two differ by a permutation of channels. The code trains on
    texts of exactly m n units and drops whole rows of either table at random; here shorter texts take the first rows,
    as in its evaluation, and nothing is dropped.

    Args:
        dims: sizes of the Transformer.
        encoding: integers 0, 1, ... per unit.
        segments: m.
        length: n, units in a segment.
        slow: d_1; None for half of d, rounded down.

    Raises:
        PositionError: there is no segment, no unit in a segment or no channel for either, or a batch has a position of
            m n or more.
    """

    spec = Spec(
        "kitaev2020",
        "sequence",
        Cells("A", "APE", learnable=True, recurring=False, unbound=False, params="m*d1 + n*(d - d1)"),
        table1=Cells("A", "APE", learnable=True, recurring=False, unbound=False, params="(d - d1)*t/t1 + d1*t1"),
        note="the same number under other names: the survey's d1 and t1 are those of the place within a segment",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Order(), segments: int = 16, length: int = 32, slow: int | None = None
    ) -> None:
        d1 = dims.width // 2 if slow is None else slow
        if segments < 1 or length < 1 or not 0 < d1 < dims.width:
            raise PositionError(
                f"position model 'reformer' is given {segments} segments of {length} units and {d1} of {dims.width} "
                f"channels for the segment; give 1 or more of each, and leave some channels for the place within it"
            )
        super().__init__(dims, [of_whole(self.name, encoding)], m=segments, n=length, d1=d1)
        self.segment = nn.Parameter(torch.randn(segments, d1))
        self.within = nn.Parameter(torch.randn(length, dims.width - d1))

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        places = indices(self.name, self.encodings[0], prepared.queries(self.encodings[0]))
        segments, length = len(self.segment), len(self.within)
        if holds((places >= segments * length).any()):
            raise PositionError(
                f"position model 'reformer' has {segments} x {length} positions, this batch needs "
                f"{int(places.max()) + 1}; build it with more 'segments' or a larger 'length'"
            )
        return x + torch.cat([self.segment[places // length], self.within[places % length]], dim=-1)
