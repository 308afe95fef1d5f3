"""Shared by LongRoPE's two models: the factors of the inverse frequencies, and of queries and keys."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from structpe.errors import PositionError, listed
from structpe.positions import Dims

__all__ = ["factors_of", "sharper"]


def factors_of(model: str, dims: Dims, given: tuple[float, ...], scale: float) -> Tensor:
    """(d_h/2,) float64: the factors given, one for each pair; by default those of NTK-aware scaling, a^(2i/(d_h-2)).

    Raises:
        PositionError: there is not one for each pair, or one is not positive.
    """
    pairs = dims.head // 2
    if not given:
        return scale ** (torch.arange(pairs, dtype=torch.float64) / max(pairs - 1, 1))
    if len(given) != pairs or min(given) <= 0:
        raise PositionError(
            f"position model {model!r} takes a positive factor for each of the {pairs} pairs of channels of a head; "
            f"given are {len(given)}: {listed(given)}"
        )
    return torch.tensor(given, dtype=torch.float64)


def sharper(model: str, scale: float, trained: int) -> float:
    """sqrt(1 + ln scale / ln trained): the factor of queries and keys, so that attention stays as sharp.

    Raises:
        PositionError: texts in training had fewer than 2 units.
    """
    if trained < 2:
        raise PositionError(f"position model {model!r} takes a trained length of 2 or more; given is {trained}")
    return math.sqrt(1 + math.log(scale) / math.log(trained)) if scale > 1 else 1.0
