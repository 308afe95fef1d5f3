"""A learned scalar per offset of two patches, within a window (Liu et al. 2021, Swin)."""

from __future__ import annotations

from torch import nn

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import OUTSIDE, GridOffset
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, Positions, Spec
from structpe.positions._checks import holds
from structpe.positions._tables import Sharing
from structpe.positions.grids._windows import WindowBias, WindowRows
from structpe.terms import Lookup

__all__ = ["Swin"]


class Swin(WindowBias, name="swin"):
    """A learned scalar per offset of two patches, within a window (Liu et al. 2021, Swin).

    s_ij += B[(y_i - y_j + H - 1)(2W - 1) + x_i - x_j + W - 1], one scalar per head, layer and offset in H x W.

    B ((2H-1)(2W-1), h) starts from a normal distribution of deviation 0.02, cut off at 2. (Liu et al. 2021, section
    3.2, eq. 4, and their code; what the paper calls B is the matrix that is looked up.) Swin attends within windows of
    H x W patches, so that there is no larger offset: those windows are ``swin-windows``, and Swin is the sum of both.
    Here offsets beyond a window, if there are any, count as those at its edge. On one axis, with a window (W,), it is a
    bias of sequences.

    Args:
        dims: sizes of the Transformer.
        encoding: (y, x) offsets per pair, key minus query.
        window: (H, W), or any other number of axes that the encoding has.
        sharing: ``none`` as in Swin.

    Raises:
        PositionError: an invalid window, another number of axes, or a unit that has no place in the grid.
    """

    spec = Spec("liu2021", "grid", Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies"))

    def __init__(
        self, dims: Dims, encoding: Encoding = GridOffset(), window: tuple[int, ...] = (7, 7), sharing: Sharing = "none"
    ) -> None:
        super().__init__(dims, encoding, WindowRows(self.name, tuple(window), codes=False), sharing)
        nn.init.trunc_normal_(self.table.weight, std=0.02)

    def of_pairs(self, positions: Positions) -> Lookup:
        """The offset of each pair."""
        of_pairs = super().of_pairs(positions)
        if holds((of_pairs.table[:, 0] > OUTSIDE).any()):
            raise PositionError(
                f"position model {self.name!r} got a unit that has no place in the grid, such as a class token; "
                f"take it out, or use 'beit', which has scalars for it"
            )
        return of_pairs
