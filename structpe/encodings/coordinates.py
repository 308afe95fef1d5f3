"""The place of a unit in a grid or in space, and the offset between two units along each axis."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from structpe.encodings._encoded import narrow
from structpe.encodings._unit_places import places_in_grid, places_in_space
from structpe.encodings._units import of_units
from structpe.encodings.base import Encoded, Encoding, check_all_pairs, check_key, flags
from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = ["OUTSIDE", "Coordinates", "GridOffset", "GridRank", "Points"]

_AXES = 64  # more than any grid has

OUTSIDE = 1 << 24
"""The offset on every axis if a unit has no place in the grid: OUTSIDE + 1 if only the query has none, OUTSIDE + 2 if
only the key, OUTSIDE + 3 if both."""


@dataclass(frozen=True)
class Coordinates(Encoding, name="coordinates"):
    """The place of a unit in a grid.

    (y, x), or any other number of axes: the place of a unit in a grid, int64 (axes), each from 0.

    The values are the row of the unit's node in ``structure.features["coordinates"]``, which
    :func:`structpe.transforms.grid` and :func:`structpe.transforms.product` create. A structure without this feature is
    a grid of one line: the place in reading order (:class:`structpe.encodings.Order`) is the last coordinate, and the
    others are 0. If a grid has fewer axes, the first coordinates are 0. A node without a place in the grid, such as a
    class token, has -1 on every axis.

    Args:
        axes: number of coordinates.

    Raises:
        EncodingError: the structure has neither coordinates nor an order, has coordinates on more axes, or coordinates
            that are not whole numbers from 0.
    """

    arity = 1
    causal = True

    axes: int = 2

    def __post_init__(self) -> None:
        _check_axes(self, self.axes)

    def one(self, structure: Structure) -> Encoded:
        return Encoded(places_in_grid(self, structure, self.axes))


@dataclass(frozen=True)
class GridOffset(Encoding, name="grid-offset"):
    """The offset of two units along each axis of a grid.

    (y_s - y_t, x_s - x_t), key minus query on each axis: values (r, axes), int64.

    The coordinates are those of :class:`Coordinates`; on a sequence the last offset is s - t and the others are 0.
    Units of one node of a grid have the same place. For pairs with a unit without a place see :data:`OUTSIDE`.

    Args:
        axes: number of coordinates.

    Raises:
        EncodingError: as in :class:`Coordinates`.
    """

    arity = 2
    causal = True

    axes: int = 2

    def __post_init__(self) -> None:
        _check_axes(self, self.axes)

    def one(self, structure: Structure) -> Encoded:
        check_all_pairs(self, [structure], self.axes)
        places = places_in_grid(self, structure, self.axes)
        outside = places[:, 0] < 0
        reach = places.max(axis=0, initial=0)
        if math.prod(2 * int(most) + 1 for most in reach) > np.iinfo(np.int64).max:
            raise self.error(
                structure,
                f"the grid reaches to {reach.tolist()}, which has more offsets than int64 has numbers; number the "
                f"places of each axis from 0 on, or choose the encoding 'points'",
            )
        # One number per offset, with a digit per axis: sorting numbers is faster than sorting rows.
        number = np.zeros((len(places), len(places)), dtype=np.int64)
        for axis, most in zip(places.T, reach, strict=True):
            number = number * (2 * most + 1) + (axis[None, :] - axis[:, None] + most)
        code = outside[:, None] + 2 * outside[None, :]
        number = np.where(code > 0, -code, number)
        distinct, index = np.unique(number, return_inverse=True)
        return Encoded(_offsets(distinct, reach), narrow(index.reshape(number.shape)))


@dataclass(frozen=True)
class GridRank(Encoding, name="grid-rank"):
    """The rank of a unit on each line of a grid that goes through it.

    (rank, length) on each axis, int64 (axes, 2): the rank from 1 of a unit on the line through it, and the length.

    With m_c = 1 if the place c of a grid exists and is valid, and the line through the unit's place u on axis a::

        value[a] = (sum of m_c over the places c of the line up to u, sum of m_c over the whole line)

    So (y + 1, height) and (x + 1, width) in a whole image. Nodes with 0 in the feature ``valid`` (n), such as padding
    of an image, are not counted; without this feature all places are valid. A unit without a place in the grid has (0,
    0) on every axis. Places are those of :class:`Coordinates`.

    Args:
        axes: number of coordinates.

    Raises:
        EncodingError: as in :class:`Coordinates`.
    """

    arity = 1

    axes: int = 2

    def __post_init__(self) -> None:
        _check_axes(self, self.axes)

    def one(self, structure: Structure) -> Encoded:
        places, of_unit = np.unique(places_in_grid(self, structure, self.axes), axis=0, return_inverse=True)
        valid = np.zeros(len(places), dtype=np.int64)
        given = flags(self, structure, "valid") if "valid" in structure.features else np.ones(structure.size)
        np.maximum.at(valid, of_unit.reshape(-1), of_units(structure, given) != 0)
        outside = places[:, 0] < 0
        valid[outside] = 0
        ranks = np.stack([_ranks(places, valid, axis) for axis in range(self.axes)], axis=1)
        ranks[outside] = 0
        return Encoded(ranks[of_unit.reshape(-1)])


@dataclass(frozen=True)
class Points(Encoding, name="points"):
    """The place of a unit in space.

    The place of a unit in space, float32 (axes): metres, degrees, seconds.

    The values are the row of the unit's node in a feature of the structure. A structure without it and without
    coordinates is a line: the place in reading order is the last coordinate, and the others are 0. If a space has fewer
    axes, the first coordinates are 0.

    Args:
        axes: number of coordinates.
        key: name of the feature.

    Raises:
        EncodingError: the structure has neither the feature nor an order, the feature has more axes, or the structure
            is a grid without the feature.
    """

    arity = 1
    causal = True
    real = True

    axes: int = 2
    key: str = "coordinates"

    def __post_init__(self) -> None:
        _check_axes(self, self.axes)
        check_key(self, self.key)

    def one(self, structure: Structure) -> Encoded:
        places = places_in_space(self, structure, self.key, self.axes)
        if (farthest := np.abs(places.astype(np.float64)).max(initial=0)) > np.finfo(np.float32).max:
            raise self.error(
                structure, f"feature {self.key!r} reaches to {farthest:g}, too far for float32; give it in larger units"
            )
        return Encoded(places.astype(np.float32))


def _ranks(places: Ids, valid: Ids, axis: int) -> Ids:
    """(places, 2) number of valid places on the line up to each place, and on the whole line."""
    others = np.delete(places, axis, axis=1)
    line = np.unique(others, axis=0, return_inverse=True)[1].reshape(-1) if others.shape[1] else np.zeros_like(valid)
    order = np.lexsort((places[:, axis], line))
    total = np.bincount(line, weights=valid).astype(np.int64)
    before = np.cumsum(total) - total
    counted = np.empty_like(valid)
    counted[order] = np.cumsum(valid[order])
    return np.stack([counted - before[line], total[line]], axis=1)


def _offsets(numbers: Ids, reach: Ids) -> Ids:
    """(r, axes) offsets from their numbers; negative numbers are special values."""
    values = np.empty((len(numbers), len(reach)), dtype=np.int64)
    rest = numbers
    for axis in reversed(range(len(reach))):
        rest, digit = np.divmod(rest, 2 * reach[axis] + 1)
        values[:, axis] = digit - reach[axis]
    return np.where(numbers[:, None] < 0, OUTSIDE - numbers[:, None], values)


def _check_axes(encoding: Encoding, axes: int) -> None:
    if not 1 <= axes <= _AXES:
        needed = "1 or more" if axes < 1 else f"{_AXES} at most"
        raise EncodingError(f"encoding {encoding.name!r}: the number of axes is {axes}; give {needed}")
