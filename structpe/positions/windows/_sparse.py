"""Shared by models in which few pairs attend: the check of their encoding, and clipped scores."""

from __future__ import annotations

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.positions._checks import of_arity

__all__ = ["clipped", "of_listed_pairs"]


def of_listed_pairs(model: str, encoding: Encoding) -> Encoding:
    """The encoding, which must list pairs.

    Raises:
        PositionError: it is of all pairs, or of units.
    """
    if not of_arity(model, encoding, 2).sparse:
        raise PositionError(
            f"position model {model!r} needs an encoding that lists pairs (neighbours, window, ...); "
            f"{encoding.name!r} is of all pairs"
        )
    return encoding


def clipped(scores: Tensor) -> Tensor:
    """Scores clipped to -5..5: the authors take their exponentials without a maximum."""
    return scores.clamp(-5, 5)
