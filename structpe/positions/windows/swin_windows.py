"""Attention within windows of an image, shifted in every other layer (Liu et al. 2021, Swin)."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import GridRank
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import of_arity
from structpe.positions.grids._shapes import check_shape, counts
from structpe.terms import Terms

__all__ = ["SwinWindows"]


class SwinWindows(PositionModel, name="swin-windows"):
    """Attention within windows of an image, shifted in every other layer (Liu et al. 2021, Swin).

    i and j attend to each other if floor((c_i - s) / W) = floor((c_j - s) / W) on both axes of the image.

    c are coordinates, W the length of the window on an axis, s = 0 in layers 0, 2, ..., and W/2, rounded down, in
    layers 1, 3, ...; s = 0 too on an axis no longer than W. (Liu et al. 2021, section 3.2. They roll the image by s and
    mask the pairs that this joins: the same pairs are left.) With ``swin``, as the sum ["swin", "swin-windows"], it is
    Swin's attention, at the cost of all pairs. Their code shrinks the window to a square where the image is smaller on
    one axis; here the other axis keeps its length. Units without a place in the grid attend, and are attended to,
    everywhere.

    Args:
        dims: sizes of the Transformer.
        encoding: per unit and axis (count, count of the line).
        window: (H, W).

    Raises:
        PositionError: an invalid window, or an encoding that does not give such counts.
    """

    spec = Spec("liu2021", "grid", Cells("A", "MAM", learnable=False, recurring=True, unbound=False, params="0"))

    def __init__(self, dims: Dims, encoding: Encoding = GridRank(), window: tuple[int, int] = (7, 7)) -> None:
        check_shape(self.name, window, 2)
        super().__init__(dims, [of_arity(self.name, encoding, 1)])
        self.window = tuple(window)

    def prepare(self, positions: Positions) -> list[Tensor]:
        """(b, 1, n, m) which pairs are in one window, in even layers and in odd ones."""
        encoding = self.encodings[0]
        queries = counts(self.name, encoding, positions.queries(encoding), 2)
        keys = counts(self.name, encoding, positions[encoding], 2)
        return [self._together(queries, keys, shifted)[:, None] for shifted in (False, True)]

    def terms(self, prepared: list[Tensor], site: Site) -> Terms:
        return Terms(mask=(prepared[site.layer % 2],))

    def _together(self, queries: Tensor, keys: Tensor, shifted: bool) -> Tensor:
        mine, others = self._windows(queries, shifted), self._windows(keys, shifted)
        together = (mine[:, :, None] == others[:, None]).all(-1)
        nowhere = (queries[:, :, None, 0, 1] == 0) | (keys[:, None, :, 0, 1] == 0)
        return together | nowhere

    def _windows(self, ranks: Tensor, shifted: bool) -> Tensor:
        place, whole = ranks.unbind(-1)
        length = torch.tensor(self.window, device=ranks.device)
        shift = torch.where(whole > length, length // 2, 0) if shifted else torch.zeros_like(whole)
        return (place - 1 - shift).div(length, rounding_mode="floor")
