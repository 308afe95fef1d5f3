"""A learned scalar per offset of two patches, within a window (Liu et al. 2021, Swin)."""

from __future__ import annotations

from torch import nn

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import GridOffset
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import holds, of_arity
from structpe.positions._tables import Sharing, Table
from structpe.positions.grids._windows import check_window, codes, grid_offsets, window_rows
from structpe.terms import Lookup, Terms

__all__ = ["Swin"]


class Swin(PositionModel, name="swin"):
    """s_ij += B[(y_i - y_j + H - 1)(2W - 1) + x_i - x_j + W - 1], one scalar per head, layer and offset in H x W.

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
        PositionError: a window that is none, another number of axes, or a unit that has no place in the grid.
    """

    spec = Spec("liu2021", "grid", Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies"))

    def __init__(
        self, dims: Dims, encoding: Encoding = GridOffset(), window: tuple[int, ...] = (7, 7), sharing: Sharing = "none"
    ) -> None:
        rows = check_window(self.name, window)
        super().__init__(dims, [of_arity(self.name, encoding, 2)], R=rows, copies=Table.copies(sharing, dims))
        self.window = tuple(window)
        self.table = Table(dims, rows, sharing)
        nn.init.trunc_normal_(self.table.weight, std=0.02)

    def prepare(self, positions: Positions) -> Lookup:
        """The row of each distinct offset."""
        encoding = self.encodings[0]
        of_pairs = grid_offsets(self.name, encoding, positions[encoding], len(self.window))
        if holds((codes(of_pairs.table) > 0).any()):
            raise PositionError(
                f"position model {self.name!r} met a unit that has no place in the grid, such as a class token; "
                f"take it out, or use 'beit', which has scalars for it"
            )
        return of_pairs.map(lambda values: window_rows(values, self.window))

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(bias=(prepared.map(self.table.at(site.layer).__getitem__),))
