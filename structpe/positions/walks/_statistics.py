"""Statistics of nodes, concatenated with their content: GraphGPS's encoder for all of them (Rampasek et al. 2022)."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.positions import Cells, Dims, PositionModel, Positions
from structpe.positions._batch_norm import BatchNorm
from structpe.positions._checks import width_of
from structpe.positions._concatenated import concatenated, position_width

__all__ = ["CELLS", "StructuralEncoding"]

_PARAMS = "2*k + (k*p + p if m == 0 else k*p + p if m == 1 else (k + 1)*2*p + (m - 2)*(2*p + 1)*2*p + (2*p + 1)*p)"
"""Formula of the number of parameters."""
CELLS = Cells("A", "APE", learnable=True, recurring=False, unbound=True, params=_PARAMS)

FARTHEST = 5.0
"""How many standard deviations from its mean a statistic may be."""


class StructuralEncoding(PositionModel):
    """cat[x_u, f(norm(s_u))]: a vector of statistics, normalised and embedded in p channels next to the content.

    What norm gives is kept between -5 and 5, which the authors' code does not do. A statistic that is nearly constant
    in training, such as the walks of three steps where triangles are rare, is else 40 deviations away in the first
    triangle, and so is what a model predicts.

    Args:
        dims: sizes of the Transformer.
        encoding: s (k), a vector per unit.
        width: p; None for a quarter of the model's width.
        layers: of f; 0 for one linear map, as GraphGPS's ``linear``; m for m of them, each followed by a rectifier, the
            inner ones of width 2p, as its ``mlp``.
    """

    def __init__(self, dims: Dims, encoding: Encoding, width: int | None, layers: int) -> None:
        k, p = width_of(self.name, encoding), position_width(self.name, width or max(dims.width // 4, 1), dims.width)
        super().__init__(dims, [encoding], k=k, p=p, m=layers)
        self.norm = BatchNorm(k)
        widths = [k, *[2 * p] * (layers - 1), p]
        each = [nn.Sequential(nn.Linear(a, b), nn.ReLU()) for a, b in pairwise(widths)]
        self.embed = nn.Sequential(*each) if layers else nn.Linear(k, p)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, p) the embedded statistics of the queries."""
        statistics = positions.queries(self.encodings[0]).to(self.norm.weight.dtype)
        here = statistics.new_ones(statistics.shape[:2], dtype=torch.bool)
        # Queries are the last units of all.
        present = here if positions.present is None else positions.present[:, -here.shape[1] :]
        normed = self.norm(statistics, present).clamp(-FARTHEST, FARTHEST)
        embedded: Tensor = self.embed(normed)
        return embedded

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        return concatenated(x, prepared)
