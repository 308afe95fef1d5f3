"""Positions concatenated with the content of units, not added to it."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.errors import PositionError

__all__ = ["concatenated", "position_width"]


def concatenated(x: Tensor, position: Tensor) -> Tensor:
    """cat[x without its last p channels, position] from x (b, n, d) and position (b, n, p).

    Authors who concatenate embed content in d - p channels; here the last p of d are overwritten, which is the same
    model. In a sum of models, those before this one lose these channels.
    """
    kept = x[..., : x.shape[-1] - position.shape[-1]]
    return torch.cat([kept, position.to(x.dtype)], dim=-1)


def position_width(model: str, width: int, of_all: int) -> int:
    """The width p of a position; it must leave channels for content.

    Raises:
        PositionError: it does not.
    """
    if not 0 < width < of_all:
        raise PositionError(
            f"position model {model!r} uses {width} of {of_all} channels and must leave some for the content; "
            f"give 1 to {of_all - 1}, or a wider model"
        )
    return width
