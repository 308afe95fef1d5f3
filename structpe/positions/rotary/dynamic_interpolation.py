"""Position interpolation by the ratio of the length of the text to that of training."""

from __future__ import annotations

from torch import Tensor

from structpe.positions import Spec
from structpe.positions.rotary._turns import CELLS, DynamicRotaryModel
from structpe.positions.sinusoidal._sinusoids import inverse_frequencies

__all__ = ["DynamicInterpolation"]


class DynamicInterpolation(DynamicRotaryModel, name="dynamic-interpolation"):
    """Position interpolation by the ratio of the length of the text to that of training.

    ``position-interpolation`` with a = L/L' if the text has more than L' units, and a = 1 otherwise.

    L is the length of the text, L' that of the longest in training. (Peng et al. 2024, section 3.3; the code of YaRN,
    its dynamic rotary positions without ``ntk``.) As of ``dynamic-ntk``, L is of each text, so that decoders cannot use
    it.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        length: L, one number per unit.
        base: the slowest pair turns about this many times slower than the fastest.
        trained: L'.

    Raises:
        PositionError: the width of a head is odd, L' is below 1, or the encoding gives a vector per unit.
    """

    spec = Spec(
        "peng2024",
        "sequence",
        CELLS,
        note="a text longer than those of training changes all its angles with its length, not with places",
    )

    def of_lengths(self, lengths: Tensor) -> Tensor:
        trained = inverse_frequencies(self.dims.head, lengths.device, self.base)
        return trained * self.trained / lengths.clamp(min=self.trained)
