"""Rotation by more than one number: coordinates, learned angles, Fourier series, two kinds of places."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import Coordinates
from structpe.encodings.laplacian import Laplacian
from structpe.encodings.order import Order, SegmentNumber, SegmentPlace
from structpe.encodings.trees import Depth
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, Positions, Site, Spec
from structpe.positions.batch import indices, numbers, of_arity, of_whole
from structpe.positions.rotary import CELLS, Rotary, RotaryModel, Turns, check_above_zero, check_even
from structpe.positions.sinusoids import inverse_frequencies
from structpe.precision import wide
from structpe.structure import path
from structpe.terms import Terms

__all__ = [
    "WIRE",
    "BiPE",
    "FoPE",
    "LearnedTurns",
    "MRoPE",
    "MixedRotary",
    "XPos",
]


class MRoPE(Rotary, name="mrope"):
    """Rotary positions of several axes, each turning its own pairs of channels (Wang P. et al. 2024).

    ``rotary-half`` whose pairs i of channels are shared out to several numbers per unit: angle t_a(i) b^(-2i/d_h).

    Multimodal rotary positions: a(i) is the axis of pair i. The first ``sections[0]`` pairs turn with the first
    encoding, the next ``sections[1]`` with the second, and so on; the inverse frequencies go on from section to section
    as in one axis. (Wang P. et al. 2024, section 2.1, where the axes are time, height and width; Hugging Face's
    "mrope_section"; Qwen3-VL's order is ``rotary`` with ``order`` "interleaved".) Any numbers of a unit can be axes:
    here, by default, place in the sentence and depth in the tree.

    If all axes are equal, this is ``rotary-half``: so a text is unchanged, whose units have one place on all axes.
    q.k depends only on the differences on all axes.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encodings: the axes, one number per unit each.
        sections: pairs of each axis, d_h/2 in total; None for equal parts, of which the first are one larger where
            that does not divide.
        base: b.

    Raises:
        PositionError: the width of a head is odd, there is no axis, sections do not fit, or an encoding gives a vector
            per unit.
    """

    spec = Spec("wang2024", "tree", CELLS)

    def __init__(
        self,
        dims: Dims,
        encodings: tuple[Encoding, ...] = (Order(), Depth()),
        sections: tuple[int, ...] | None = None,
        base: float = 10000.0,
    ) -> None:
        if not encodings:
            raise PositionError(f"position model {self.name!r} needs an axis; give an encoding or several")
        super().__init__(dims, base=base, layout="halves", axes=encodings, sections=sections or ())


class Vectors(NamedTuple):
    """The vectors of the queries (b, n, k) and of the keys (b, m, k)."""

    queries: Tensor
    keys: Tensor


class LearnedTurns(RotaryModel):
    """Rotates the pair i of head h in layer l by W_lhi . x_u; x_u (k) are the numbers of a unit, W (l, h, d_h/2, k).

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: x.
        width: k.
        start: what W starts from, (l, h, d_h/2, k).
    """

    def __init__(self, dims: Dims, encoding: Encoding, width: int, start: Tensor) -> None:
        super().__init__(dims, encoding)
        self.width = width
        self.frequencies = nn.Parameter(start)

    def prepare(self, positions: Positions) -> Vectors:
        """The vectors of the units.

        Raises:
            PositionError: the encoding gives another number of numbers per unit.
        """
        (encoding,) = self.encodings
        keys, queries = positions[encoding], positions.queries(encoding)
        given = keys.shape[2:]
        if given != (self.width,):
            raise PositionError(
                f"position model {self.name!r} needs {self.width} numbers per unit; {encoding.name!r} gives "
                f"{' x '.join(map(str, given)) or 'one'}"
            )
        return Vectors(queries, keys)

    def terms(self, prepared: Vectors, site: Site) -> Terms:
        turns = Turns(*(self._angles(each, site.layer) for each in prepared))
        return Terms(maps=(turns.neighbours if self.interleaved else turns.halves,))

    def _angles(self, vectors: Tensor, layer: int) -> Tensor:
        own = wide(self.frequencies[layer])
        return torch.einsum("bnk,hpk->bhnp", vectors.to(own.dtype), own)


class MixedRotary(LearnedTurns, name="mixed-rotary"):
    """Rotary positions of images with learned frequencies of both axes (Heo et al. 2024).

    The channels (2i, 2i+1) of each head are turned by v_i . (y, x); v learned, (d_h/2, 2) per layer and head.

    RoPE-Mixed: unlike ``axial-rotary``, a pair of channels sees diagonal directions too. q.k depends only on the
    offsets on both axes. (Heo et al. 2024, section 3.2, "mixed learnable frequency", and their code.) As there, v
    starts with lengths base^(-2i/d_h) for i < d_h/4, twice, in a direction drawn for each layer and head, and in the
    direction at right angles to it.

    As in the code, except that v has an odd pair more if 4 does not divide d_h. Coordinates of a unit without a place
    (a class token) are -1 and are taken as 0, so that it is not turned.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: (y, x) per unit.
        base: of the lengths that v starts from; 10 in the code.

    Raises:
        PositionError: the width of a head is odd, or another number of coordinates.
    """

    spec = Spec("heo2024", "grid", Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="d*l"))

    interleaved = True

    def __init__(self, dims: Dims, encoding: Encoding = Coordinates(), base: float = 10.0) -> None:
        check_even(self.name, dims)
        super().__init__(dims, encoding, 2, _start(dims, base))

    def _angles(self, vectors: Tensor, layer: int) -> Tensor:
        places = vectors if vectors.is_floating_point() else vectors.clamp(min=0)
        return super()._angles(places, layer)


def _start(dims: Dims, base: float) -> Tensor:
    """(l, h, d_h/2, 2) lengths in two directions at right angles."""
    pairs = dims.head // 2
    length = base ** (-4 * torch.arange(-(-pairs // 2)) / dims.head)
    angle = torch.rand(dims.layers, dims.heads, 1) * 2 * math.pi
    x, y = (
        torch.cat([length * wave(angle), length * wave(angle + math.pi / 2)], dim=-1)[..., :pairs]
        for wave in (torch.cos, torch.sin)
    )
    return torch.stack([y, x], dim=-1)


class WIRE(LearnedTurns, name="wire"):
    """Rotary positions of graphs: learned angles from the spectrum of the Laplacian (Reid et al. 2025).

    The channels (2i, 2i+1) of each head are turned by w_i . x_u; x_u are the unit's entries of k eigenvectors.

    w (d_h/2, k) is learned, per layer and head. Scores then depend on differences x_u - x_v only, and attention stays
    compatible with linear kernels. On a grid, some w repeat rotary positions of its axes. (Reid et al. 2025, section
    3; as there, x are the k lowest eigenvectors of the graph's Laplacian, or any other numbers of a node.)

    w starts from N(0, ``std``^2). Eigenvectors have no sign of their own: ``laplacian`` chooses one by a rule, which
    another numbering of symmetric nodes may change.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: x, a vector per unit.
        std: deviation that w starts from.

    Raises:
        PositionError: the width of a head is odd, or the encoding gives no vector per unit.
    """

    spec = Spec(
        "reid2025",
        "graph",
        Cells("A", "MAM", learnable=True, recurring=True, unbound=True, params="d*k*l/2"),
        note="scores depend on differences of entries, but text in front of a text changes the eigenvectors",
    )

    interleaved = True

    def __init__(self, dims: Dims, encoding: Encoding = Laplacian(), std: float = 1.0) -> None:
        check_even(self.name, dims)
        shape = of_arity(self.name, encoding, 1).one(path(["a", "b"])).values.shape
        if len(shape) != 2:
            raise PositionError(
                f"position model {self.name!r} needs a vector per unit (laplacian, random-walk, ...); "
                f"{encoding.name!r} gives one number"
            )
        k = shape[1]
        super().__init__(dims, encoding, k, torch.randn(dims.layers, dims.heads, dims.head // 2, k) * std)
        self.sizes = {"k": k}


@dataclass(frozen=True, eq=False)
class _Fading:
    """Rotated channels whose products decay, in the number of windows that a dtype needs.

    A window has a middle c: queries in it are multiplied by z^((t-c)/B), keys by z^((c-s)/B), and c cancels. The range
    of a dtype covers only some distance from the middle. A pair of channels of a long text is therefore repeated, once
    per window; a query has entries in its own window only, 0 in the others, and a key in all of them.

    Attributes:
        turned: the angles.
        queries: (b, n) places from the first key on, float64.
        keys: (b, m) the same of the keys.
        units: m.
        rates: (d_h/2,) -log(z_i) / B.
    """

    turned: Turns
    queries: Tensor
    keys: Tensor
    units: int
    rates: tuple[float, ...]

    def neighbours(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Channels 2i and 2i + 1 are a pair, and stay next to each other."""
        q, k = self.turned.neighbours(q, k)
        m = self.units
        counts = [_windows(m * rate, q.dtype) for rate in self.rates]
        pairs = [i for i, count in enumerate(counts) for _ in range(count)]
        number = self.keys.new_tensor([number for count in counts for number in range(count)])
        count = self.keys.new_tensor([counts[i] for i in pairs])
        rate = self.keys.new_tensor([self.rates[i] for i in pairs])
        # torchscale's centre where there is one window.
        middle = torch.where(count == 1, -(-m // 2), (number + 0.5) * m / count)
        most = _reach(q.dtype)

        def powers(places: Tensor, sign: int) -> Tensor:
            return (sign * rate * (places[..., None] - middle)).clamp(max=most).exp()

        here = (self.queries[..., None] * count / m).floor().clamp(min=0).minimum(count - 1) == number
        return _widened(q, pairs, powers(self.queries, -1) * here), _widened(k, pairs, powers(self.keys, 1))


def _reach(dtype: torch.dtype) -> float:
    """The largest power of e whose product with usual entries, and its inverse, are finite in the dtype."""
    return math.log(torch.finfo(dtype).max) * 0.9


def _windows(whole: float, dtype: torch.dtype) -> int:
    """How many windows there are for powers of e that differ by ``whole`` between the first and the last unit.

    In more than one, half the reach is for keys ahead of the queries of a window.
    """
    reach = _reach(dtype)
    return 1 if whole <= 2 * reach else math.ceil(whole / reach)


def _widened(x: Tensor, pairs: list[int], factors: Tensor) -> Tensor:
    """(b, h, n, 2p) of (b, h, n, d_h) x: chosen pairs of its channels times (b, n, p) factors."""
    chosen = x.view(*x.shape[:-1], x.shape[-1] // 2, 2)[..., pairs, :]
    widened: Tensor = chosen * factors[:, None, ..., None].to(x.dtype)
    return widened.flatten(-2)


class XPos(RotaryModel, name="xpos"):
    """xPos: rotary positions that also decay with distance (Sun et al. 2023).

    (q_t, k_s) -> (z^((t+c)/B) R_t q_t, z^(-(s+c)/B) R_s k_s): the product of a pair i of channels has z_i^((t-s)/B).

    R is that of ``rotary``: the channels (2i, 2i+1) turn by t base^(-2i/d_h). z_i = (2i + 0.4 d_h) / (1.4 d_h) < 1, so
    that pairs, fast ones most, count less the farther a key is behind, and more the farther it is ahead: made for
    decoders. c = floor(-m/2), m the number of keys, keeps powers small and cancels in every product. (Sun et al. 2023,
    section 3.2; torchscale, whose centring this is.) B = 512, and powers are computed in float64.

    Texts so long that powers from one centre overflow in the dtype, of more than 65,000 units in float32 and 8,000 in
    float16, have several centres, and each pair of channels the number of copies that it needs: queries and keys get
    wider, products are the same. Keys more than 16,000 units ahead (2,000 in float16), which a decoder does not attend
    to, then count less than by the formula, which would overflow soon after.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        encoding: one number per unit.
        base: the slowest pair turns about this many times slower than the fastest.
        fading: B, the number of units after which a pair counts z_i times as much.

    Raises:
        PositionError: the width of a head is odd, or the encoding gives a vector per unit.
    """

    spec = Spec("sun2023", "sequence", CELLS)

    interleaved = True

    def __init__(self, dims: Dims, encoding: Encoding = Order(), base: float = 10000.0, fading: float = 512.0) -> None:
        super().__init__(dims, encoding, base)
        check_above_zero(self.name, fading=fading)
        self.fading = fading

    def prepare(self, positions: Positions) -> _Fading:
        """The angles and places, once for all layers."""
        (encoding,) = self.encodings
        width, keys = self.dims.head, numbers(self.name, encoding, positions[encoding])
        first = keys.amin(dim=1, keepdim=True)
        rates = tuple(-math.log((2 * i + 0.4 * width) / (1.4 * width)) / self.fading for i in range(width // 2))
        places = (positions.queries(encoding) - first).double(), (keys - first).double()
        return _Fading(super().prepare(positions), *places, keys.shape[1], rates)


@dataclass(frozen=True, eq=False)
class Waves:
    """cos(w t) and sin(w t) (b, 1, n, D) of the places of queries and of keys, float64."""

    queries: tuple[Tensor, Tensor]
    keys: tuple[Tensor, Tensor]

    def mixed(self, coefficients: Tensor) -> Mixed:
        """The series with these coefficients (2, h, D, p): of cosines, and of sines."""
        return Mixed(*(tuple(self._series(waves, coefficients)) for waves in (self.queries, self.keys)))

    @staticmethod
    def _series(waves: tuple[Tensor, Tensor], coefficients: Tensor) -> list[Tensor]:
        return [wave.to(of.dtype) @ of for wave, of in zip(waves, coefficients, strict=True)]


@dataclass(frozen=True, eq=False)
class Mixed:
    """Series (b, h, n, p) in the place of cosine and sine, for the first p pairs of queries and keys; 1 for others."""

    queries: tuple[Tensor, ...]
    keys: tuple[Tensor, ...]

    def halves(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Channels i and i + d_h/2 are a pair."""
        return _turned(q, *self.queries), _turned(k, *self.keys)


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    rest = x.shape[-1] // 2 - cos.shape[-1]
    cos, sin = (nn.functional.pad(each, (0, rest), value=1.0).to(x.dtype) for each in (cos, sin))
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class FoPE(RotaryModel, name="fope"):
    """Fourier position embedding: rotary positions whose channels have a series of frequencies (Hua et al. 2024).

    ``rotary-half`` with sums of waves C_i(t), S_i(t) in the place of cosine and sine for the pair i of head h.

    ::

        C_i(t) = sum_c A_hci cos(w_c t),    S_i(t) = sum_c B_hci sin(w_c t),    i < p

    w_c are the D of the inverse frequencies base^(-2c/d_h) that turn at least once within a text of training, w_c >=
    2 pi / T; slower ones would never be seen whole, and are left out. p = min(D, d_h/4) pairs are turned; C = S = 1 for
    the others, whose products then have no position. A and B are fixed, not learned: random, from Xavier's normal
    distribution of gain ``gain``, and 1 is added where c = i D/p, so that each pair has one main frequency. (Hua et al.
    2024, section 4, and the code: "eye_xavier_norm", separate sine, cosine and heads, zero frequencies ignored; each
    layer draws its own.)

    As in the code, where the paper differs: a quarter of the channels' width, not all pairs, and S = 1, not 0, for the
    pairs without a frequency: both double, or keep, a product that has no position. Compared with the code in float64.
    Products of different frequencies do not cancel, so that scores depend on both places.

    Args:
        dims: sizes of the Transformer; the width of a head must be even, and 4 or more.
        encoding: t, one number per unit.
        base: of the inverse frequencies.
        original_length: T, number of units of the longest text in training, 7 or more.
        gain: of the coefficients other than the main ones; 0.3 to 0.6 in the paper's models, larger in larger ones.

    Raises:
        PositionError: the width of a head is odd or below 4, no frequency is left, or the encoding gives a vector per
            unit.
    """

    spec = Spec(
        "hua2024",
        "sequence",
        Cells("B", "MAM", learnable=False, recurring=True, unbound=True, params="0"),
        note="products of different frequencies depend on both places, not only on the offset",
    )

    coefficients: Tensor

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        base: float = 10000.0,
        original_length: int = 512,
        gain: float = 0.3,
    ) -> None:
        super().__init__(dims, encoding, base)
        self.original_length = original_length
        waves = len(self.inverse_frequencies())
        pairs = min(waves, dims.head // 4)
        if not pairs:
            raise PositionError(
                f"position model {self.name!r} has no frequency left that turns once within {original_length} units, "
                f"or no pair of channels in a head of width {dims.head}; give an original_length of 7 or more, and "
                f"heads of width 4 or more"
            )
        drawn = torch.zeros(dims.layers, 2, dims.heads, waves, pairs)
        for each in drawn.flatten(0, 1):
            nn.init.xavier_normal_(each, gain=gain)
        step = math.ceil(waves / pairs)
        for pair in range(min(pairs, math.ceil(waves / step))):
            drawn[..., pair * step, pair] += 1
        self.register_buffer("coefficients", drawn)

    def prepare(self, positions: Positions) -> Waves:
        """The waves, once for all layers."""
        (encoding,) = self.encodings
        keys = numbers(self.name, encoding, positions[encoding])
        frequencies = self.inverse_frequencies().to(keys.device)
        angles = [(each[:, None, :, None] * frequencies) for each in (positions.queries(encoding), keys)]
        return Waves(*((each.cos(), each.sin()) for each in angles))

    def terms(self, prepared: Waves, site: Site) -> Terms:
        return Terms(maps=(prepared.mixed(self.coefficients[site.layer]).halves,))

    def inverse_frequencies(self) -> Tensor:
        """(D,) float64 the w_c."""
        with torch.device("cpu"):  # how many there are must be known for a model on meta too
            every = super().inverse_frequencies()
            return every[every >= 2 * math.pi / self.original_length]


class Both(NamedTuple):
    """Rows of the table (b, n), and the angles."""

    places: Tensor
    turns: Turns


class BiPE(RotaryModel, name="bipe"):
    """Bilevel positions: places within a segment at the input, segments in attention (He Z. et al. 2024).

    x_t + P_min(w, T-1) at the input, w the place in the segment of t; ``rotary-half`` by the number of the segment.

    Absolute positions say where a unit is in its sentence, relative ones which sentence that is, so that a text of more
    sentences has no new place within one. P (T, d) is learned. (He Z. et al. 2024, section 3.2, BiPE-RoPE, and their
    code, where a full stop or line break ends a segment.) As in the code P starts from N(0, 0.02). Compared with the
    segments of that code. Their BiPE-ALiBi is ``learned`` on "segment-place" with a bias on segments 96 times as steep
    as ``alibi``.

    Segments are those of the feature "separator"; a structure without it is one segment.

    Args:
        dims: sizes of the Transformer; the width of a head must be even.
        within: w, a whole number per unit.
        between: the number of the segment, one number per unit.
        max_length: T.
        base: of the inverse frequencies.

    Raises:
        PositionError: the width of a head is odd, or an encoding gives no whole number, or a vector per unit.
    """

    spec = Spec(
        "he2024",
        "sequence",
        Cells("B", "both", learnable=True, recurring=True, unbound=False, params="T*d"),
        note="any number of segments is distinguished, but only T places in each",
    )

    def __init__(
        self,
        dims: Dims,
        within: Encoding = SegmentPlace(),
        between: Encoding = SegmentNumber(),
        max_length: int = 512,
        base: float = 10000.0,
    ) -> None:
        self._begin(dims, [of_whole(self.name, within), between])
        self.base, self.sizes = base, {"T": max_length}
        self.table = nn.Parameter(torch.randn(max_length, dims.width) * 0.02)

    def prepare(self, positions: Positions) -> Both:
        """The places and angles, once for all layers."""
        within, between = self.encodings
        places = indices(self.name, within, positions.queries(within)).clamp(max=len(self.table) - 1)
        frequencies = inverse_frequencies(self.dims.head, places.device, self.base)
        keys, queries = positions[between], positions.queries(between)
        angles = ((each[..., None].double() * frequencies)[:, None] for each in (queries, keys))
        return Both(places, Turns(*angles))

    def inputs(self, x: Tensor, prepared: Both) -> Tensor:
        return x + self.table[prepared.places].to(x.dtype)

    def terms(self, prepared: Both, site: Site) -> Terms:
        return super().terms(prepared.turns, site)
