"""Distances of units, and the slopes at which ALiBi decays with them."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding
from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel, Positions
from structpe.positions._checks import holds, of_arity, offsets
from structpe.positions._rows import is_plain
from structpe.positions._tables import Sharing, Table
from structpe.terms import Lookup

__all__ = ["DistanceModel", "distances", "slopes"]


class DistanceModel(PositionModel):
    """A model of the distance |r_ij| of two units.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        sharing: which layers and heads have the same numbers, for the formula of parameters.
    """

    def __init__(self, dims: Dims, encoding: Encoding, sharing: Sharing) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 2)], copies=Table.copies(sharing, dims))

    def prepare(self, positions: Positions) -> Lookup:
        """The distance of each distinct value."""
        (encoding,) = self.encodings
        of_pairs = offsets(self.name, encoding, positions[encoding])
        return of_pairs.map(lambda values: distances(self.name, encoding, values))


def distances(model: str, encoding: Encoding, values: Tensor) -> Tensor:
    """|r| for each offset; k for two units of one node k places apart; the encoding's limit without a path.

    Raises:
        PositionError: there is a pair without a path, and the encoding has no limit.
    """
    far = torch.where(is_plain(values), values, values - WITHIN).abs()
    if not encoding.codes:
        return far
    limit: int | None = encoding.options().get("limit")
    if limit is None and holds((values == UNREACHABLE).any()):
        raise PositionError(
            f"position model {model!r} got a pair of units without a path, which has no distance; give the encoding "
            f"a limit, to count such pairs as that far: {encoding.name!r} with limit=..."
        )
    return torch.where(values == UNREACHABLE, limit or 0, far)


def slopes(heads: int) -> Tensor:
    """(h,) float64: 2^(-8/H), 2^(-16/H), ...; between powers of 2 the lower one's, then every other of the double's."""
    power = 1 << (heads.bit_length() - 1)
    first = 2.0 ** (-8 / power * torch.arange(1, power + 1, dtype=torch.float64))
    rest = 2.0 ** (-4 / power * torch.arange(1, 2 * power + 1, 2, dtype=torch.float64))
    return torch.cat([first, rest[: heads - power]])
