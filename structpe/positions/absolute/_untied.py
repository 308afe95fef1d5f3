"""The product of absolute places, separate from that of the units: what the two models of TUPE share."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.positions import Dims, Positions
from structpe.positions.absolute._places import Places, at_places
from structpe.terms import Factor

__all__ = ["Untied", "check_layers"]


class Untied(nn.Module):
    """a_ij = (U_q n(P[t + 1]) + c_q).(U_k n(P[s + 1]) + c_k) / sqrt(2 d_h), of each head; the first unit is special.

    n is a LayerNorm, P (t_max + 1, d). The unit at place 0 is ``[CLS]``: a_0j = theta_1 for all j, and a_i0 = theta_2
    for all other i. theta_1 is the product of row 0 with itself, theta_2 that of row 1, which no unit has otherwise.

    Args:
        model: name of the position model.
        dims: sizes of the Transformer.
        length: t_max.

    Raises:
        PositionError: a length below 1.
    """

    def __init__(self, model: str, dims: Dims, length: int) -> None:
        super().__init__()
        self.model, self.dims, self.length = model, dims, length
        self.table = nn.Parameter(torch.randn(length + 1, dims.width) * 0.02)
        self.norm = nn.LayerNorm(dims.width)
        self.query = nn.Linear(dims.width, dims.width)
        self.key = nn.Linear(dims.width, dims.width)
        for projection in (self.query, self.key):
            nn.init.normal_(projection.weight, std=0.02)
            nn.init.zeros_(projection.bias)

    def forward(self, positions: Positions, encoding: Encoding) -> Factor:
        """The bias of a batch, of rank d_h + 2: two more channels are for the first unit."""
        places = Places.of(self.model, encoding, positions, self.length)
        normed = self.norm(self.table)
        q, k = (project(normed).unflatten(-1, (self.dims.heads, -1)) for project in (self.query, self.key))
        q = q * (2 * self.dims.head) ** -0.5
        first, others = (q[:2] * k[:2]).sum(-1)[..., None]  # theta_1 and theta_2, (h, 1)
        none, one = torch.zeros_like(first), torch.ones_like(first)
        left = _with_first(q[1:], [one, none], [none, one])
        right = _with_first(k[1:], [none, first], [others, first])
        heads = self.dims.heads
        return Factor(at_places(left, places.queries, heads), at_places(right, places.keys, heads))


def _with_first(rows: Tensor, others: list[Tensor], first: list[Tensor]) -> Tensor:
    """(t_max, h, d_h + 2): two channels (h, 1) after the rows; the first row has only its own two."""
    special = torch.cat([torch.zeros_like(rows[0]), *first], dim=-1)
    rest = torch.cat([rows[1:], *(channel.expand(len(rows) - 1, -1, -1) for channel in others)], dim=-1)
    return torch.cat([special[None], rest])


def check_layers(model: str, dims: Dims, layers: int | None) -> int:
    """How many layers, from the first on, have the bias.

    Raises:
        PositionError: fewer than 1.
    """
    if layers is not None and layers < 1:
        raise PositionError(f"position model {model!r} acts in 1 layer or more, or in all (None); given {layers}")
    return dims.layers if layers is None else layers
