"""Rotary positions: queries and keys are rotated by angles; the choices of how fast, what and by what."""

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
from structpe.positions.batch import numbers, of_arity
from structpe.positions.build import build
from structpe.positions.places import coordinates
from structpe.positions.sinusoids import inverse_frequencies
from structpe.terms import Terms

__all__ = [
    "CELLS",
    "DynamicRotaryModel",
    "Rotary",
    "RotaryHalf",
    "RotaryModel",
    "Tiled",
    "Turns",
    "check_above_zero",
    "check_even",
    "check_longer",
    "length_of",
    "of_pairs",
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


@dataclass(frozen=True, eq=False)
class Tiled:
    """Neighbouring channels that are turned by two angles, V-JEPA 2's.

    Attributes:
        turns: the angles.
        counts: pairs of each axis.
    """

    turns: Turns
    counts: tuple[int, ...]

    def turned(self, q: Tensor, k: Tensor) -> Both:
        """Channel c of the p pairs of an axis has the angle of the pair c mod p."""
        turns = self.turns
        return self._turned(q, turns.queries, turns.query_lengths), self._turned(k, turns.keys, turns.key_lengths)

    def _turned(self, x: Tensor, angles: Tensor, lengths: Tensor | float) -> Tensor:
        cos, sin = (
            torch.cat([part.repeat(1, 1, 1, 2) for part in torch.split(wave, list(self.counts), dim=-1)], dim=-1).to(
                x.dtype
            )
            for wave in (angles.cos() * lengths, angles.sin() * lengths)
        )
        part = x[..., : cos.shape[-1]]
        across = torch.stack([-part[..., 1::2], part[..., ::2]], dim=-1).flatten(-2)
        return torch.cat([part * cos + across * sin, x[..., cos.shape[-1] :]], dim=-1)


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
            self._check(encoding, positions[encoding])
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
        return of_pairs(places).to(self.precision) * frequencies, self.attention_factor

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

    def _check(self, encoding: Encoding, of_units: Tensor) -> None:
        """Raise a :class:`PositionError` if an encoding gives something else than one number per unit."""
        numbers(self.name, encoding, of_units)

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
        return of_pairs(places).to(self.precision) * frequencies, self.attention_factor

    @abstractmethod
    def of_lengths(self, lengths: Tensor) -> Tensor:
        """(..., d_h/2) inverse frequencies for texts of the lengths (..., 1), both float64."""


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


def of_pairs(places: Tensor) -> Tensor:
    """(b, n, 1) or (b, n, p) of (b, n) or (b, n, p)."""
    return places[..., None] if places.ndim == 2 else places


def _turned(a: Tensor, b: Tensor, angles: Tensor, lengths: Tensor | float) -> tuple[Tensor, Tensor]:
    cos, sin = (angles.cos() * lengths).to(a.dtype), (angles.sin() * lengths).to(a.dtype)
    return a * cos - b * sin, a * sin + b * cos


Inner: TypeAlias = str | dict[str, Any]
"""Name of a rotary model that says how fast pairs turn, or a mapping with ``name`` and its options."""
PLAIN = "plain"

GOLDEN = math.pi * (math.sqrt(5) - 1) / 2
"""The golden angle of half a turn: any number of its multiples are spread evenly."""


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
        layout: which channels are a pair. "tiled" is that of V-JEPA 2: neighbours, of which the channel c of those of
            an axis, p pairs, has the angle of the pair c mod p; both channels of a pair then have the same angle only
            where p = 1, and scores depend on both places.
        frequencies: "plain", as above; the name of a model of scaled frequencies, or a mapping with ``name`` and the
            options of that model, such as ``scale``; or one number for each pair that is turned, in radians per unit.
        axes: several encodings in place of one, each one number per unit; or one of coordinates, such as "coordinates".
        sections: pairs of each axis, in total those that are turned; by default equal parts, of which the first are one
            larger where that does not divide.
        order: how pairs are shared out: "sections" of pairs in a row (Qwen2-VL); or "interleaved", pair i with axis i
            mod m while that has pairs left, and with the first axis then (Qwen3-VL); or "alternating", the axes after
            the first in turn, and the first with the slowest pairs (VideoRoPE).
        directions: what a pair turns with, of two axes (y, x): the number on its axis, "axes"; or "golden", sin(a) y +
            cos(a) x, where a grows by the golden angle pi (sqrt(5) - 1) / 2 from pair to pair and from head to head, so
            each sees another diagonal (Golden Gate RoPE of J. Xiong, jerryxio.ng/posts/nd-rope, with ``frequencies``
            from a least to a greatest one). Learned directions are ``mixed-rotary``.
        phases: one angle for each pair, added to those of keys: the offset at which query and key meet best; as the
            learned ones of ``pope``.
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
        layout: Literal["pairs", "halves", "tiled"] = "pairs",
        frequencies: Inner | tuple[float, ...] = PLAIN,
        axes: tuple[Encoding, ...] = (),
        sections: tuple[int, ...] = (),
        order: Literal["sections", "interleaved", "alternating"] = "sections",
        directions: Literal["axes", "golden"] = "axes",
        phases: tuple[float, ...] = (),
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
        # A share such as 2 * 15 / 44 of 44 channels is 15 pairs, which floats round to a little less.
        turned = Dims(2 * int(dims.head * fraction / 2 + 1e-9), 1, 1)
        turning = _turning(self.name, frequencies, turned, base)
        on = axes or (encoding,)
        # Several numbers per unit of one encoding, or one of each of several.
        self.coordinates = getattr(axes[0], "axes", 1) if len(axes) == 1 else 1
        count = len(on) * self.coordinates
        if order != "sections" and count == 1:
            raise PositionError(f"position model {self.name!r} has one axis, so order has no effect; leave it out")
        self._begin(dims, [*on, *turning.encodings[1:]])
        self.turning, self.base, self.interleaved, self.tiled = turning, base, layout == "pairs", layout == "tiled"
        if self.tiled and order != "sections":
            raise PositionError(f"position model {self.name!r} tiles the angles of sections; leave order out")
        self.attention_factor = length_of(self.name, attention_factor, turning.attention_factor)
        self.given = attention_factor is not None
        self.on, self.axes = len(on), _shared_out(self.name, count, turned.width // 2, sections, order)
        turning.precision = torch.float64 if precision == "double" else torch.float32
        self.phases, self.golden = phases, directions == "golden"
        if self.golden and (count != 2 or sections or order != "sections"):
            raise PositionError(f"position model {self.name!r} has golden directions on two axes, without sections")
        if phases and len(phases) != len(self.axes):
            raise PositionError(
                f"position model {self.name!r} takes a phase for each of the {len(self.axes)} pairs of channels that "
                f"it turns; given are {len(phases)}"
            )

    def prepare(self, positions: Positions) -> Turns:
        """The angles, once for all layers."""
        turns = super().prepare(positions)
        given = (turns.queries, turns.keys, turns.query_lengths, turns.key_lengths)
        queries, keys, *lengths = map(self._of_heads, given) if self.golden else given
        if self.phases:
            keys = keys + torch.tensor(self.phases, dtype=keys.dtype, device=keys.device)
        return Turns(queries, keys, *lengths)

    def _of_heads(self, numbers: Tensor | float) -> Any:
        """(b, h, n, p) of (b, 1, n h, p); a number as it is."""
        if not isinstance(numbers, Tensor) or numbers.ndim < 3:
            return numbers
        return torch.unflatten(numbers[:, 0], 1, (-1, self.dims.heads)).transpose(1, 2)

    def angles(self, places: Tensor, *others: Tensor) -> tuple[Tensor, Tensor | float]:
        own, others = others[: self.on - 1], others[self.on - 1 :]
        if self.coordinates > 1:
            # A unit without a place in the grid is not turned; its whole numbers are -1.
            places = places if places.is_floating_point() else places.clamp(min=0)
        elif self.on > 1:
            places = torch.stack([places, *own], dim=-1)
        if self.golden:
            heads, pairs = self.dims.heads, len(self.axes)
            spread = torch.arange(heads * pairs, dtype=torch.float64, device=places.device) * GOLDEN
            towards = torch.stack([spread.sin(), spread.cos()])
            places = torch.unflatten(places.double() @ towards, 2, (heads, pairs)).flatten(1, 2)
            others = tuple(each.repeat_interleave(heads, dim=1) for each in others)
        elif self.coordinates * self.on > 1:
            places = places[..., list(self.axes)]
        angles, lengths = self.turning.angles(places, *others)
        return angles, self.attention_factor if self.given else lengths

    def terms(self, prepared: Any, site: Site) -> Terms:
        if not self.tiled:
            return super().terms(prepared, site)
        return Terms(maps=(Tiled(prepared, tuple(self.axes.count(axis) for axis in sorted(set(self.axes)))).turned,))

    def _check(self, encoding: Encoding, of_units: Tensor) -> None:
        if self.coordinates > 1 and encoding is self.encodings[0]:
            coordinates(self.name, encoding, of_units, self.coordinates)
        else:
            super()._check(encoding, of_units)

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
        if len(frequencies) != dims.head // 2:
            raise PositionError(
                f"position model {model!r} takes a frequency for each of the {dims.head // 2} pairs of channels "
                f"that it turns; given are {len(frequencies)}: {listed(map(str, frequencies))}"
            )
        super().__init__(dims)
        self.frequencies = frequencies

    def inverse_frequencies(self) -> Tensor:
        return torch.tensor(self.frequencies, dtype=torch.float64)


def _turning(model: str, frequencies: Inner | tuple[float, ...], dims: Dims, base: float) -> RotaryModel:
    """The model of how fast the pairs turn, for the channels that are turned.

    Raises:
        PositionError: they are of another model, or not one number for each pair.
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
    turning = build({"name": name, "base": base, **options}, dims)
    assert isinstance(turning, RotaryModel)
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
    if order == "alternating":
        found = tuple(1 + pair % (axes - 1) if pair < pairs - sections[0] else 0 for pair in range(pairs))
        needed = "those after the first axis are equal, or the first of them one larger"
    else:
        found = tuple(pair % axes if pair < axes * sections[pair % axes] else 0 for pair in range(pairs))
        needed = "those of the first axis are the most"
    if tuple(found.count(axis) for axis in range(axes)) != sections:
        verb = "alternate" if order == "alternating" else "interleave"
        raise PositionError(f"position model {model!r} cannot {verb} sections of {list(sections)} pairs; {needed}")
    return found
