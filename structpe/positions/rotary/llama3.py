"""Llama 3's rotary positions for longer texts: slow pairs of channels are interpolated (Grattafiori et al. 2024)."""

from __future__ import annotations

import math

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.errors import PositionError
from structpe.positions import Dims, Spec
from structpe.positions.rotary._turns import CELLS, RotaryModel, check_above_zero, check_longer

__all__ = ["Llama3"]


class Llama3(RotaryModel, name="llama3"):
    """Llama 3's rotary positions for longer texts: slow pairs of channels are interpolated (Grattafiori et al. 2024).

    ``rotary-half`` with inverse frequencies (1 - u_i) f_i / a + u_i f_i, where u_i follows the wavelength of a pair.

    ::

        u_i = min(1, max(0, (T / l_i - slow) / (fast - slow))),    l_i = 2 pi / f_i

    f_i = b^(-2i/d_h) are the inverse frequencies of training, T the length of its texts: a pair that turns more than
    ``fast`` times within such a text stays as it is, one that turns less than ``slow`` times is a times slower, and
    those between are mixed. (Llama 3.1, after Grattafiori et al. 2024; the formula is in the authors' code, not in the
    paper.) It differs from ``ntk-by-parts`` and ``yarn`` in the mixture, which is linear in the number of turns, and
    queries and keys keep their length. Hugging Face's "factor", "original_max_position_embeddings",
    "high_freq_factor" and "low_freq_factor" are ``scale``, ``trained``, ``fast`` and ``slow`` here.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        base: b; 500,000 in Llama 3.
        scale: a, 1 or more; with 1 this is ``rotary-half``.
        trained: T, number of units of the longest text in training.
        fast: turns within such a text from which on a pair stays as it is.
        slow: turns below which a pair is a times slower; below ``fast``.

    Raises:
        PositionError: the width of a head is odd, a scale or length below 1, ``slow`` is not between 0 and ``fast``, or
            the encoding gives a vector per unit.
    """

    spec = Spec("grattafiori2024", "sequence", CELLS)

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        base: float = 500_000.0,
        scale: float = 8.0,
        trained: int = 8192,
        fast: float = 4.0,
        slow: float = 1.0,
    ) -> None:
        check_longer(self.name, scale=scale, trained=trained)
        check_above_zero(self.name, slow=slow)
        if fast <= slow:
            raise PositionError(f"position model {self.name!r} takes a fast above slow; given are {fast} and {slow}")
        super().__init__(dims, encoding, base)
        self.scale, self.trained, self.fast, self.slow = scale, trained, fast, slow

    def inverse_frequencies(self) -> Tensor:
        trained = super().inverse_frequencies()
        turns = self.trained * trained / (2 * math.pi)
        stays = ((turns - self.slow) / (self.fast - self.slow)).clamp(0, 1)
        return trained / self.scale * (1 - stays) + trained * stays
