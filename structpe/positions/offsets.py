"""Distances and offsets of pairs, with those of pairs without a path and of units of one node."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding
from structpe.errors import PositionError
from structpe.positions.checks import holds
from structpe.positions.tables import is_plain
from structpe.terms import Lookup

__all__ = ["distances", "everywhere", "steps"]


def steps(values: Tensor) -> Tensor:
    """Signed integers: k for units of one node, k places apart, and 0 for pairs without a path."""
    inner = torch.where(values == UNREACHABLE, 0, values - WITHIN)
    return torch.where(is_plain(values), values, inner)


def distances(model: str, encoding: Encoding, values: Tensor) -> Tensor:
    """|r| for each offset; k for two units of one node k places apart; the encoding's ``max_distance`` without a path.

    Raises:
        PositionError: there is a pair without a path, and the encoding has no ``max_distance``.
    """
    far = torch.where(is_plain(values), values, values - WITHIN).abs()
    if not encoding.codes:
        return far
    max_distance: int | None = encoding.options().get("max_distance")
    if max_distance is None and holds((values == UNREACHABLE).any()):
        raise PositionError(
            f"position model {model!r} got a pair of units without a path, which has no distance; give the encoding "
            f"a max_distance, to count such pairs as that far: {encoding.name!r} with max_distance=..."
        )
    return torch.where(values == UNREACHABLE, max_distance or 0, far)


def everywhere(table: Tensor, like: Lookup) -> Lookup:
    """The one row of a table (1, ...) for every pair that ``like`` has. The index is a view, without memory."""
    none = like.rows.new_zeros(1, 1)
    return Lookup(table, none, none[:, :, None].expand(1, *like.index.shape[1:]))
