"""What an encoding says of a structure as a matrix of numbers that can be looked at.

Of arity 1, a row for each unit and a column for each of its numbers; of arity 2, a row for each query and a column for
each key. Where a pair has a vector, one number of each is chosen, a *slice*.
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
"""Nodes of a graph up to which their labels are written beside them; numbers stand for them where there are more."""
ACROSS = {"random-walk": "steps", "heat-kernel": "time", "laplacian": "eigenvector", "coordinates": "axis"}
"""Of which thing each column of an encoding of units is one; of others it is a number."""
MOST = 1000
"""Units beyond which a picture would show nothing, and a matrix of pairs take long to draw."""


@dataclass(frozen=True, eq=False)
class Heat:
    """A matrix, and what its rows, columns and colours mean.

    Attributes:
        title: what it shows.
        values: (r, c); NaN where there is no number. Units are in reading order.
        rows: what each row is of.
        columns: what each column is of.
        axes: words for the two axes.
        special: masks (r, c) of what is no number, by its name, such as "no way".
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
        """Diverging around 0 where there are numbers below it, otherwise sequential."""
        return "diverging" if (self.values < 0).any() else "sequential"

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the greatest number of the colours; of a diverging scale as far below 0 as above."""
        finite = self.values[np.isfinite(self.values)]
        if not finite.size:
            return 0.0, 1.0
        low, high = float(finite.min()), float(finite.max())
        if self.scale == "diverging":
            most = max(abs(low), abs(high))
            return -most, most
        return (low, high) if high > low else (min(low, 0.0), max(high, low + 1.0) if low == 0 else high)


def heat_of(structure: Structure, encoding: Encoding, slice: int = 0) -> Heat:
    """What an encoding says.

    Args:
        structure: of 1,000 units at most.
        encoding: fitted, if it learns from data.
        slice: which number of each pair's vector; 0 where a pair has one number.

    Raises:
        EncodingError: the structure lacks what the encoding needs.
        PictureError: more units, or no such slice.
    """
    check_size(structure)
    encoded = encoding.one(structure)
    names, read = unit_names(structure), in_order(structure)
    if encoding.arity == 1:
        values = encoded.values.reshape(len(encoded.values), -1)[read]
        columns = tuple(str(k) for k in range(1, values.shape[1] + 1))  # as formulas and texts count them
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
    """See to it that a picture of a structure would show something.

    Raises:
        PictureError: it has more than 1,000 nodes or units.
    """
    for count, what in ((structure.size, "nodes"), (structure.unit_count, "units")):
        if count > MOST:
            raise PictureError(
                f"the structure has {count} {what}, a picture shows {MOST} at most; take a part of it"
            ).at(*([structure.name] if structure.name else []))


def title_of(encoding: Encoding) -> str:
    """Its name, and those of its options that are not what they are by default, if they are short."""
    given = [
        f"{field.name.replace('_', ' ')} {value}"
        for field in fields(encoding)
        if isinstance(value := getattr(encoding, field.name), (bool, int, float, str)) and value != field.default
    ]
    return ", ".join([encoding.name, *given])


def unit_names(structure: Structure) -> tuple[str, ...]:
    """A name for each unit as they are read, with its node's number where texts repeat or there are many nodes."""
    labels, owner = unit_labels(structure), structure.unit_owner
    repeated = len(set(labels)) < len(labels) or structure.size > NAMED
    return tuple(f"{owner[unit]} {labels[unit]}" if repeated else labels[unit] for unit in in_order(structure))


def _pairs(encoded: Encoded) -> NDArray[np.float64]:
    """(u, u, ...) numbers of all pairs; NaN where a sparse encoding says nothing."""
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
        "no way": values == UNREACHABLE,
        "same node": np.abs(values - WITHIN) < UNREACHABLE,
        "not listed": np.zeros(values.shape, dtype=np.bool_) if unsaid is None else unsaid,
    }
    special["no place"] = (np.abs(values) >= UNREACHABLE) & ~special["no way"] & ~special["same node"]
    special = {name: mask for name, mask in special.items() if mask.any()}
    for mask in special.values():
        values[mask] = np.nan
    values[~np.isfinite(values)] = np.nan
    finite = values[np.isfinite(values)]
    return Heat(title, values, rows, columns, axes, special, whole=bool((finite == np.round(finite)).all()))
