"""LongRoPE: a factor for each pair of rotary channels (Ding et al. 2024)."""

from __future__ import annotations

import torch

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Dims, Positions, Spec
from structpe.positions._checks import numbers
from structpe.positions.rotary._long_factors import factors_of, sharper
from structpe.positions.rotary._turns import CELLS, RotaryModel, Turns, check_longer, length_of

__all__ = ["LongRoPE"]


class LongRoPE(RotaryModel, name="longrope"):
    """LongRoPE: a factor for each pair of rotary channels (Ding et al. 2024).

    ``rotary-half`` with inverse frequencies b^(-2i/d_h) / lambda_i; queries, keys times c = sqrt(1 + ln a / ln L').

    a is the ratio of the length of texts to that in training, L'. The first ``kept`` places are as in training. (Ding
    et al. 2024, section 3; the authors' code, whose c is called "su". For its other values, and Hugging Face's
    "attention_factor", use ``longer``.)

    The factors lambda are found by a search for each trained model; the search itself is not included. Without factors
    they are a^(2i/(d_h-2)), those of ``ntk-aware``, one of the starting points of the authors' search.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        base: b.
        factors: lambda, d_h/2 positive numbers.
        scale: a, 1 or more.
        trained: L', 2 or more.
        kept: places below this are as in training.
        longer: c, above 0; by default that of the formula.

    Raises:
        PositionError: the width of a head is odd, a scale below 1, a length below 2, another number of factors, a c of
            0 or less, or a vector per unit.
    """

    spec = Spec(
        "ding2024",
        "sequence",
        CELLS,
        note="with places that are kept, scores between these and others depend on where they are",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        base: float = 10000.0,
        factors: tuple[float, ...] = (),
        scale: float = 4.0,
        trained: int = 4096,
        kept: int = 0,
        longer: float | None = None,
    ) -> None:
        check_longer(self.name, scale=scale)
        super().__init__(dims, encoding, base)
        as_trained = self.inverse_frequencies()
        self.frequencies = torch.stack([as_trained / factors_of(self.name, dims, factors, scale), as_trained])
        lengthened = length_of(self.name, longer, sharper(self.name, scale, trained))
        self.lengths, self.kept = torch.tensor([lengthened, 1.0], dtype=torch.float64), kept

    def prepare(self, positions: Positions) -> Turns:
        (encoding,) = self.encodings
        keys = numbers(self.name, encoding, positions[encoding])
        frequencies, lengths = self.frequencies.to(keys.device), self.lengths.to(keys.device)
        both = positions.queries(encoding), keys
        which = [(places < self.kept).long() for places in both]
        angles = [(t[..., None].double() * frequencies[w])[:, None] for t, w in zip(both, which, strict=True)]
        return Turns(*angles, *(lengths[w][:, None, :, None] for w in which))
