"""Rotary positions: queries and keys are rotated by angles, with the scalings to longer texts."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import torch
from torch import Tensor

from structpe.encodings.base import Encoding, split
from structpe.encodings.order import Order, Size
from structpe.errors import PositionError, listed
from structpe.positions import MODELS, Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.batch import holds, numbers, of_arity
from structpe.positions.build import build
from structpe.positions.sinusoids import inverse_frequencies
from structpe.terms import Terms

__all__ = [
    "CELLS",
    "DynamicInterpolation",
    "DynamicNTK",
    "DynamicRotaryModel",
    "Llama3",
    "LongRoPE",
    "LongRoPEDynamic",
    "NTKAware",
    "NTKByParts",
    "PRoPE",
    "PositionInterpolation",
    "Rotary",
    "RotaryHalf",
    "RotaryModel",
    "Turns",
    "YaRN",
    "check_above_zero",
    "check_even",
    "check_longer",
    "factors_of",
    "length_of",
    "newer_base",
    "ramp",
    "sharper",
]


CELLS = Cells("R", "MAM", learnable=False, recurring=True, unbound=True, params="0")
"""What turns queries and keys at every layer, at any place and without parameters."""

Both: TypeAlias = tuple[Tensor, Tensor]
"""Queries and keys."""


@dataclass(frozen=True, eq=False)
class Turns:
    """Angles of the queries (b, 1, n, p) and of the keys (b, 1, m, p), and the factors of both.

    p is the number of pairs that are turned: d_h/2, or fewer; the channels after the first 2p then stay as they are.

    A decoding step has one query but all keys, so that these are two tensors. ``neighbours`` and ``halves`` are the two
    layouts, for ``Terms.maps``.

    Attributes:
        queries: angles.
        keys: angles.
        query_lengths: factors of the turned queries: one for all, or (b, 1, n, p).
        key_lengths: the same of the keys.
    """

    queries: Tensor
    keys: Tensor
    query_lengths: Tensor | float = 1.0
    key_lengths: Tensor | float = 1.0

    @property
    def alike(self) -> bool:
        """Whether queries and keys are turned alike."""
        pairs = ((self.queries, self.keys), (self.query_lengths, self.key_lengths))
        return all(torch.equal(torch.as_tensor(q), torch.as_tensor(k)) for q, k in pairs)

    def neighbours(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Channels 2i and 2i + 1 are a pair (RoFormer)."""

        def turned(x: Tensor, angles: Tensor, lengths: Tensor | float) -> Tensor:
            a, b = _turned(x[..., ::2], x[..., 1::2], angles, lengths)
            return torch.stack([a, b], dim=-1).flatten(-2)

        return self._part(turned, q, k)

    def halves(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Channels i and i + d_h/2 are a pair (Llama, GPT-NeoX)."""

        def turned(x: Tensor, angles: Tensor, lengths: Tensor | float) -> Tensor:
            first, second = x.chunk(2, dim=-1)
            return torch.cat(_turned(first, second, angles, lengths), dim=-1)

        return self._part(turned, q, k)

    def _part(self, turned: Callable[[Tensor, Tensor, Tensor | float], Tensor], q: Tensor, k: Tensor) -> Both:
        width = 2 * self.queries.shape[-1]

        def of(x: Tensor, angles: Tensor, lengths: Tensor | float) -> Tensor:
            if width == x.shape[-1]:
                return turned(x, angles, lengths)
            return torch.cat([turned(x[..., :width], angles, lengths), x[..., width:]], dim=-1)

        return of(q, self.queries, self.query_lengths), of(k, self.keys, self.key_lengths)


class RotaryModel(PositionModel):
    """Rotates the pair i of the channels of a head by the angle t w_i; a variant defines the w_i.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: t, one number per unit.
        base: of the inverse frequencies.

    Raises:
        PositionError: the width of a head is odd, or the encoding gives a vector per unit.
    """

    interleaved = False
    """Whether the channels 2i and 2i + 1 are a pair; otherwise i and i + d_h/2 are."""
    attention_factor = 1.0
    """Factor of the turned queries and keys."""
    precision = torch.float64
    """Of the angles."""
    scales: ClassVar[bool] = False
    """Whether it says how fast pairs turn, and nothing else, as the ``frequencies`` of :class:`Rotary` do."""

    def __init__(self, dims: Dims, encoding: Encoding = Order(), base: float = 10000.0) -> None:
        self._begin(dims, [encoding])
        self.base = base

    def prepare(self, positions: Positions) -> Any:
        """The angles, once for all layers."""
        for encoding in self.encodings:
            numbers(self.name, encoding, positions[encoding])
        (queries, query_lengths), (keys, key_lengths) = (
            self.angles(*(read(encoding) for encoding in self.encodings))
            for read in (positions.queries, positions.__getitem__)
        )
        return Turns(queries[:, None], keys[:, None], query_lengths, key_lengths)

    def terms(self, prepared: Any, site: Site) -> Terms:
        return Terms(maps=(prepared.neighbours if self.interleaved else prepared.halves,))

    def angles(self, places: Tensor, *others: Tensor) -> tuple[Tensor, Tensor | float]:
        """(b, n, p) the angles of the pairs of channels, and the factor of their lengths.

        Args:
            places: (b, n) t; or (b, n, p), where each pair has its own.
            others: (b, n) the numbers of further encodings, such as the length of the text.

        Returns:
            The angles; and a factor for all, or (b, 1, n, 1 or p).
        """
        del others
        frequencies = self.inverse_frequencies().to(places.device, self.precision)
        return _each(places).to(self.precision) * frequencies, self.attention_factor

    def inverse_frequencies(self) -> Tensor:
        """(d_h/2,) float64 the w_i."""
        return inverse_frequencies(self.dims.head, base=self.base)

    def cos_sin(self, positions: Positions) -> tuple[Tensor, Tensor]:
        """(b, n, d_h/2) cosine and sine of the angle of each unit and pair of channels, times the factor of lengths.

        The pairs are (2i, 2i+1) or (i, i + d_h/2), as the model says. ``torch.cat([x, x], -1)`` of the latter is what
        Llama of Hugging Face calls ``position_embeddings``.

        Raises:
            PositionError: queries and keys have other angles or factors, as in a decoding step or with ``xpos``.
        """
        turns = self.prepare(positions)
        if not isinstance(turns, Turns) or not turns.alike:
            raise PositionError(
                f"position model {self.name!r} turns queries and keys differently, so that one cosine and sine cannot "
                f"say how; apply the maps of its terms"
            )
        return (turns.keys.cos() * turns.key_lengths)[:, 0], (turns.keys.sin() * turns.key_lengths)[:, 0]

    def _begin(self, dims: Dims, encodings: Sequence[Encoding]) -> None:
        check_even(self.name, dims)
        super().__init__(dims, [of_arity(self.name, each, 1) for each in encodings])


class DynamicRotaryModel(RotaryModel):
    """Rotary positions whose inverse frequencies depend on the length of each text.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: t, one number per unit.
        length: L, one number per unit; 0 where a row is padded.
        base: of the inverse frequencies.
        original_length: number of units of the longest text in training, 1 or more.
    """

    scales = True

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        length: Encoding = Size(),
        base: float = 10000.0,
        original_length: int = 2048,
    ) -> None:
        check_longer(self.name, original_length=original_length)
        self._begin(dims, [encoding, length])
        self.base, self.original_length = base, original_length

    def angles(self, places: Tensor, *others: Tensor) -> tuple[Tensor, Tensor | float]:
        (lengths,) = others
        frequencies = self.of_lengths(lengths[..., None].double()).to(self.precision)
        return _each(places).to(self.precision) * frequencies, self.attention_factor

    @abstractmethod
    def of_lengths(self, lengths: Tensor) -> Tensor:
        """(..., d_h/2) inverse frequencies for texts of the lengths (..., 1), both float64."""


def newer_base(width: int, base: float | Tensor, longer: float | Tensor) -> float | Tensor:
    """The base with which the slowest pair of a head turns ``longer`` times slower and the fastest as before."""
    return base * longer ** (width / (width - 2)) if width > 2 else base


def check_even(model: str, dims: Dims) -> None:
    """Raise a :class:`PositionError` if the channels of a head cannot be paired."""
    if dims.head % 2:
        raise PositionError(
            f"position model {model!r} turns pairs of channels, so the width of a head must be even; "
            f"it is {dims.width} / {dims.heads} = {dims.head}"
        )


def check_longer(model: str, **factors: float) -> None:
    """Raise a :class:`PositionError` if one of the factors, or lengths, is below 1."""
    for name, factor in factors.items():
        if factor < 1:
            raise PositionError(f"position model {model!r} takes a {name} of 1 or more; given is {factor}")


def check_above_zero(model: str, **numbers: float) -> None:
    """Raise a :class:`PositionError` if one of the numbers, by which something is divided, is 0 or less."""
    for name, number in numbers.items():
        if number <= 0:
            raise PositionError(f"position model {model!r} takes a {name} above 0; given is {number}")


def length_of(model: str, given: float | None, usual: float) -> float:
    """The factor of rotated queries and keys: the given one, or the usual one.

    Raises:
        PositionError: 0 times or less.
    """
    if given is not None and given <= 0:
        raise PositionError(
            f"position model {model!r} multiplies queries and keys by a factor above 0; given is "
            f"attention_factor={given}"
        )
    return usual if given is None else given


def _each(places: Tensor) -> Tensor:
    """(b, n, 1) or (b, n, p) of (b, n) or (b, n, p)."""
    return places[..., None] if places.ndim == 2 else places


def _turned(a: Tensor, b: Tensor, angles: Tensor, lengths: Tensor | float) -> tuple[Tensor, Tensor]:
    cos, sin = (angles.cos() * lengths).to(a.dtype), (angles.sin() * lengths).to(a.dtype)
    return a * cos - b * sin, a * sin + b * cos


Inner: TypeAlias = str | dict[str, Any]
"""Name of a rotary model that says how fast pairs turn, or a mapping with ``name`` and its options."""
PLAIN = "plain"


class Rotary(RotaryModel, name="rotary"):
    """Rotary positions, pairs of neighbouring channels (Su et al. 2021).

    (q_t, k_s) -> (R_t q_t, R_s k_s): R_t turns the channels (2i, 2i+1) of each head by t base^(-2i/d_h).

    q.k then depends on s - t only. t is the place of a unit, or any other number per unit, such as its depth in a tree.
    (Su et al. 2021, section 3.2; survey, eq. 26, whose product R_t^T R_s is the rotation by s - t.)

    The pairs are RoFormer's, layout "pairs". Llama and GPT-NeoX pair the channels i and i + d_h/2, layout "halves",
    which is also named ``rotary-half``. How fast pairs turn is a choice of its own, ``frequencies``: any of the scaled
    models, such as ``yarn``, computed for the channels that are turned. So is what they turn with, ``axes``: a pair i
    turns with the number a(i) of its unit, as in ``mrope``. All choices combine::

        {"name": "rotary", "frequencies": {"name": "yarn", "scale": 8.0}, "fraction": 0.75, "layout": "halves"}

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: t, one number per unit.
        base: the slowest pair turns about this many times slower than the fastest.
        fraction: share of the channels of a head that is turned, the first ones; d_h above is then their number.
            (Partial rotary positions of GPT-J and GPT-NeoX; "partial_rotary_factor" of Hugging Face, but with the type
            "proportional", which is ``p-rope``.)
        layout: which channels are a pair.
        frequencies: "plain", as above; the name of a model of scaled frequencies, or a mapping with ``name`` and the
            options of that model, such as ``scale``; or one number for each pair that is turned, in radians per unit.
        axes: several encodings in place of one, each one number per unit.
        sections: pairs of each axis, in total those that are turned; by default equal parts, of which the first are one
            larger where that does not divide.
        order: how pairs are shared out: "sections" of pairs in a row (Qwen2-VL); or "interleaved", pair i with axis i
            mod m while that has pairs left, and with the first axis then (Qwen3-VL).
        attention_factor: factor of the turned queries and keys, above 0; None for that of the frequencies, or 1.
        precision: of the angles: "double", or "single", as most other libraries have them.

    Raises:
        PositionError: the width of a head is odd, no pair is left, the frequencies are of no such model or another
            number, sections do not fit, or the encoding gives a vector per unit.
    """

    spec = Spec("su2021", "sequence", CELLS, table1=CELLS)

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        base: float = 10000.0,
        fraction: float = 1.0,
        layout: Literal["pairs", "halves"] = "pairs",
        frequencies: Inner | tuple[float, ...] = PLAIN,
        axes: tuple[Encoding, ...] = (),
        sections: tuple[int, ...] = (),
        order: Literal["sections", "interleaved"] = "sections",
        attention_factor: float | None = None,
        precision: Literal["double", "single"] = "double",
    ) -> None:
        if not 0 < fraction <= 1 or dims.head * fraction < 2:
            raise PositionError(
                f"position model {self.name!r} turns a fraction {fraction} of the {dims.head} channels of a head; give "
                f"a number up to 1 with which a pair is left"
            )
        if axes and encoding != Order():
            raise PositionError(f"position model {self.name!r} takes an encoding or axes, not both; leave one out")
        check_even(self.name, dims)
        turned = Dims(2 * int(dims.head * fraction / 2), 1, 1)
        turning = _turning(self.name, frequencies, turned, base)
        on = axes or (encoding,)
        self._begin(dims, [*on, *turning.encodings[1:]])
        self.turning, self.base, self.interleaved = turning, base, layout == "pairs"
        self.attention_factor = length_of(self.name, attention_factor, turning.attention_factor)
        self.given = attention_factor is not None
        self.axes = _shared_out(self.name, len(on), turned.width // 2, sections, order)
        turning.precision = torch.float64 if precision == "double" else torch.float32

    def angles(self, places: Tensor, *others: Tensor) -> tuple[Tensor, Tensor | float]:
        if more := max(self.axes):
            places = torch.stack([places, *others[:more]], dim=-1)[..., list(self.axes)]
        angles, lengths = self.turning.angles(places, *others[more:])
        return angles, self.attention_factor if self.given else lengths

    def inverse_frequencies(self) -> Tensor:
        """(p,) float64 the w_i of the pairs that are turned."""
        return self.turning.inverse_frequencies()


class RotaryHalf(Rotary, name="rotary-half"):
    """Rotary positions, each channel of the first half of a head paired with one of the second (Llama, GPT-NeoX).

    (q_t, k_s) -> (R_t q_t, R_s k_s): R_t turns the channels (i, i + d_h/2) of each head by t base^(-2i/d_h).

    ``rotary`` with the layout "halves", and so with the channels of a head in another order: the two differ by a fixed
    permutation of the rows of the query and key projections, which matters for weights that were trained with one.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        base: the slowest pair turns about this many times slower than the fastest.
        fraction: share of the channels of a head that is turned, the first ones; d_h above is then their number.
            (Partial rotary positions of GPT-J and GPT-NeoX.)

    Raises:
        PositionError: the width of a head is odd, no pair is left, or the encoding gives a vector per unit.
    """

    spec = Spec("su2021", "sequence", CELLS, table1=CELLS)

    def __init__(self, dims: Dims, encoding: Encoding = Order(), base: float = 10000.0, fraction: float = 1.0) -> None:
        super().__init__(dims, encoding, base, fraction, layout="halves")


class _Given(RotaryModel):
    """Inverse frequencies that are given.

    Args:
        model: the name of the model whose they are.
        dims: sizes of the channels that are turned.
        frequencies: one for each pair.
    """

    def __init__(self, model: str, dims: Dims, frequencies: tuple[float, ...]) -> None:
        if len(frequencies) != dims.head // 2 or not all(map(math.isfinite, frequencies)):
            raise PositionError(
                f"position model {model!r} takes a finite frequency for each of the {dims.head // 2} pairs of channels "
                f"that it turns; given are {len(frequencies)}: {listed(map(str, frequencies))}"
            )
        super().__init__(dims)
        self.frequencies = frequencies

    def inverse_frequencies(self) -> Tensor:
        return torch.tensor(self.frequencies, dtype=torch.float64)


def _turning(model: str, frequencies: Inner | tuple[float, ...], dims: Dims, base: float) -> RotaryModel:
    """The model of how fast the pairs turn, for the channels that are turned.

    Raises:
        PositionError: they are of another model, or not one finite number for each pair.
    """
    if isinstance(frequencies, tuple):
        return _Given(model, dims, frequencies)
    name, options = split(frequencies, "the frequencies", "a number for each pair", PositionError)
    if name == PLAIN:
        if options:
            raise PositionError(f"frequencies {PLAIN!r} have no option; give base to {model!r} itself")
        return RotaryModel(dims, base=base)
    kind = MODELS[name]
    if not (issubclass(kind, RotaryModel) and kind.scales):
        known = [each for each, other in MODELS.items() if issubclass(other, RotaryModel) and other.scales]
        raise PositionError(
            f"the frequencies of position model {model!r} are {PLAIN!r}, or those of {listed(known, len(known))}; "
            f"given is {name!r}"
        )
    if own := [each for each in ("encoding", "base") if each in options]:
        raise PositionError(f"give {own[0]!r} to the position model {model!r} itself, not to its frequencies")
    turning: Any = build({"name": name, "base": base, **options}, dims)
    return turning


def _shared_out(model: str, axes: int, pairs: int, sections: tuple[int, ...], order: str) -> tuple[int, ...]:
    """The axis of each pair.

    Raises:
        PositionError: sections are not one number for each axis whose sum is that of the pairs, or do not interleave.
    """
    sections = sections or tuple(pairs // axes + (axis < pairs % axes) for axis in range(axes))
    if len(sections) != axes or sum(sections) != pairs or min(sections) < 0:
        raise PositionError(
            f"position model {model!r} has {pairs} pairs of channels in a head and {axes} axes; sections are "
            f"{list(sections)}, give {axes} whole numbers whose sum is {pairs}"
        )
    if order == "sections":
        return tuple(axis for axis, count in enumerate(sections) for _ in range(count))
    found = tuple(pair % axes if pair < axes * sections[pair % axes] else 0 for pair in range(pairs))
    if tuple(found.count(axis) for axis in range(axes)) != sections:
        raise PositionError(
            f"position model {model!r} cannot interleave sections of {list(sections)} pairs; those of the first axis "
            f"are the most"
        )
    return found


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


class PRoPE(RotaryModel, name="p-rope"):
    """p-RoPE: rotary positions without their slowest pairs, which keep content alone (Barbero et al. 2025).

    ``rotary-half`` where only the pairs i < p d_h/2, the fastest, turn, by t base^(-2i/d_h); the others do not.

    The slowest pairs of trained models carry meaning rather than place, and turn it away in long texts. (Barbero et al.
    2025; their code. "proportional" in Hugging Face, as in Gemma 4, with the "partial_rotary_factor" p and the "factor"
    ``scale``.) Exponents belong to the whole head: in ``rotary-half`` with a ``fraction`` they belong to the part that
    is turned, the first channels, which then are pairs among themselves.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        base: the slowest pair would turn about this many times slower than the fastest.
        share: p, from 0, which turns nothing, to 1, which is ``rotary-half``; p d_h/2 is rounded down.
        scale: all pairs turn this many times slower, 1 or more.

    Raises:
        PositionError: the width of a head is odd, p is not from 0 to 1, a scale is below 1, or the encoding gives a
            vector per unit.
    """

    spec = Spec("barbero2025", "sequence", CELLS)

    scales = True

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        base: float = 10000.0,
        share: float = 0.75,
        scale: float = 1.0,
    ) -> None:
        check_longer(self.name, scale=scale)
        if not 0 <= share <= 1:
            raise PositionError(f"position model {self.name!r} turns a share of pairs from 0 to 1; given is {share}")
        super().__init__(dims, encoding, base)
        self.turned, self.scale = int(share * dims.head // 2), scale

    def inverse_frequencies(self) -> Tensor:
        every = super().inverse_frequencies() / self.scale
        return every.where(torch.arange(len(every)) < self.turned, 0.0)


class PositionInterpolation(RotaryModel, name="position-interpolation"):
    """Rotary positions, interpolated into the length of training (Chen et al. 2023).

    (q_t, k_s) -> (R_(t/a) q_t, R_(s/a) k_s): R_t turns the channels (i, i + d_h/2) of a head by t base^(-2i/d_h).

    A model trained on texts of some length then sees, in texts a times as long, only angles from training. (Chen et al.
    2023, eq. 3; Llama's layout of channels, as in the code of YaRN.) With a = 1 this is ``rotary-half``.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        base: the slowest pair turns about this many times slower than the fastest.
        scale: a, 1 or more.

    Raises:
        PositionError: the width of a head is odd, a scale is below 1, or the encoding gives a vector per unit.
    """

    spec = Spec("chen2023", "sequence", CELLS)

    scales = True

    def __init__(self, dims: Dims, encoding: Encoding = Order(), base: float = 10000.0, scale: float = 4.0) -> None:
        check_longer(self.name, scale=scale)
        super().__init__(dims, encoding, base)
        self.scale = scale

    def inverse_frequencies(self) -> Tensor:
        return super().inverse_frequencies() / self.scale


class NTKAware(RotaryModel, name="ntk-aware"):
    """Rotary positions with a larger base, so that slow pairs become slower and fast ones do not (NTK-aware scaling).

    ``rotary-half`` with the base b a^(d_h/(d_h-2)): the slowest pair turns a times slower, the fastest as before.

    Pairs in between are slowed down by the power 2i/(d_h-2) of a. (bloc97 2023; Peng et al. 2024, section 3.1,
    definition 1, where d_h is |D|. As in the code of YaRN.)

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        base: b.
        scale: a, 1 or more.

    Raises:
        PositionError: the width of a head is odd, a scale is below 1, or the encoding gives a vector per unit.
    """

    spec = Spec("peng2024", "sequence", CELLS)

    scales = True

    def __init__(self, dims: Dims, encoding: Encoding = Order(), base: float = 10000.0, scale: float = 4.0) -> None:
        check_longer(self.name, scale=scale)
        super().__init__(dims, encoding, float(newer_base(dims.head, base, scale)))


_NTK = (1.25, 0.75)
_AS_THEY_ARE = (16, 2)
"""Turns within a text of training, from which on and up to which a pair goes from one way to the next: the authors'."""


class NTKByParts(RotaryModel, name="ntk-by-parts"):
    """Rotary positions whose fast, middle and slow pairs are scaled in three ways (NTK by parts).

    ``rotary-half`` with the inverse frequencies w_i = f_i (1 - u_i) + u_i [ (1 - v_i) f_i / a + v_i g_i ].

    f_i = b^(-2i/d_h) are the inverse frequencies of training, f_i / a those of ``position-interpolation``, g_i those of
    ``ntk-aware``. u is 0 for pairs that turn more than 16 times within a text of training and 1 below 2 times; v is 1
    above 1.25 times and 0 below 0.75; both fall in straight lines over pairs (:func:`ramp` is 1 - u, and v). So fast
    pairs are unchanged, slow ones are interpolated, and some in between are as with another base.

    This is the code of YaRN. Its paper (Peng et al. 2024, section 3.2, definition 2) goes from f_i / a to f_i only,
    between 1 and 32 turns: that is ``yarn`` without its factor of queries and keys.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        base: b.
        scale: a, 1 or more.
        original_length: number of units of the longest text in training.

    Raises:
        PositionError: the width of a head is odd, a scale or length below 1, or the encoding gives a vector per unit.
    """

    spec = Spec("peng2024", "sequence", CELLS)

    scales = True

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        base: float = 10000.0,
        scale: float = 4.0,
        original_length: int = 2048,
    ) -> None:
        check_longer(self.name, scale=scale, original_length=original_length)
        super().__init__(dims, encoding, base)
        self.scale, self.original_length = scale, original_length

    def inverse_frequencies(self) -> Tensor:
        width, trained = self.dims.head, super().inverse_frequencies()
        other = inverse_frequencies(width, base=newer_base(width, self.base, self.scale))
        ntk = ramp(width, self.base, self.original_length, *_NTK)
        stays = ramp(width, self.base, self.original_length, *_AS_THEY_ARE)
        scaled = trained / self.scale * (1 - ntk) + other * ntk
        return scaled * (1 - stays) + trained * stays


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
        original_length: L'.

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

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        length: L, one number per unit.
        base: the slowest pair turns about this many times slower than the fastest.
        original_length: L'.

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
        return trained * self.original_length / lengths.clamp(min=self.original_length)


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
    ``original_length``, ``fast``, ``slow``, ``truncate`` and ``attention_factor`` here.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        base: b.
        scale: a, 1 or more; with 1 this is ``rotary-half``.
        original_length: number of units of the longest text in training.
        fast: turns within such a text from which on a pair stays as it is.
        slow: turns below which a pair is interpolated.
        truncate: whether the ends of the line are rounded.
        attention_factor: c, above 0; None for 0.1 ln a + 1.

    Raises:
        PositionError: the width of a head is odd, a scale or length below 1, a c of 0 or less, or a vector per unit.
    """

    spec = Spec("peng2024", "sequence", CELLS)

    scales = True

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
        check_longer(self.name, scale=scale, original_length=original_length)
        check_above_zero(self.name, fast=fast, slow=slow)
        super().__init__(dims, encoding, base)
        self.scale, self.original_length, self.fast, self.slow, self.truncate = (
            scale,
            original_length,
            fast,
            slow,
            truncate,
        )
        self.attention_factor = length_of(self.name, attention_factor, 0.1 * math.log(scale) + 1)

    def inverse_frequencies(self) -> Tensor:
        trained = super().inverse_frequencies()
        stays = ramp(self.dims.head, self.base, self.original_length, self.fast, self.slow, self.truncate)
        return trained / self.scale * (1 - stays) + trained * stays


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
    "high_freq_factor" and "low_freq_factor" are ``scale``, ``original_length``, ``fast`` and ``slow`` here.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        base: b; 500,000 in Llama 3.
        scale: a, 1 or more; with 1 this is ``rotary-half``.
        original_length: T, number of units of the longest text in training.
        fast: turns within such a text from which on a pair stays as it is.
        slow: turns below which a pair is a times slower; below ``fast``.

    Raises:
        PositionError: the width of a head is odd, a scale or length below 1, ``slow`` is not between 0 and ``fast``, or
            the encoding gives a vector per unit.
    """

    spec = Spec("grattafiori2024", "sequence", CELLS)

    scales = True

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
        check_longer(self.name, scale=scale, original_length=original_length)
        check_above_zero(self.name, slow=slow)
        if fast <= slow:
            raise PositionError(f"position model {self.name!r} takes a fast above slow; given are {fast} and {slow}")
        super().__init__(dims, encoding, base)
        self.scale, self.original_length, self.fast, self.slow = scale, original_length, fast, slow

    def inverse_frequencies(self) -> Tensor:
        trained = super().inverse_frequencies()
        turns = self.original_length * trained / (2 * math.pi)
        stays = ((turns - self.slow) / (self.fast - self.slow)).clamp(0, 1)
        return trained / self.scale * (1 - stays) + trained * stays


class LongRoPE(RotaryModel, name="longrope"):
    """LongRoPE: a factor for each pair of rotary channels (Ding et al. 2024).

    ``rotary-half`` with inverse frequencies b^(-2i/d_h) / lambda_i; queries, keys times c = sqrt(1 + ln a / ln L').

    a is the ratio of the length of texts to that in training, L'. The first ``kept`` places are as in training. (Ding
    et al. 2024, section 3; the authors' code, whose c is called "su". For its other values, and Hugging Face's
    "attention_factor", use ``attention_factor``.)

    The factors lambda are found by a search for each trained model; the search itself is not included. Without factors
    they are a^(2i/(d_h-2)), those of ``ntk-aware``, one of the starting points of the authors' search.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        base: b.
        factors: lambda, d_h/2 positive numbers.
        scale: a, 1 or more.
        original_length: L', 2 or more.
        kept: places below this are as in training.
        attention_factor: c, above 0; by default that of the formula.

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

    scales = True

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
        check_longer(self.name, scale=scale)
        super().__init__(dims, encoding, base)
        self.scaled = self.inverse_frequencies() / factors_of(self.name, dims, factors, scale)
        self.lengthened = length_of(self.name, attention_factor, sharper(self.name, scale, original_length))
        self.kept = kept

    def angles(self, places: Tensor, *others: Tensor) -> tuple[Tensor, Tensor | float]:
        places = _each(places)
        kept = places < self.kept
        frequencies = torch.where(
            kept, *(each.to(places.device) for each in (super().inverse_frequencies(), self.scaled))
        )
        angles = places.to(self.precision) * frequencies.to(self.precision)
        return angles, torch.where(kept, angles.new_ones((), dtype=torch.float64), self.lengthened)[:, None]


class LongRoPEDynamic(DynamicRotaryModel, name="longrope-dynamic"):
    """LongRoPE with factors that grow with the length of the text (Ding et al. 2024, their code).

    ``longrope`` with the factors 1 + (lambda_i - 1) (L/L' - 1) / (a - 1), L being the number of units of the text.

    At L = L' pairs turn as in training, at L = a L' as in ``longrope``. As in the authors' code the line goes on below
    L' and beyond a L': in a text shorter than L' pairs turn faster than in training. L is of each text; decoders cannot
    use it, because a text that grows changes the angles of its first units.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        length: L, one number per unit.
        base: b.
        factors: lambda, d_h/2 positive numbers; the default is that of ``longrope``.
        scale: a, above 1.
        original_length: L', 2 or more.
        attention_factor: the factor of queries and keys; None as in ``longrope``.

    Raises:
        PositionError: the width of a head is odd, a scale of 1 or less, a length below 2, another number of factors, a
            vector per unit, an ``attention_factor`` of 0 or less, or a text so short that the line leads to factors of
            0 or less.
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
