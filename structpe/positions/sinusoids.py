"""Sines and cosines of places: orders and frequencies, models that add them, random shifts and scales (CAPE)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from structpe.errors import PositionError
from structpe.positions import Cells, Positions
from structpe.positions.places import UnitModel

__all__ = [
    "CELLS",
    "AddedSinusoids",
    "Augmentation",
    "augmented",
    "halves",
    "interleaved",
    "inverse_frequencies",
    "timing",
]


def inverse_frequencies(width: int, device: torch.device | None = None, base: float | Tensor = 10000.0) -> Tensor:
    """(width/2 rounded up,) base^(-2i/width), in float64: float32 is visibly wrong from position 10,000 on.

    A base of shape (..., 1) gives as many rows of them.
    """
    return base ** (-torch.arange(0, width, 2, dtype=torch.float64, device=device) / width)


def interleaved(places: Tensor, width: int, base: float = 10000.0) -> Tensor:
    """(..., width) float64: sin of channel 0, cos of channel 1, ...: survey, eq. 21."""
    angles = places[..., None].to(torch.float64) * inverse_frequencies(width, places.device, base)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[..., :width]


def halves(places: Tensor, width: int) -> Tensor:
    """(..., width) float64: cat[sin(t omega_i), cos(t omega_i)], omega_i = 10000^(-2i/width), as Transformer-XL's.

    omega is rounded to float32, to be identical with the authors'. The rounding does not matter: sines and cosines of a
    slightly different frequency are as good.
    """
    rounded = inverse_frequencies(width, places.device).to(torch.float32).to(torch.float64)
    angles = places[..., None].to(torch.float64) * rounded
    return torch.cat([angles.sin(), angles.cos()], dim=-1)[..., :width]


def timing(places: Tensor, width: int, base: float | Tensor = 10000.0) -> Tensor:
    """(..., width) float64: cat[sin(t omega_i), cos(t omega_i)], omega_i = base^(-i/(w/2 - 1)), i < w/2 rounded down.

    This is the form of the authors' code (tensor2tensor, fairseq). If the width is odd, the last channel is zero.

    Args:
        places: t, any shape.
        width: w.
        base: one, or one per place (any shape that ``places`` broadcasts with).
    """
    half = width // 2
    powers = -torch.arange(half, dtype=torch.float64, device=places.device) / max(half - 1, 1)
    bases = torch.as_tensor(base, dtype=torch.float64, device=places.device)
    angles = places.to(torch.float64)[..., None] * bases[..., None] ** powers
    rest = angles.new_zeros(*angles.shape[:-1], width - 2 * half)
    return torch.cat([angles.sin(), angles.cos(), rest], dim=-1)


CELLS = Cells("A", "APE", learnable=False, recurring=False, unbound=True, params="0")
"""What is added to the input once and without parameters, at any length."""


class AddedSinusoids(UnitModel):
    """x_t + P_t, P the interleaved sinusoids; t is the value of the encoding."""

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        places, _ = self.places(prepared)
        return x + self.waves(places).to(x.dtype)

    def waves(self, places: Tensor) -> Tensor:
        """(b, n, d) P at these places (b, n), in float64."""
        return interleaved(places, self.dims.width)


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
