"""Sinusoids of how many units are still to come, the length being uncertain while training (Oka et al. 2020)."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.encodings.size import Size
from structpe.positions import Dims, Spec
from structpe.positions.sinusoidal._added import CELLS, LengthAware, difference

__all__ = ["NoisyLength"]


class NoisyLength(LengthAware, name="noisy-length"):
    """Sinusoids of how many units are still to come, the length being uncertain while training (Oka et al. 2020).

    x_t + P_t,  P_t = cat[sin(r omega_i), cos(r omega_i)],  r = l + e + 1 - t,  omega_i = 10000^(-i/(d/2 - 1)).

    As ``length-difference``, but in training an integer e, the same for all units of a structure, is drawn for each
    batch from -w..w, each as likely; in evaluation e = 0. (Oka et al. 2020; survey, section 4.4: "adding a randomly
    sampled integer to the length". No code is known: the sinusoids are those of the code that it extends, by Takase and
    Okazaki.) For inference Oka et al. predict l from the source by a separate network, which is not part of a position
    model: pass its prediction as ``length=Feature("length")``.

    Args:
        dims: sizes of the Transformer.
        encoding: t, one number per unit.
        length: l, one number per unit.
        window: w; without noise it is ``length-difference``.

    Raises:
        PositionError: an encoding gives a vector per unit.
    """

    spec = Spec("oka2020", "sequence", CELLS, table1=CELLS)

    def __init__(self, dims: Dims, encoding: Encoding = Order(), length: Encoding = Size(), window: int = 4) -> None:
        super().__init__(dims, encoding, length)
        self.window = window

    def waves(self, places: Tensor, lengths: Tensor) -> Tensor:
        return difference(places, lengths + self.noise(lengths), self.dims.width)

    def noise(self, lengths: Tensor) -> Tensor:
        """(b, 1) the e of each structure."""
        if not self.training:
            return lengths.new_zeros(len(lengths), 1)
        return torch.randint(-self.window, self.window + 1, (len(lengths), 1), device=lengths.device)
