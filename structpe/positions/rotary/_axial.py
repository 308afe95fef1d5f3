"""Angles of several coordinates, each turning channels of its own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.positions._rows import holds
from structpe.positions.base import Positions
from structpe.positions.grids._grids import coordinates
from structpe.positions.rotary._turns import Turns
from structpe.positions.sinusoidal._sinusoids import frequencies

__all__ = ["axial_turns"]


def axial_turns(
    model: str, encoding: Encoding, positions: Positions, pairs: Sequence[tuple[int, int]], base: float
) -> Turns:
    """Angle c_a base^(-i/p_a) of each unit for the pair i < p_a of axis a, c_a being its coordinate there.

    What has no place in the grid is not turned.

    Args:
        model: its name, for errors.
        encoding: coordinates per unit.
        positions: of the batch.
        pairs: (a, p_a) of each axis, in the order of the channels.
        base: of the speeds.

    Raises:
        PositionError: units differ on an axis that has no channels, or have another number of coordinates.
    """
    of_keys = coordinates(model, encoding, positions[encoding], len(pairs))
    real = torch.ones_like(of_keys[..., 0], dtype=torch.bool) if positions.graphs is None else positions.graphs >= 0
    for axis, count in pairs:
        if not count and holds((real & (of_keys[..., axis] > 0)).any()):
            raise PositionError(
                f"position model {model!r} has no channels for axis {axis} of the coordinates, on which this batch has "
                f"places other than 0; build it with wider heads, 2 channels per axis at least"
            )

    def angles(places: Tensor) -> Tensor:
        if not places.is_floating_point():
            places = places.clamp(min=0)
        each = [places[..., a, None].double() * frequencies(2 * p, places.device, base) for a, p in pairs]
        return torch.cat(each, dim=-1)[:, None]

    return Turns(angles(positions.queries(encoding)), angles(of_keys))
