"""How fast the pairs of rotary positions turn: frequencies that are scaled to longer texts, or left out."""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order, Size
from structpe.errors import PositionError, listed
from structpe.positions import Cells, Dims, Spec
from structpe.positions.batch import holds
from structpe.positions.rotary import (
    CELLS,
    DynamicRotaryModel,
    RotaryModel,
    check_above_zero,
    check_longer,
    length_of,
    of_pairs,
)
from structpe.positions.sinusoids import inverse_frequencies

__all__ = [
    "DynamicInterpolation",
    "DynamicNTK",
    "Llama3",
    "LongRoPE",
    "LongRoPE2",
    "LongRoPEDynamic",
    "NTKAware",
    "NTKByParts",
    "PRoPE",
    "PartsModel",
    "PositionInterpolation",
    "ScaledModel",
    "YaRN",
    "factors_of",
    "newer_base",
    "ramp",
    "sharper",
]


def newer_base(width: int, base: float | Tensor, longer: float | Tensor) -> float | Tensor:
    """The base with which the slowest pair of a head turns ``longer`` times slower and the fastest as before."""
    return base * longer ** (width / (width - 2)) if width > 2 else base


def ramp(width: int, base: float, original_length: int, many: float, few: float, truncate: bool = True) -> Tensor:
    """(width/2,) float64: 1 for pairs that turn more than ``many`` times within a text of training, 0 below ``few``.

    The pair that turns r times there is i(r) = width ln(original_length / 2 pi r) / (2 ln base), in general not a whole
    number; the values fall in a straight line from floor(i(many)) to ceil(i(few)), clamped to 0..width-1. (Only width/2
    pairs exist; the authors' code clamps it to the number of channels.) Without ``truncate`` it goes from i(many) to
    i(few) themselves.
    """

    def pair(times: float) -> float:
        return width * math.log(original_length / (times * 2 * math.pi)) / (2 * math.log(base))

    ends = (math.floor(pair(many)), math.ceil(pair(few))) if truncate else (pair(many), pair(few))
    first, last = max(ends[0], 0), min(ends[1], width - 1)
    span = last - first or 0.001  # the authors', against division by zero
    return 1 - ((torch.arange(width // 2, dtype=torch.float64) - first) / span).clamp(0, 1)


def factors_of(model: str, dims: Dims, given: tuple[float, ...], scale: float) -> Tensor:
    """(d_h/2,) float64: the factors given, one for each pair; by default those of NTK-aware scaling, a^(2i/(d_h-2)).

    Raises:
        PositionError: there is not one for each pair, or one is not positive.
    """
    pairs = dims.head // 2
    if not given:
        return scale ** (torch.arange(pairs, dtype=torch.float64) / max(pairs - 1, 1))
    if len(given) != pairs or min(given) <= 0:
        raise PositionError(
            f"position model {model!r} takes a positive factor for each of the {pairs} pairs of channels of a head; "
            f"given are {len(given)}: {listed(given)}"
        )
    return torch.tensor(given, dtype=torch.float64)


def sharper(model: str, scale: float, original_length: int) -> float:
    """sqrt(1 + ln scale / ln original_length): the factor of queries and keys, so that attention stays as sharp.

    Raises:
        PositionError: texts in training had fewer than 2 units.
    """
    if original_length < 2:
        raise PositionError(
            f"position model {model!r} takes an original_length of 2 or more; given is {original_length}"
        )
    return math.sqrt(1 + math.log(scale) / math.log(original_length)) if scale > 1 else 1.0


class ScaledModel(RotaryModel):
    """Inverse frequencies that are scaled to texts which are longer than those of training.

    Args:
        scale: a, 1 or more; with 1 this is ``rotary-half``.

    Raises:
        PositionError: a scale is below 1.
    """

    scales = True

    def __init__(self, dims: Dims, encoding: Encoding = Order(), base: float = 10000.0, scale: float = 4.0) -> None:
        check_longer(self.name, scale=scale)
        super().__init__(dims, encoding, base)
        self.scale = scale


class PartsModel(ScaledModel):
    """Inverse frequencies of which some stay, f_i u_i + g_i (1 - u_i), by how often a pair turns in a text of training.

    Args:
        original_length: number of units of the longest text in training.

    Raises:
        PositionError: a length is below 1.
    """

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        base: float = 10000.0,
        scale: float = 4.0,
        original_length: int = 2048,
    ) -> None:
        check_longer(self.name, original_length=original_length)
        super().__init__(dims, encoding, base, scale)
        self.original_length = original_length

    def inverse_frequencies(self) -> Tensor:
        trained = super().inverse_frequencies()
        scaled, stays = self.parts(trained)
        return scaled * (1 - stays) + trained * stays

    @abstractmethod
    def parts(self, trained: Tensor) -> tuple[Tensor, Tensor]:
        """(d_h/2,) g_i and u_i, float64, from f_i."""


class PRoPE(ScaledModel, name="p-rope"):
    """p-RoPE: rotary positions without their slowest pairs, which keep content alone (Barbero et al. 2025).

    ``rotary-half`` where only the pairs i < p d_h/2, the fastest, turn, by t base^(-2i/d_h); the others do not.

    The slowest pairs of trained models carry meaning rather than place, and turn it away in long texts. (Barbero et al.
    2025; their code. "proportional" in Hugging Face, as in Gemma 4, with the "partial_rotary_factor" p and the "factor"
    ``scale``.) Exponents belong to the whole head: in ``rotary-half`` with a ``fraction`` they belong to the part that
    is turned, the first channels, which then are pairs among themselves.

    Args:
        base: the slowest pair would turn about this many times slower than the fastest.
        share: p, from 0, which turns nothing, to 1, which is ``rotary-half``; p d_h/2 is rounded down.
        scale: all pairs turn this many times slower, 1 or more.

    Raises:
        PositionError: p is not from 0 to 1.
    """

    spec = Spec("barbero2025", "sequence", CELLS)

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        base: float = 10000.0,
        share: float = 0.75,
        scale: float = 1.0,
    ) -> None:
        if share > 1:
            raise PositionError(f"position model {self.name!r} turns a share of pairs from 0 to 1; given is {share}")
        super().__init__(dims, encoding, base, scale)
        self.turned = int(share * dims.head // 2)

    def inverse_frequencies(self) -> Tensor:
        every = super().inverse_frequencies() / self.scale
        return every.where(torch.arange(len(every)) < self.turned, 0.0)


class PositionInterpolation(ScaledModel, name="position-interpolation"):
    """Rotary positions, interpolated into the length of training (Chen et al. 2023).

    (q_t, k_s) -> (R_(t/a) q_t, R_(s/a) k_s): R_t turns the channels (i, i + d_h/2) of a head by t base^(-2i/d_h).

    A model trained on texts of some length then sees, in texts a times as long, only angles from training. (Chen et al.
    2023, eq. 3; Llama's layout of channels, as in the code of YaRN.)
    """

    spec = Spec("chen2023", "sequence", CELLS)

    def inverse_frequencies(self) -> Tensor:
        return super().inverse_frequencies() / self.scale


class NTKAware(ScaledModel, name="ntk-aware"):
    """Rotary positions with a larger base, so that slow pairs become slower and fast ones do not (NTK-aware scaling).

    ``rotary-half`` with the base b a^(d_h/(d_h-2)): the slowest pair turns a times slower, the fastest as before.

    Pairs in between are slowed down by the power 2i/(d_h-2) of a. (bloc97 2023; Peng et al. 2024, section 3.1,
    definition 1, where d_h is |D|. As in the code of YaRN.)
    """

    spec = Spec("peng2024", "sequence", CELLS)

    def inverse_frequencies(self) -> Tensor:
        return inverse_frequencies(self.dims.head, base=newer_base(self.dims.head, self.base, self.scale))


_NTK = (1.25, 0.75)
_AS_THEY_ARE = (16, 2)
"""Turns within a text of training, from which on and up to which a pair goes from one way to the next: the authors'."""


class NTKByParts(PartsModel, name="ntk-by-parts"):
    """Rotary positions whose fast, middle and slow pairs are scaled in three ways (NTK by parts).

    ``rotary-half`` with the inverse frequencies w_i = f_i (1 - u_i) + u_i [ (1 - v_i) f_i / a + v_i g_i ].

    f_i = b^(-2i/d_h) are the inverse frequencies of training, f_i / a those of ``position-interpolation``, g_i those of
    ``ntk-aware``. u is 0 for pairs that turn more than 16 times within a text of training and 1 below 2 times; v is 1
    above 1.25 times and 0 below 0.75; both fall in straight lines over pairs (:func:`ramp` is 1 - u, and v). So fast
    pairs are unchanged, slow ones are interpolated, and some in between are as with another base.

    This is the code of YaRN. Its paper (Peng et al. 2024, section 3.2, definition 2) goes from f_i / a to f_i only,
    between 1 and 32 turns: that is ``yarn`` without its factor of queries and keys.
    """

    spec = Spec("peng2024", "sequence", CELLS)

    def parts(self, trained: Tensor) -> tuple[Tensor, Tensor]:
        width = self.dims.head
        other = inverse_frequencies(width, base=newer_base(width, self.base, self.scale))
        ntk = ramp(width, self.base, self.original_length, *_NTK)
        stays = ramp(width, self.base, self.original_length, *_AS_THEY_ARE)
        return trained / self.scale * (1 - ntk) + other * ntk, stays


class DynamicNTK(DynamicRotaryModel, name="dynamic-ntk"):
    """NTK-aware scaling by the ratio of the length of the text to that of training (dynamic NTK).

    ``ntk-aware`` with a = c L/L' - (c - 1) if the text has more than L' units, and a = 1 otherwise.

    L is the length of the text, L' that of the longest in training, c a factor, 1 in the code of YaRN (there ``ntk``;
    Hugging Face's ``factor``). (emozilla 2023; Peng et al. 2024, section 3.3.) L is of each text, not of a batch: what
    a text is padded or packed with has no influence. The encoding L is not causal: when a text grows beyond L', the
    angles of its first units change too. Beyond L' angles therefore follow from offsets and L.

    Args:
        scale: c, 1 or more.

    Raises:
        PositionError: a scale is below 1.
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
        original_length: int = 2048,
    ) -> None:
        check_longer(self.name, scale=scale)
        super().__init__(dims, encoding, length, base, original_length)
        self.scale = scale

    def of_lengths(self, lengths: Tensor) -> Tensor:
        longer = (self.scale * lengths / self.original_length - (self.scale - 1)).where(
            lengths > self.original_length, 1.0
        )
        return inverse_frequencies(self.dims.head, lengths.device, newer_base(self.dims.head, self.base, longer))


class DynamicInterpolation(DynamicRotaryModel, name="dynamic-interpolation"):
    """Position interpolation by the ratio of the length of the text to that of training.

    ``position-interpolation`` with a = L/L' if the text has more than L' units, and a = 1 otherwise.

    L is the length of the text, L' that of the longest in training. (Peng et al. 2024, section 3.3; the code of YaRN,
    its dynamic rotary positions without ``ntk``.) As of ``dynamic-ntk``, L is of each text, so that decoders cannot use
    it.
    """

    spec = Spec(
        "peng2024",
        "sequence",
        CELLS,
        note="a text longer than those of training changes all its angles with its length, not with places",
    )

    def of_lengths(self, lengths: Tensor) -> Tensor:
        trained = inverse_frequencies(self.dims.head, lengths.device, self.base)
        return trained * self.original_length / lengths.clamp(min=self.original_length)


class YaRN(PartsModel, name="yarn"):
    """YaRN: slow pairs of rotary channels interpolated, not fast ones, and sharper attention (Peng et al. 2024).

    ``rotary-half`` with inverse frequencies (1 - u_i) f_i / a + u_i f_i; queries and keys are multiplied by c.

    f_i = b^(-2i/d_h) are the inverse frequencies of training. u is 1 for pairs that turn more than 32 times within a
    text of training, 0 below once, and falls in a straight line over the pairs between (:func:`ramp`). c = 0.1 ln a +
    1, and scores grow by c^2, which acts as the temperature of the softmax. (Peng et al. 2024, section 3.4, definition
    3.)

    As in the authors' code: the ends of the line are whole pairs, rounded outwards, and clamped to 0..d_h - 1, although
    there are only d_h/2 pairs. Hugging Face's ``rope_scaling`` of type "yarn" is the same; its keys "factor",
    "original_max_position_embeddings", "beta_fast", "beta_slow", "truncate" and "attention_factor" are ``scale``,
    ``original_length``, ``fast``, ``slow``, ``truncate`` and ``attention_factor`` here.

    Args:
        fast: turns within a text of training from which on a pair stays as it is.
        slow: turns below which a pair is interpolated.
        truncate: whether the ends of the line are rounded.
        attention_factor: c, above 0; None for 0.1 ln a + 1.

    Raises:
        PositionError: a c of 0 or less.
    """

    spec = Spec("peng2024", "sequence", CELLS)

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        base: float = 10000.0,
        scale: float = 4.0,
        original_length: int = 2048,
        fast: float = 32.0,
        slow: float = 1.0,
        truncate: bool = True,
        attention_factor: float | None = None,
    ) -> None:
        check_above_zero(self.name, fast=fast, slow=slow)
        super().__init__(dims, encoding, base, scale, original_length)
        self.fast, self.slow, self.truncate = fast, slow, truncate
        self.attention_factor = length_of(self.name, attention_factor, 0.1 * math.log(scale) + 1)

    def parts(self, trained: Tensor) -> tuple[Tensor, Tensor]:
        stays = ramp(self.dims.head, self.base, self.original_length, self.fast, self.slow, self.truncate)
        return trained / self.scale, stays


class Llama3(PartsModel, name="llama3"):
    """Llama 3's rotary positions for longer texts: slow pairs of channels are interpolated (Grattafiori et al. 2024).

    ``rotary-half`` with inverse frequencies (1 - u_i) f_i / a + u_i f_i, where u_i follows the wavelength of a pair.

    ::

        u_i = min(1, max(0, (T / l_i - slow) / (fast - slow))),    l_i = 2 pi / f_i

    f_i = b^(-2i/d_h) are the inverse frequencies of training, T the length of its texts: a pair that turns more than
    ``fast`` times within such a text stays as it is, one that turns less than ``slow`` times is a times slower, and
    those between are mixed. (Llama 3.1, after Grattafiori et al. 2024; the formula is in the authors' code, not in the
    paper.) It differs from ``ntk-by-parts`` and ``yarn`` in the mixture, which is linear in the number of turns, and
    queries and keys keep their length. Hugging Face's "factor", "original_max_position_embeddings",
    "high_freq_factor" and "low_freq_factor" are ``scale``, ``original_length``, ``fast`` and ``slow`` here.

    Args:
        fast: turns within a text of training from which on a pair stays as it is.
        slow: turns below which a pair is a times slower; below ``fast``.

    Raises:
        PositionError: ``slow`` is not between 0 and ``fast``.
    """

    spec = Spec("grattafiori2024", "sequence", CELLS)

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        base: float = 500_000.0,
        scale: float = 8.0,
        original_length: int = 8192,
        fast: float = 4.0,
        slow: float = 1.0,
    ) -> None:
        check_above_zero(self.name, slow=slow)
        if fast <= slow:
            raise PositionError(f"position model {self.name!r} takes a fast above slow; given are {fast} and {slow}")
        super().__init__(dims, encoding, base, scale, original_length)
        self.fast, self.slow = fast, slow

    def parts(self, trained: Tensor) -> tuple[Tensor, Tensor]:
        turns = self.original_length * trained / (2 * math.pi)
        return trained / self.scale, ((turns - self.slow) / (self.fast - self.slow)).clamp(0, 1)


class LongRoPE(ScaledModel, name="longrope"):
    """LongRoPE: a factor for each pair of rotary channels (Ding et al. 2024).

    ``rotary-half`` with inverse frequencies b^(-2i/d_h) / lambda_i; queries, keys times c = sqrt(1 + ln a / ln L').

    a is the ratio of the length of texts to that in training, L'. The first ``kept`` places are as in training. (Ding
    et al. 2024, section 3; the authors' code, whose c is called "su". For its other values, and Hugging Face's
    "attention_factor", use ``attention_factor``.)

    The factors lambda are found by a search for each trained model; the search itself is not included. Without factors
    they are a^(2i/(d_h-2)), those of ``ntk-aware``, one of the starting points of the authors' search.

    Args:
        factors: lambda, d_h/2 positive numbers.
        scale: a, 1 or more.
        original_length: L', 2 or more.
        kept: places below this are as in training.
        attention_factor: c, above 0; by default that of the formula.

    Raises:
        PositionError: a length below 2, another number of factors, or a c of 0 or less.
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
        original_length: int = 4096,
        kept: int = 0,
        attention_factor: float | None = None,
    ) -> None:
        super().__init__(dims, encoding, base, scale)
        self.scaled = self.inverse_frequencies() / factors_of(self.name, dims, factors, scale)
        self.lengthened = length_of(self.name, attention_factor, sharper(self.name, scale, original_length))
        self.kept = kept

    def angles(self, places: Tensor, *others: Tensor) -> tuple[Tensor, Tensor | float]:
        places = of_pairs(places)
        kept = places < self.kept
        as_trained, scaled = super().inverse_frequencies().to(places.device), self.scaled.to(places.device)
        frequencies = torch.where(kept, as_trained, scaled)
        angles = places.to(self.precision) * frequencies.to(self.precision)
        return angles, torch.where(kept, angles.new_ones((), dtype=torch.float64), self.lengthened)[:, None]


class LongRoPEDynamic(DynamicRotaryModel, name="longrope-dynamic"):
    """LongRoPE with factors that grow with the length of the text (Ding et al. 2024, their code).

    ``longrope`` with the factors 1 + (lambda_i - 1) (L/L' - 1) / (a - 1), L being the number of units of the text.

    At L = L' pairs turn as in training, at L = a L' as in ``longrope``. As in the authors' code the line goes on below
    L' and beyond a L': in a text shorter than L' pairs turn faster than in training. L is of each text; decoders cannot
    use it, because a text that grows changes the angles of its first units.

    Args:
        factors: lambda, d_h/2 positive numbers; the default is that of ``longrope``.
        scale: a, above 1.
        original_length: L', 2 or more.
        attention_factor: the factor of queries and keys; None as in ``longrope``.

    Raises:
        PositionError: a scale of 1 or less, a length below 2, another number of factors, an ``attention_factor`` of 0
            or less, or a text so short that the line leads to factors of 0 or less.
    """

    spec = Spec(
        "ding2024",
        "sequence",
        Cells("B", "MAM", learnable=False, recurring=True, unbound=True, params="0"),
        note="angles follow from offsets and from the length of the text, which more text in front changes",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        length: Encoding = Size(),
        base: float = 10000.0,
        factors: tuple[float, ...] = (),
        scale: float = 4.0,
        original_length: int = 4096,
        attention_factor: float | None = None,
    ) -> None:
        check_longer(self.name, scale=scale)
        if scale == 1:
            raise PositionError("position model 'longrope-dynamic' divides by scale - 1; give a scale above 1")
        super().__init__(dims, encoding, length, base, original_length)
        self.scale = scale
        self.attention_factor = length_of(self.name, attention_factor, sharper(self.name, scale, original_length))
        self.factors = factors_of(self.name, dims, factors, scale)

    def of_lengths(self, lengths: Tensor) -> Tensor:
        lengths = lengths.where(lengths > 0, self.original_length)
        factors = 1 + (self.factors.to(lengths.device) - 1) * (lengths / self.original_length - 1) / (self.scale - 1)
        if holds((factors <= 0).any()):
            raise PositionError(
                f"position model 'longrope-dynamic' has no positive factors for a text of {int(lengths.min())} units; "
                f"give an 'original_length' nearer to the length of such texts, or use 'longrope'"
            )
        return inverse_frequencies(self.dims.head, lengths.device, self.base) / factors


class LongRoPE2(DynamicRotaryModel, name="longrope2"):
    """LongRoPE2: a factor for each pair in long texts, and rotary positions of training in others (Shang et al. 2025).

    ``longrope`` in texts of more than L' units; ``rotary-half`` in those of L' units or fewer.

    Models are trained with both, so that short texts keep what they have: the mixed context window of LongRoPE2. It
    finds the factors lambda by another search than LongRoPE, which is not included either. (Shang et al. 2025; the
    authors' code is that of ``longrope``.) Frequencies are those of Hugging Face's "longrope" with 1 as each
    "short_factor", which multiplies queries and keys by c in short texts too; here c is for long ones. As of
    ``dynamic-ntk``, L is of each text, so that decoders cannot use it.

    Args:
        factors: lambda, d_h/2 positive numbers; the default is that of ``longrope``.
        scale: a, 1 or more.
        original_length: L', 2 or more.
        attention_factor: c, above 0; None as in ``longrope``.

    Raises:
        PositionError: a scale below 1, a length below 2, another number of factors, or a c of 0 or less.
    """

    spec = Spec(
        "shang2025",
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
        factors: tuple[float, ...] = (),
        scale: float = 4.0,
        original_length: int = 4096,
        attention_factor: float | None = None,
    ) -> None:
        check_longer(self.name, scale=scale)
        super().__init__(dims, encoding, length, base, original_length)
        self.lengthened = length_of(self.name, attention_factor, sharper(self.name, scale, original_length))
        self.factors = factors_of(self.name, dims, factors, scale)

    def angles(self, places: Tensor, *others: Tensor) -> tuple[Tensor, Tensor | float]:
        angles, _ = super().angles(places, *others)
        longer = (others[0] > self.original_length)[:, None, :, None]
        return angles, torch.where(longer, self.lengthened, angles.new_ones((), dtype=torch.float64))

    def of_lengths(self, lengths: Tensor) -> Tensor:
        trained = inverse_frequencies(self.dims.head, lengths.device, self.base)
        return torch.where(lengths > self.original_length, trained / self.factors.to(lengths.device), trained)
