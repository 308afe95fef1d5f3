"""Places as indices of tables of learned vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel, Positions
from structpe.positions._checks import indices, of_whole

__all__ = ["Places", "PlacesModel", "at_places"]


@dataclass(frozen=True, eq=False)
class Places:
    """The places of the units of a batch, as they index a table.

    Attributes:
        queries: (b, n), or a slice if it is the same for every structure.
        keys: (b, m), or a slice.
    """

    queries: Tensor | slice
    keys: Tensor | slice

    @classmethod
    def of(cls, model: str, encoding: Encoding, positions: Positions, length: int) -> Places:
        """The places of a batch, none of which is ``length`` or more.

        Units in reading order have the places 0, 1, ...: rows of a table are then a view of it, the same for the whole
        batch, so that nothing is computed per batch. Otherwise they are gathered.

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
        if needed > length:
            raise PositionError(
                f"position model {model!r} has {length} positions, this batch needs {needed}; "
                f"build it with a larger 'length', or choose an unbound model"
            )
        return cls(slice(m - n, m), slice(m)) if in_order else cls(of_queries, of_keys)


class PlacesModel(PositionModel):
    """A model whose tables have a row for each place below a length.

    Args:
        dims: sizes of the Transformer.
        encoding: integers 0, 1, ... per unit.
        length: t_max.
        sizes: values of the symbols of the formula of parameters.
    """

    def __init__(self, dims: Dims, encoding: Encoding, length: int, **sizes: int) -> None:
        super().__init__(dims, [of_whole(self.name, encoding)], **sizes)
        self.length = length

    def prepare(self, positions: Positions) -> Any:
        """The places of the batch."""
        return Places.of(self.name, self.encodings[0], positions, self.length)


def _in_order(encoding: Encoding, places: Tensor) -> bool:
    """Whether unit j of every structure has place j, except for padding, which has place 0.

    In reading order each place occurs once, so that a 0 after the first unit must be padding.
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
