"""Learned vectors of rows and columns in queries and keys of every layer (Carion et al. 2020, DETR's code)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import Coordinates
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Sources, Spec
from structpe.positions._checks import of_whole
from structpe.positions.grids._shapes import check_shape, coordinates, half, in_queries_and_keys, outside, within

__all__ = ["DETRLearned"]


class DETRLearned(PositionModel, name="detr-learned"):
    """Learned vectors of rows and columns in queries and keys of every layer (Carion et al. 2020, DETR's code).

    q = W_q (n + P), k = W_k (n + P), v = W_v n in every layer;  P_yx = cat[C[x], R[y]], x first.

    C (W, d/2) are vectors of columns, R (H, d/2) of rows, from U(0, 1); one pair of tables for all layers. (Carion et
    al. 2020, ablation of section 4.2, and their code, class PositionEmbeddingLearned, with H = W = 50.) Units without a
    place in the grid get zeros.

    Args:
        dims: sizes of the Transformer; the width must be even.
        encoding: (y, x) per unit.
        shape: (H, W).

    Raises:
        PositionError: an odd width, a batch with a place beyond the shape, or not two coordinates.
    """

    spec = Spec(
        "carion2020", "grid", Cells("A", "APE", learnable=True, recurring=True, unbound=False, params="(H + W)*d//2")
    )

    def __init__(self, dims: Dims, encoding: Encoding = Coordinates(), shape: tuple[int, int] = (50, 50)) -> None:
        check_shape(self.name, shape, 2)
        half(self.name, dims.width)
        height, width = shape
        super().__init__(dims, [of_whole(self.name, encoding)], H=height, W=width)
        self.shape = tuple(shape)
        self.columns = nn.Parameter(torch.rand(width, dims.width // 2))
        self.rows = nn.Parameter(torch.rand(height, dims.width // 2))

    def prepare(self, positions: Positions) -> Tensor:
        """(b, m, d) P of all units, once for all layers."""
        given = coordinates(self.name, self.encodings[0], positions[self.encodings[0]], 2)
        y, x = within(self.name, given, self.shape).clamp(min=0).unbind(-1)
        vectors = torch.cat([self.columns[x], self.rows[y]], dim=-1)
        return torch.where(outside(given)[..., None], 0, vectors)

    def sources(self, sources: Sources, prepared: Tensor, site: Site) -> Sources:
        return in_queries_and_keys(self.name, sources, prepared)
