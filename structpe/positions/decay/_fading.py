"""Biases that fall with distance: what is far, and the slopes of ALiBi."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding
from structpe.errors import PositionError
from structpe.positions._checks import holds
from structpe.positions._rows import is_plain

__all__ = ["distances", "slopes"]


def distances(model: str, encoding: Encoding, values: Tensor) -> Tensor:
    """|r| for each offset; k for two units of one node k places apart; the encoding's limit where there is no path.

    Raises:
        PositionError: there is a pair without a path, and the encoding has no limit.
    """
    far = torch.where(is_plain(values), values, values - WITHIN).abs()
    if not encoding.codes:
        return far
    limit: int | None = encoding.options().get("limit")
    if limit is None and holds((values == UNREACHABLE).any()):
        raise PositionError(
            f"position model {model!r} met a pair of units without a path, which has no distance; give the encoding "
            f"a limit, to count such pairs as that far: {encoding.name!r} with limit=..."
        )
    return torch.where(values == UNREACHABLE, limit or 0, far)


def slopes(heads: int) -> Tensor:
    """(h,) float64: 2^(-8/H), 2^(-16/H), ...; between powers of 2 the lower one's, then every other of the double's."""
    power = 1 << (heads.bit_length() - 1)
    first = 2.0 ** (-8 / power * torch.arange(1, power + 1, dtype=torch.float64))
    rest = 2.0 ** (-4 / power * torch.arange(1, 2 * power + 1, 2, dtype=torch.float64))
    return torch.cat([first, rest[: heads - power]])
