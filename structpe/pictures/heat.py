"""The values of an encoding as a matrix of numbers.

For arity 1, it has a row for each unit and a column for each of its numbers; for arity 2, a row for each query and a
column for each key. If a pair has a vector, one component is chosen, a *slice*.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.base import UNREACHABLE, WITHIN, Encoded, Encoding
from structpe.pictures._plot import PictureError
from structpe.pictures._units import in_order, unit_labels
from structpe.structure import Structure

__all__ = ["MOST", "NAMED", "Heat", "Scale", "check_size", "heat_of", "unit_names"]

Scale: TypeAlias = Literal["sequential", "diverging"]
NAMED = 80
"""Largest number of nodes of a graph with labels; more nodes have numbers."""
ACROSS = {"random-walk": "steps", "heat-kernel": "time", "laplacian": "eigenvector", "coordinates": "axis"}
"""The meaning of the columns of an encoding of units; for others they are numbers."""
MOST = 1000
"""Largest number of units; more would not be visible, and slow to draw."""


@dataclass(frozen=True, eq=False)
class Heat:
    """A matrix, and the meaning of its rows, columns and colours.

    Attributes:
        title: title of the map.
        values: (r, c); NaN for cells without a number. Units are in reading order.
        rows: names of the rows.
        columns: names of the columns.
        axes: names of the two axes.
        special: masks (r, c) of cells without a number, by their meaning, such as "no path".
        whole: whether the numbers are integers, which can be written into the cells.
    """

    title: str
    values: NDArray[np.float64]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    axes: tuple[str, str] = ("query", "key")
    special: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    whole: bool = False

    @property
    def scale(self) -> Scale:
        """Diverging around 0 if there are negative numbers, otherwise sequential."""
        return "diverging" if (self.values < 0).any() else "sequential"

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest number of the colours; symmetric for a diverging scale."""
        finite = self.values[np.isfinite(self.values)]
        if not finite.size:
            return 0.0, 1.0
        low, high = float(finite.min()), float(finite.max())
        if self.scale == "diverging":
            most = max(abs(low), abs(high))
            return -most, most
        return (low, high) if high > low else (min(low, 0.0), max(high, low + 1.0) if low == 0 else high)


def heat_of(structure: Structure, encoding: Encoding, slice: int = 0) -> Heat:
    """The values of an encoding.

    Args:
        structure: with up to 1,000 units.
        encoding: fitted, if it needs a vocabulary.
        slice: component of the vector of each pair; 0 if a pair has one number.

    Raises:
        EncodingError: the structure lacks something that the encoding needs.
        PictureError: there are more units, or the slice does not exist.
    """
    check_size(structure)
    encoded = encoding.one(structure)
    names, read = unit_names(structure), in_order(structure)
    if encoding.arity == 1:
        values = encoded.values.reshape(len(encoded.values), -1)[read]
        columns = tuple(str(k) for k in range(1, values.shape[1] + 1))  # from 1, as in formulas
        return _heat(title_of(encoding), values, names, columns, ("unit", ACROSS.get(encoding.name, "number")))
    values = _pairs(encoded)[np.ix_(read, read)]
    flat = values.reshape(*values.shape[:2], -1)
    if not 0 <= slice < max(1, flat.shape[2]):
        raise PictureError(
            f"the slice is {slice}, but each pair has {flat.shape[2]} numbers by encoding {encoding.name!r}; give "
            f"one of 0..{flat.shape[2] - 1}"
        )
    title = title_of(encoding) + (f", number {slice} of 0..{flat.shape[2] - 1}" if flat.shape[2] > 1 else "")
    chosen = flat[:, :, slice] if flat.shape[2] else np.full(flat.shape[:2], np.nan)
    return _heat(title, chosen, names, names, ("query", "key"), _unsaid(encoded, read))


def check_size(structure: Structure) -> None:
    """Check the size of a structure.

    Raises:
        PictureError: it has more than 1,000 nodes or units.
    """
    for count, what in ((structure.size, "nodes"), (structure.unit_count, "units")):
        if count > MOST:
            raise PictureError(
                f"the structure has {count} {what}, a picture shows {MOST} at most; take a part of it"
            ).at(*([structure.name] if structure.name else []))


def title_of(encoding: Encoding) -> str:
    """Its name, and short options that differ from their defaults."""
    given = [
        f"{field.name.replace('_', ' ')} {value}"
        for field in fields(encoding)
        if isinstance(value := getattr(encoding, field.name), (bool, int, float, str)) and value != field.default
    ]
    return ", ".join([encoding.name, *given])


def unit_names(structure: Structure) -> tuple[str, ...]:
    """A name for each unit in reading order, with its node's number if texts repeat or there are many nodes."""
    labels, owner = unit_labels(structure), structure.unit_owner
    repeated = len(set(labels)) < len(labels) or structure.size > NAMED
    return tuple(f"{owner[unit]} {labels[unit]}" if repeated else labels[unit] for unit in in_order(structure))


def _pairs(encoded: Encoded) -> NDArray[np.float64]:
    """(u, u, ...) numbers of all pairs; NaN for pairs that a sparse encoding does not list."""
    if encoded.listed is None:
        return encoded.pairs().astype(np.float64)
    values = np.full((encoded.count, encoded.count, *encoded.values.shape[1:]), np.nan)
    values[encoded.listed[:, 0], encoded.listed[:, 1]] = encoded.values[encoded.index]
    return values


def _unsaid(encoded: Encoded, read: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    if encoded.listed is None:
        return None
    silent = np.ones((encoded.count, encoded.count), dtype=np.bool_)
    silent[encoded.listed[:, 0], encoded.listed[:, 1]] = False
    return silent[np.ix_(read, read)]


def _heat(
    title: str,
    given: NDArray[np.generic],
    rows: tuple[str, ...],
    columns: tuple[str, ...],
    axes: tuple[str, str],
    unsaid: NDArray[np.bool_] | None = None,
) -> Heat:
    values = given.astype(np.float64)
    special = {
        "no path": values == UNREACHABLE,
        "same node": np.abs(values - WITHIN) < UNREACHABLE,
        "not listed": np.zeros(values.shape, dtype=np.bool_) if unsaid is None else unsaid,
    }
    special["no place"] = (np.abs(values) >= UNREACHABLE) & ~special["no path"] & ~special["same node"]
    special = {name: mask for name, mask in special.items() if mask.any()}
    for mask in special.values():
        values[mask] = np.nan
    values[~np.isfinite(values)] = np.nan
    finite = values[np.isfinite(values)]
    return Heat(title, values, rows, columns, axes, special, whole=bool((finite == np.round(finite)).all()))
