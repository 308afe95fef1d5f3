"""Points in space through learned waves and a network (Li et al. 2021, learnable Fourier features)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import Points
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._checks import of_arity
from structpe.positions.grids._shapes import coordinates
from structpe.precision import wide

__all__ = ["Continuous"]


class Continuous(PositionModel, name="continuous"):
    """Points in space through learned waves and a network (Li et al. 2021, learnable Fourier features).

    x_u + W_2 gelu(W_1 r + b_1) + b_2,  r = cat[cos(W_r c_u), sin(W_r c_u)] / sqrt(F).

    c_u (A) is the place of a unit in a space of A axes, any real numbers; W_r (F/2, A) are learned frequencies, from
    N(0, 1/gamma^2), so that r_u.r_v starts as about exp(-|c_u - c_v|^2 / (2 gamma^2)) / 2: gamma is the scale of
    distances. W_1 (H, F), W_2 (d, H). (Li et al. 2021, section 3, algorithm 1, with one group of axes.) Without the
    waves, such a network would not learn fine details.

    Args:
        dims: sizes of the Transformer.
        encoding: A real numbers per unit.
        axes: A.
        features: F, an even number.
        hidden: H.
        gamma: in the unit of the coordinates.

    Raises:
        PositionError: sizes below 1, an odd number of features, a gamma of 0 or less, or another number of coordinates.
    """

    spec = Spec(
        "li2021",
        "grid",
        Cells("A", "APE", learnable=True, recurring=False, unbound=True, params="F*A//2 + (F + 1)*H + (H + 1)*d"),
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Points(),
        axes: int = 2,
        features: int = 64,
        hidden: int = 32,
        gamma: float = 1.0,
    ) -> None:
        if min(axes, features, hidden) < 1 or features % 2 or gamma <= 0:
            raise PositionError(
                f"position model {self.name!r} needs axes, features and hidden of 1 or more, an even number of "
                f"features and a gamma above 0; given are {axes} axes, {features} features, hidden {hidden} and gamma "
                f"{gamma}"
            )
        super().__init__(dims, [of_arity(self.name, encoding, 1)], A=axes, F=features, H=hidden)
        self.frequencies = nn.Parameter(torch.randn(features // 2, axes) / gamma)
        self.network = nn.Sequential(nn.Linear(features, hidden), nn.GELU(), nn.Linear(hidden, dims.width))

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, F) the waves r of the units."""
        places = coordinates(self.name, self.encodings[0], positions.queries(self.encodings[0]), self.sizes["A"])
        frequencies = wide(self.frequencies)
        angles = places.to(frequencies.dtype) @ frequencies.T
        return torch.cat([angles.cos(), angles.sin()], dim=-1) / math.sqrt(self.sizes["F"])

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        added: Tensor = self.network(prepared.to(x.dtype))
        return x + added
