"""YaRN: slow pairs of rotary channels interpolated, not fast ones, and sharper attention (Peng et al. 2024)."""

from __future__ import annotations

import math

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Dims, Spec
from structpe.positions.rotary._ramps import ramp
from structpe.positions.rotary._turns import CELLS, RotaryModel, check_above_zero, check_longer, length_of

__all__ = ["YaRN"]


class YaRN(RotaryModel, name="yarn"):
    """YaRN: slow pairs of rotary channels interpolated, not fast ones, and sharper attention (Peng et al. 2024).

    ``rotary-half`` with inverse frequencies (1 - u_i) f_i / a + u_i f_i; queries and keys are multiplied by c.

    f_i = b^(-2i/d_h) are the inverse frequencies of training. u is 1 for pairs that turn more than 32 times within a
    text of training, 0 below once, and falls in a straight line over the pairs between (:func:`ramp`). c = 0.1 ln a +
    1, and scores grow by c^2, which acts as the temperature of the softmax. (Peng et al. 2024, section 3.4, definition
    3.)

    As in the authors' code: the ends of the line are whole pairs, rounded outwards, and clamped to 0..d_h - 1, although
    there are only d_h/2 pairs. Hugging Face's ``rope_scaling`` of type "yarn" is the same; its keys "factor",
    "original_max_position_embeddings", "beta_fast", "beta_slow", "truncate" and "attention_factor" are ``scale``,
    ``trained``, ``fast``, ``slow``, ``truncate`` and ``longer`` here.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        base: b.
        scale: a, 1 or more; with 1 this is ``rotary-half``.
        trained: number of units of the longest text in training.
        fast: turns within such a text from which on a pair stays as it is.
        slow: turns below which a pair is interpolated.
        truncate: whether the ends of the line are rounded.
        longer: c, above 0; None for 0.1 ln a + 1.

    Raises:
        PositionError: the width of a head is odd, a scale or length below 1, a c of 0 or less, or a vector per unit.
    """

    spec = Spec("peng2024", "sequence", CELLS)

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        base: float = 10000.0,
        scale: float = 4.0,
        trained: int = 2048,
        fast: float = 32.0,
        slow: float = 1.0,
        truncate: bool = True,
        longer: float | None = None,
    ) -> None:
        check_longer(self.name, scale=scale, trained=trained)
        check_above_zero(self.name, fast=fast, slow=slow)
        super().__init__(dims, encoding, base)
        self.scale, self.trained, self.fast, self.slow, self.truncate = scale, trained, fast, slow, truncate
        self.longer = length_of(self.name, longer, 0.1 * math.log(scale) + 1)

    def inverse_frequencies(self) -> Tensor:
        trained = super().inverse_frequencies()
        stays = ramp(self.dims.head, self.base, self.trained, self.fast, self.slow, self.truncate)
        return trained / self.scale * (1 - stays) + trained * stays
