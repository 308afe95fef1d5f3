"""Places shifted and scaled at random, as CAPE does it (Likhomanenko et al. 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from structpe.errors import PositionError

__all__ = ["Augmentation", "augmented"]


@dataclass(frozen=True)
class Augmentation:
    """Ranges of the random changes of places.

    Args:
        model: name of the position model, for error messages.
        shift: most by which all units of a structure are moved together, along each axis.
        local: most by which a unit is moved by itself, as a part of the step between neighbours.
        scaling: most by which all places are multiplied or divided, after that.

    Raises:
        PositionError: a shift is negative, or the scaling below 1.
    """

    model: str
    shift: float
    local: float
    scaling: float

    def __post_init__(self) -> None:
        if self.shift < 0 or self.local < 0 or self.scaling < 1:
            raise PositionError(
                f"position model {self.model!r}: shift {self.shift}, local {self.local}, scaling {self.scaling}; give "
                f"shifts of 0 or more and a scaling of 1 or more: 0, 0 and 1 change nothing"
            )

    def draw(self, places: Tensor, step: Tensor | float) -> tuple[Tensor, Tensor, Tensor]:
        """What :func:`augmented` takes, for places (b, n, a): (b, 1, a), (b, n, a) and (b, 1, 1), each uniform."""
        b, n, a = places.shape
        return (
            _uniform(places, b, 1, a) * self.shift,
            _uniform(places, b, n, a) * self.local * step,
            _uniform(places, b, 1, 1) * math.log(self.scaling),
        )


def augmented(places: Tensor, shift: Tensor, local: Tensor, log_scale: Tensor) -> Tensor:
    """(t + shift + local_t) e^log_scale: the scale also multiplies the shifts."""
    return (places + shift + local) * log_scale.exp()


def _uniform(like: Tensor, *shape: int) -> Tensor:
    """From -1 to 1."""
    return torch.rand(shape, dtype=like.dtype, device=like.device) * 2 - 1
