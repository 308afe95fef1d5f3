"""ComplEx (Trouillon et al. 2016)."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.errors import ConfigError
from structpe.nn.readouts._pairs import PairReadout

__all__ = ["ComplEx"]


class ComplEx(PairReadout, name="complex"):
    """s(h, r, t) = Re(sum_k h_k r_k conj(t_k)), vectors of d/2 complex numbers: real parts first, then imaginary parts.

    Trouillon et al. 2016, equations 9 to 11. With the head missing, h is scored by the conjugates of r and t:
    Re(h r conj(t)) = Re(t conj(r) conj(h)).

    Raises:
        ConfigError: the width is odd.
    """

    def __init__(self, width: int, outputs: int) -> None:
        if width % 2:
            raise ConfigError(f"width is {width}; complex needs an even width, for real and imaginary parts")
        super().__init__(width, outputs)

    def score(self, given: Tensor, relation: Tensor, reverse: Tensor, candidates: Tensor) -> Tensor:
        (a, b), (c, d) = given.chunk(2, 1), relation.chunk(2, 1)
        d = torch.where(reverse, -d, d)
        # Re(z conj(t)) is the product of the real parts plus that of the imaginary parts.
        return torch.cat([a * c - b * d, a * d + b * c], dim=1) @ candidates.T
