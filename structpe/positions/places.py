"""Places of units, in a sequence or in a grid, as rows of tables of learned vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel, Positions, Sources
from structpe.positions.batch import holds, indices, numbers, of_arity, of_whole

__all__ = [
    "GridTable",
    "PlaceRows",
    "PlacesModel",
    "UnitModel",
    "at_places",
    "beyond",
    "check_shape",
    "coordinates",
    "counts",
    "half",
    "in_queries_and_keys",
    "outside",
    "row_by_row",
    "within",
]


class UnitModel(PositionModel):
    """A model of one number of each unit.

    Args:
        encoding: t, one number per unit: its place in a text, its depth in a tree, ...

    Raises:
        PositionError: the encoding is of pairs, or gives a vector per unit.
    """

    def __init__(self, dims: Dims, encoding: Encoding = Order()) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)])

    def places(self, positions: Positions) -> tuple[Tensor, Tensor]:
        """The numbers of the queries (b, n) and of the keys (b, m)."""
        (encoding,) = self.encodings
        return positions.queries(encoding), numbers(self.name, encoding, positions[encoding])


@dataclass(frozen=True, eq=False)
class PlaceRows:
    """The places of the units of a batch, as they index a table.

    Attributes:
        queries: (b, n), or a slice if it is the same for every structure.
        keys: (b, m), or a slice.
    """

    queries: Tensor | slice
    keys: Tensor | slice

    @classmethod
    def of(cls, model: str, encoding: Encoding, positions: Positions, max_length: int) -> PlaceRows:
        """The places of a batch, none of which is ``max_length`` or more.

        Units in reading order have the places 0, 1, ...: rows of a table are then a view of it, the same for the whole
        batch: nothing is computed per batch. Otherwise they are gathered.

        Raises:
            PositionError: a place is beyond the table, or the encoding does not give one number per unit.
        """
        of_keys = indices(model, encoding, positions[encoding])
        of_queries = positions.queries(encoding)
        if torch.compiler.is_compiling():  # no number may be looked at while a graph is traced
            return cls(of_queries, of_keys)
        m, n = of_keys.shape[1], of_queries.shape[1]
        in_order = _in_order(encoding, of_keys)
        needed = m if in_order else int(of_keys.max()) + 1
        if needed > max_length:
            raise beyond(model, max_length, "positions", needed)
        return cls(slice(m - n, m), slice(m)) if in_order else cls(of_queries, of_keys)


def beyond(model: str, rows: int, what: str, needed: int) -> PositionError:
    """The error for a batch that needs more rows of a table than there are."""
    return PositionError(
        f"position model {model!r} has {rows} {what}, this batch needs {needed}; build it with a larger 'max_length', "
        f"or choose an unbound model"
    )


class PlacesModel(PositionModel):
    """A model whose tables have a row for each place below ``max_length``.

    Args:
        encoding: integers 0, 1, ... per unit.
        max_length: t_max, number of places.
        sizes: values of the symbols of the formula of parameters.

    Raises:
        PositionError: the encoding does not give one whole number per unit, or a batch has a place of ``max_length`` or
            more.
    """

    def __init__(self, dims: Dims, encoding: Encoding, max_length: int, **sizes: int) -> None:
        super().__init__(dims, [of_whole(self.name, encoding)], **sizes)
        self.max_length = max_length

    def prepare(self, positions: Positions) -> Any:
        """The places of the batch."""
        return PlaceRows.of(self.name, self.encodings[0], positions, self.max_length)


def _in_order(encoding: Encoding, places: Tensor) -> bool:
    """Whether unit j of every structure has place j, except for padding, which has place 0.

    In reading order each place occurs once, so a 0 after the first unit must be padding.
    """
    if not isinstance(encoding, Order):
        return False
    counting = torch.arange(places.shape[1], device=places.device)
    return bool(((places == counting) | (places == 0)).all())


def at_places(table: Tensor, places: Tensor | slice, heads: int) -> Tensor:
    """(b or 1, h, n, w) the rows of a table (R, h or 1, w) at the places of units."""
    rows = table[places]
    whole = rows[None] if isinstance(places, slice) else rows
    return whole.transpose(1, 2).expand(-1, heads, -1, -1)


def coordinates(model: str, encoding: Encoding, of_units: Tensor, axes: int) -> Tensor:
    """(b, n, axes) the values of an encoding of arity 1, which must be that many numbers per unit.

    Raises:
        PositionError: it is not.
    """
    if of_units.shape[2:] != (axes,):
        given = "one number" if of_units.ndim < 3 else f"{' x '.join(map(str, of_units.shape[2:]))} numbers"
        raise PositionError(
            f"position model {model!r} needs {axes} coordinates per unit; {encoding.name!r} gives {given}; "
            f"give it axes={axes}, if it has that option"
        )
    return of_units


def counts(model: str, encoding: Encoding, of_units: Tensor, axes: int) -> Tensor:
    """(b, n, axes, 2) how many places there are up to a unit on each axis, from 1, and how many on the whole line.

    Raises:
        PositionError: the encoding gives something else.
    """
    if of_units.shape[2:] != (axes, 2):
        raise PositionError(
            f"position model {model!r} needs counts of places per axis, as 'grid-rank' gives them; {encoding.name!r} "
            f"gives none"
        )
    return of_units


def outside(places: Tensor) -> Tensor:
    """(b, n) which units have no place in the grid, such as a class token."""
    return places[..., 0] < 0


def within(model: str, places: Tensor, shape: Sequence[int]) -> Tensor:
    """The places themselves, which must all be within a grid of this shape.

    Raises:
        PositionError: one is.
    """
    if holds((places >= torch.tensor(shape, device=places.device)).any()):
        largest = places.flatten(0, -2).amax(0).tolist()
        raise PositionError(
            f"position model {model!r} was built for a grid of {'x'.join(map(str, shape))}, this batch needs "
            f"{'x'.join(str(max(most, 0) + 1) for most in largest)}; build it with a larger shape, or choose an "
            f"unbound model"
        )
    return places


def row_by_row(places: Tensor, shape: Sequence[int]) -> Tensor:
    """(b, n) row of a table: row 0 for units outside the grid, the others for places, the last axis fastest."""
    row = torch.zeros_like(places[..., 0])
    for axis, length in enumerate(shape):
        row = row * length + places[..., axis]
    return torch.where(outside(places), 0, row + 1)


def check_shape(model: str, shape: Sequence[int], axes: int) -> int:
    """The number of places of a grid.

    Raises:
        PositionError: the shape has another number of axes, or an axis below 1.
    """
    if len(shape) != axes or min(shape) < 1:
        raise PositionError(
            f"position model {model!r} takes a shape of {axes} lengths, each 1 or more; given is {tuple(shape)}"
        )
    return math.prod(shape)


def half(model: str, width: int) -> int:
    """Half of the width.

    Raises:
        PositionError: it is odd.
    """
    if width % 2:
        raise PositionError(f"position model {model!r} halves the width, which must be even; it is {width}")
    return width // 2


def in_queries_and_keys(model: str, sources: Sources, vectors: Tensor) -> Sources:
    """The sources with the vectors (b, m, d) of all units added to the inputs of queries and keys, not of values.

    Raises:
        PositionError: more units are attended to than have vectors.
    """
    known, n, c = vectors.shape[1], sources.query.shape[1], sources.key.shape[1]
    if c > known:
        raise PositionError(f"position model {model!r}: {c} units are attended to and positions of {known} were given")
    added = vectors.to(sources.query.dtype)
    return Sources(sources.query + added[:, known - n :], sources.key + added[:, known - c :], sources.value)


class GridTable(PositionModel):
    """x_u + E[row of the place of u]: a learned vector for each place of a grid, and the first row for other units.

    Args:
        encoding: coordinates per unit.
        shape: of the grid.
        axes: how many there are.
    """

    def __init__(self, dims: Dims, encoding: Encoding, shape: Sequence[int], axes: int) -> None:
        rows = 1 + check_shape(self.name, shape, axes)
        super().__init__(dims, [of_whole(self.name, encoding)], R=rows)
        self.shape = tuple(shape)
        self.table = nn.Parameter(torch.randn(rows, dims.width) * 0.02)

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        of_units = prepared.queries(self.encodings[0])
        places = coordinates(self.name, self.encodings[0], of_units, len(self.shape))
        return x + self.table[row_by_row(within(self.name, places, self.shape), self.shape)]
