"""Angles of several coordinates, each rotating its own channels."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.positions import Dims, Positions
from structpe.positions._checks import holds
from structpe.positions.grids._shapes import coordinates
from structpe.positions.rotary._turns import RotaryModel, Turns
from structpe.positions.sinusoidal._sinusoids import inverse_frequencies

__all__ = ["AxialRotaryModel"]


class AxialRotaryModel(RotaryModel):
    """Angle c_a base^(-i/p_a) of each unit for the pair i < p_a of axis a, c_a being its coordinate there.

    Units without a place in the grid are not rotated.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: coordinates per unit.
        base: of the inverse frequencies.
        pairs: (a, p_a) of each axis, in the order of the channels.
    """

    interleaved = True

    def __init__(self, dims: Dims, encoding: Encoding, base: float, pairs: Sequence[tuple[int, int]]) -> None:
        super().__init__(dims, encoding, base)
        self.pairs = pairs

    def prepare(self, positions: Positions) -> Turns:
        """The angles, once for all layers.

        Raises:
            PositionError: units differ on an axis that has no channels, or have another number of coordinates.
        """
        (encoding,) = self.encodings
        of_keys = coordinates(self.name, encoding, positions[encoding], len(self.pairs))
        real = torch.ones_like(of_keys[..., 0], dtype=torch.bool) if positions.present is None else positions.present
        for axis, count in self.pairs:
            if not count and holds((real & (of_keys[..., axis] > 0)).any()):
                raise PositionError(
                    f"position model {self.name!r} has no channels for axis {axis} of the coordinates, on which this "
                    f"batch has places other than 0; build it with wider heads, 2 channels per axis at least"
                )
        return Turns(self._angles(positions.queries(encoding)), self._angles(of_keys))

    def _angles(self, places: Tensor) -> Tensor:
        if not places.is_floating_point():
            places = places.clamp(min=0)
        each = [
            places[..., a, None].double() * inverse_frequencies(2 * p, places.device, self.base) for a, p in self.pairs
        ]
        return torch.cat(each, dim=-1)[:, None]
