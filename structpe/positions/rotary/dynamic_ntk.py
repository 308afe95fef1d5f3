"""NTK-aware scaling by the ratio of the length of the text to that of training (dynamic NTK)."""

from __future__ import annotations

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.encodings.size import Size
from structpe.positions import Dims, Spec
from structpe.positions.rotary._turns import CELLS, DynamicRotaryModel, check_longer, newer_base
from structpe.positions.sinusoidal._sinusoids import inverse_frequencies

__all__ = ["DynamicNTK"]


class DynamicNTK(DynamicRotaryModel, name="dynamic-ntk"):
    """NTK-aware scaling by the ratio of the length of the text to that of training (dynamic NTK).

    ``ntk-aware`` with a = c L/L' - (c - 1) if the text has more than L' units, and a = 1 otherwise.

    L is the length of the text, L' that of the longest in training, c a factor, 1 in the code of YaRN (there ``ntk``;
    Hugging Face's ``factor``). (emozilla 2023; Peng et al. 2024, section 3.3.) L is of each text, not of a batch: what
    a text is padded or packed with has no influence. The encoding L is not causal: when a text grows beyond L', the
    angles of its first units change too. Beyond L' angles therefore follow from offsets and L.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        length: L, one number per unit.
        base: b.
        scale: c, 1 or more.
        trained: L'.

    Raises:
        PositionError: the width of a head is odd, a scale or L' is below 1, or the encoding gives a vector per unit.
    """

    spec = Spec(
        "peng2024",
        "sequence",
        CELLS,
        note="a text longer than those of training changes all its angles with its length, not with places",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        length: Encoding = Size(),
        base: float = 10000.0,
        scale: float = 1.0,
        trained: int = 2048,
    ) -> None:
        check_longer(self.name, scale=scale)
        super().__init__(dims, encoding, length, base, trained)
        self.scale = scale

    def of_lengths(self, lengths: Tensor) -> Tensor:
        longer = (self.scale * lengths / self.trained - (self.scale - 1)).where(lengths > self.trained, 1.0)
        return inverse_frequencies(self.dims.head, lengths.device, newer_base(self.dims.head, self.base, longer))
