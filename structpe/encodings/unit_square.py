"""The place in a grid, scaled to the same range for every size of grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structpe.encodings._unit_places import places_in_grid
from structpe.encodings.base import Encoded, Encoding
from structpe.structure import Structure

__all__ = ["UnitSquare"]


@dataclass(frozen=True)
class UnitSquare(Encoding, name="unit-square"):
    """The place in a grid, scaled to the same range for every size of grid.

    -1 + 2 c/(n - 1) and 2/(n - 1) along each axis, c = 0..n-1 the coordinate: the place of a unit, and the step.

    float32 (2, 2) per unit: for each axis the place, from -1 to 1, and the step from one place to the next. c is that
    of :class:`structpe.encodings.Coordinates`, n one more than the largest c of the structure. Along an axis on which
    all units have c = 0, the place is -1 and the step 0. A unit without a place in the grid has place 0 and step -1.

    Raises:
        EncodingError: the structure has neither coordinates nor an order, or it has more than two coordinates.
    """

    arity = 1
    real = True

    def one(self, structure: Structure) -> Encoded:
        c = places_in_grid(self, structure, 2)
        reach = np.maximum(c.max(axis=0), 0)
        step = 2 / np.where(reach > 0, reach, np.inf)
        both = np.stack([-1 + c * step, np.broadcast_to(step, c.shape)], axis=-1)
        both[c[:, 0] < 0] = (0, -1)
        return Encoded(both.astype(np.float32))
