"""Where a unit stands in a grid or in space, and the offset between two units along each axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._units import of_units
from structpe.encodings.base import Encoded, Encoding, narrow
from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = ["OUTSIDE", "Coordinates", "GridOffset", "Points"]

OUTSIDE = 1 << 24
"""What an offset is on every axis where a unit has no place in the grid: OUTSIDE + 1 if only the query has none,
OUTSIDE + 2 if only the key, OUTSIDE + 3 if both."""


@dataclass(frozen=True)
class Coordinates(Encoding, name="coordinates"):
    """(y, x), or any other number of axes: the place of a unit in a grid, int64 (axes), each from 0.

    It is what ``structure.features["coordinates"]`` says of the unit's node, as :func:`structpe.transforms.grid` and
    :func:`structpe.transforms.product` leave it. A structure without this feature is a grid of one line: the place in
    reading order (:class:`structpe.encodings.Order`) is the last coordinate, and those before are 0. So are those that
    a grid of fewer axes lacks. A node that has no place in the grid, such as a class token, has -1 on every axis.

    Args:
        axes: number of coordinates.

    Raises:
        EncodingError: the structure has neither coordinates nor an order, has coordinates on more axes, or some that
            are no whole numbers from 0.
    """

    arity = 1
    causal = True

    axes: int = 2

    def __post_init__(self) -> None:
        _check_axes(self, self.axes)

    def one(self, structure: Structure) -> Encoded:
        return Encoded(_places(self, structure, self.axes))


@dataclass(frozen=True)
class GridOffset(Encoding, name="grid-offset"):
    """(y_s - y_t, x_s - x_t), key minus query on each axis: values (r, axes), int64.

    The coordinates are those of :class:`Coordinates`; on a sequence the last offset is s - t and those before are 0.
    Units of one node of a grid have one place. Pairs with a unit that has none have a code, see :data:`OUTSIDE`.

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
        places = _places(self, structure, self.axes)
        outside = places[:, 0] < 0
        reach = places.max(axis=0, initial=0)
        # One number per offset, its digits the axes: sorting numbers is faster than sorting rows.
        number = np.zeros((len(places), len(places)), dtype=np.int64)
        for axis, most in zip(places.T, reach, strict=True):
            number = number * (2 * most + 1) + (axis[None, :] - axis[:, None] + most)
        code = outside[:, None] + 2 * outside[None, :]
        number = np.where(code > 0, -code, number)
        distinct, index = np.unique(number, return_inverse=True)
        return Encoded(_offsets(distinct, reach), narrow(index.reshape(number.shape)))


@dataclass(frozen=True)
class Points(Encoding, name="points"):
    """The place of a unit in space, float32 (axes): metres, degrees, seconds.

    It is what a feature of the structure says of the unit's node. A structure without it is a line: the place in
    reading order is the last coordinate, and those before are 0. So are those that a space of fewer axes lacks.

    Args:
        axes: number of coordinates.
        key: name of the feature.

    Raises:
        EncodingError: the structure has neither the feature nor an order, or has it on more axes.
    """

    arity = 1
    causal = True

    axes: int = 2
    key: str = "coordinates"

    def __post_init__(self) -> None:
        _check_axes(self, self.axes)

    def one(self, structure: Structure) -> Encoded:
        given = _given(self, structure, self.key, self.axes)
        return Encoded(_widened(given, self.axes).astype(np.float32))


def _places(encoding: Encoding, structure: Structure, axes: int) -> Ids:
    given = _given(encoding, structure, "coordinates", axes)
    places = given.astype(np.int64)
    outside = (places == -1).all(axis=1)
    if len(wrong := np.flatnonzero((places != given).any(axis=1) | ((places < 0).any(axis=1) & ~outside))):
        raise encoding.error(
            structure,
            f"the coordinates of unit {wrong[0]} are {given[wrong[0]].tolist()}; places in a grid are whole numbers "
            f"from 0, or -1 on every axis of what has no place; for others choose the encoding 'points'",
        )
    widened: Ids = _widened(places, axes)
    widened[outside] = -1
    return widened


def _given(encoding: Encoding, structure: Structure, key: str, axes: int) -> NDArray[Any]:
    """(u, axes given) numbers."""
    if key not in structure.features:
        return _line(encoding, structure, key)
    of_nodes = np.asarray(structure.features[key])
    of_nodes = of_nodes[:, None] if of_nodes.ndim == 1 else of_nodes
    if of_nodes.ndim != 2 or of_nodes.shape[1] > axes:
        raise encoding.error(
            structure,
            f"feature {key!r} has {'x'.join(map(str, of_nodes.shape[1:]))} numbers per node, this encoding takes "
            f"{axes} at most; give it more axes",
        )
    return of_units(structure, of_nodes)


def _line(encoding: Encoding, structure: Structure, key: str) -> Ids:
    if structure.order is None:
        raise encoding.error(
            structure,
            f"the structure has no feature {key!r}, and no reading order in its place; make it with grid(shape), or "
            f"give Structure(features={{{key!r}: ...}}), an array of one row per node",
        )
    ranks = np.argsort(np.argsort(structure.order[structure.unit_owner], kind="stable"), kind="stable")
    return ranks.astype(np.int64)[:, None]


def _widened(places: NDArray[Any], axes: int) -> NDArray[Any]:
    return np.pad(places, ((0, 0), (axes - places.shape[1], 0)))


def _offsets(numbers: Ids, reach: Ids) -> Ids:
    """(r, axes) offsets from their numbers, negative ones being codes."""
    values = np.empty((len(numbers), len(reach)), dtype=np.int64)
    rest = numbers
    for axis in reversed(range(len(reach))):
        rest, digit = np.divmod(rest, 2 * reach[axis] + 1)
        values[:, axis] = digit - reach[axis]
    return np.where(numbers[:, None] < 0, OUTSIDE - numbers[:, None], values)


def _check_axes(encoding: Encoding, axes: int) -> None:
    if axes < 1:
        raise EncodingError(f"encoding {encoding.name!r}: the number of axes is {axes}; give 1 or more")
