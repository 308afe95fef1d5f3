"""Places of the units of a structure in a grid, in space, or in the line of a sequence."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._units import of_units, places_by
from structpe.encodings.base import Encoding
from structpe.structure import Ids, Structure

__all__ = ["places_in_grid", "places_in_space"]


def places_in_grid(encoding: Encoding, structure: Structure, axes: int) -> Ids:
    """(u, axes) places in a grid, -1 on every axis without one; see :class:`structpe.encodings.Coordinates`.

    Raises:
        EncodingError: the structure has neither coordinates nor an order, has coordinates on more axes, or coordinates
            that are not whole numbers from 0.
    """
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


def places_in_space(encoding: Encoding, structure: Structure, key: str, axes: int) -> NDArray[Any]:
    """(u, axes) values of a feature for the units, or their reading order; see :class:`structpe.encodings.Points`.

    Raises:
        EncodingError: the structure has neither the feature nor an order, the feature has more axes, or the structure
            is a grid without the feature.
    """
    return _widened(_given(encoding, structure, key, axes), axes)


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
    if structure.order is None or "coordinates" in structure.features:
        raise encoding.error(
            structure,
            f"the structure has no feature {key!r}, and is no sequence, which would not need one; give "
            f"Structure(features={{{key!r}: ...}}), an array of one row per node; grid(shape) gives 'coordinates'",
        )
    return places_by(structure, structure.order)[:, None]


def _widened(places: NDArray[Any], axes: int) -> NDArray[Any]:
    return np.pad(places, ((0, 0), (axes - places.shape[1], 0)))
