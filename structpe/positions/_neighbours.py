"""What models that let few pairs attend share: the check of their encoding, and the signs of eigenvectors."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.positions._rows import of_arity

__all__ = ["flipped", "of_listed_pairs"]


def of_listed_pairs(model: str, encoding: Encoding) -> Encoding:
    """The encoding, if it speaks of listed pairs only.

    Raises:
        PositionError: it speaks of all pairs, or of units.
    """
    if not of_arity(model, encoding, 2).sparse:
        raise PositionError(
            f"position model {model!r} needs an encoding that lists pairs (neighbours, window, ...); "
            f"{encoding.name!r} speaks of all"
        )
    return encoding


def flipped(vectors: Tensor) -> Tensor:
    """Eigenvectors (b, n, k), each of the k with a random sign for the whole batch: v and -v are equally good."""
    return vectors * (torch.randint(0, 2, (vectors.shape[-1],), device=vectors.device) * 2 - 1)
