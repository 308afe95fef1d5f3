"""Stochastic position encoding: relative positions for linear attention, by random features; random places."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Sources, Spec, build
from structpe.positions.places import PlaceRows, UnitModel
from structpe.positions.tables import BOUND, UNBOUND, is_plain
from structpe.precision import wide
from structpe.terms import Lookup, SparsePairs, Terms

__all__ = [
    "FilterCodes",
    "FilteredModel",
    "Normals",
    "Randomised",
    "SPEConv",
    "SPEConvGated",
    "SPEGated",
    "SPESine",
    "SineCodes",
    "SineModel",
    "Sines",
    "correlated",
    "orthogonal",
]


Inner: TypeAlias = str | dict[str, Any]
"""Plain data of a position model."""


class Randomised(PositionModel, name="randomised"):
    """Randomised positions: in training, a random subsample of the places of longer texts (Ruoss et al. 2023).

    Another position model that is given random places, r_t instead of t, and distances, r_o instead of o.

    In training r are as many places as the longest text has units, drawn anew for each batch from 0..L-1 without
    repetition, and sorted. For distances r_0 = 0, the others are drawn from 1..L-1; an offset -o becomes -r_o. So every
    place of texts of L units is met in training on short ones. (Ruoss et al. 2023, section 3, and their code, which
    draws distances in this way for relative and ALiBi positions too.)

    In evaluation r_t = t floor(L / N), the same for all texts, as a decoder needs; N is the number of units of the
    longest text that is expected. There the authors draw as in training. A text of a batch that is shorter than the
    longest gets the first of its places; the authors' batches have one length.

    Whole numbers of any encoding are changed that are places or distances: depths of a tree or distances in a graph
    too. Special values, such as of pairs without a path, stay, and so do places beyond the drawn ones.

    Args:
        model: name of the position model, or a mapping with its options. It must take places up to L.
        max_length: L.
        longest: N, L at most.

    Raises:
        PositionError: N is above L; a text of training has more than L units; or the model reads real numbers.
    """

    spec = Spec(
        "ruoss2023",
        "sequence",
        Cells("R", "MAM", learnable=False, recurring=True, unbound=True, params="inner"),
        note="cells and parameters are those of the model that is given these places, rotary by default",
    )

    def __init__(self, dims: Dims, model: Inner = "rotary", max_length: int = 2048, longest: int = 512) -> None:
        if longest > max_length:
            raise PositionError(
                f"position model {self.name!r} spreads {longest} units over {max_length} places; give "
                f"longest={max_length} at most, or a larger max_length"
            )
        inner = build(model, dims)
        if other := [encoding.name for encoding in inner.encodings if encoding.real or encoding.ragged]:
            raise PositionError(
                f"position model {self.name!r} draws places and distances, whole numbers; {inner.name!r} reads "
                f"{other[0]!r}, which returns other values"
            )
        super().__init__(dims, inner.encodings, inner=inner.claimed_params())
        self.inner, self.max_length, self.stride = inner, max_length, max_length // longest

    def prepare(self, positions: Positions) -> Any:
        return self.inner.prepare(positions.replaced({e: self._drawn(positions[e]) for e in self.encodings}))

    def inputs(self, x: Tensor, prepared: Any) -> Tensor:
        return self.inner.inputs(x, prepared)

    def layer(self, x: Tensor, prepared: Any, site: Site) -> Tensor:
        return self.inner.layer(x, prepared, site)

    def sources(self, sources: Sources, prepared: Any, site: Site) -> Sources:
        return self.inner.sources(sources, prepared, site)

    def terms(self, prepared: Any, site: Site) -> Terms:
        return self.inner.terms(prepared, site)

    def attend(self, x: Tensor, prepared: Any, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        return self.inner.attend(x, prepared, site, terms)

    @property
    def sites(self) -> frozenset[str]:
        """Those of the other model."""
        return self.inner.sites

    def replaces(self, layer: int) -> bool:
        """Whether the other model has its own attention there."""
        return self.inner.replaces(layer)

    @property
    def causal(self) -> bool:
        """Whether a decoder may use the other model."""
        return self.inner.causal

    def _drawn(self, given: Any) -> Any:
        """The values of an encoding, each place or offset replaced."""
        if isinstance(given, (Lookup, SparsePairs)):
            return given.map(lambda values: self._changed(values.long(), pairs=True))
        return self._changed(given.long(), pairs=False)

    def _changed(self, values: Tensor, pairs: bool) -> Tensor:
        changed = is_plain(values) & (values.abs() > 0 if pairs else values >= 0)
        size = torch.where(changed, values.abs(), 0)
        if not self.training:
            return torch.where(changed, values * self.stride, values)
        places = self._places(int(size.max()) + 1 if size.numel() else 1, pairs)
        return torch.where(changed, places.to(values.device)[size] * values.sign().where(values != 0, 1), values)

    def _places(self, count: int, pairs: bool) -> Tensor:
        """(count,) r_0, r_1, ..."""
        if count > self.max_length:
            raise PositionError(
                f"position model {self.name!r} draws from {self.max_length} places, and a text of this batch has a "
                f"place or distance {count - 1}; build it with max_length={count} or more"
            )
        drawn = torch.randperm(self.max_length - pairs)[: count - pairs].sort().values
        return torch.cat([drawn.new_zeros(1), drawn + 1]) if pairs else drawn


_LONG = 64


def orthogonal(heads: int, rows: int, columns: int) -> Tensor:
    """(heads, rows, columns) float64, each row of length sqrt(columns), as normal ones are on average.

    Rows of a head are orthogonal if there are at most as many as columns; otherwise, those of each block of that size.
    """
    draw = torch.Generator().manual_seed(0)
    blocks = [
        torch.linalg.qr(torch.randn(heads, columns, min(columns, rows - first), generator=draw, dtype=torch.float64)).Q
        for first in range(0, rows, columns)
    ]
    return torch.cat(blocks, dim=2).transpose(1, 2).contiguous() * math.sqrt(columns)


class Normals:
    """An endless sequence of normal numbers, whose first n do not depend on n.

    Args:
        shape: of the numbers at each place.
    """

    def __init__(self, *shape: int) -> None:
        self.shape = shape
        self.known = torch.zeros(0, *shape)

    def first(self, count: int) -> Tensor:
        """``(count, *shape)`` float32; drawn block by block: a longer draw need not begin like a shorter one."""
        known = self.known  # one that another thread cannot lengthen meanwhile
        while len(known) < count:
            draw = torch.Generator().manual_seed(len(known))
            known = torch.cat([known, torch.randn(_LONG, *self.shape, generator=draw)])
        self.known = known
        return known[:count]


@dataclass(frozen=True, eq=False)
class Units:
    """The units of a batch, place by place.

    Attributes:
        order: (x,) the units, those at place 0 first. If that takes no more than twice the room, each place has as many
            as the one with most, some in vain.
        back: (b n,) where each unit is in that order.
        counts: number of units at each place.
    """

    order: Int[Tensor, " units"]
    back: Int[Tensor, " units"]
    counts: list[int]

    @classmethod
    def of(cls, places: Int[Tensor, "b n"], count: int) -> Units:
        """Those at these places, which are below ``count``."""
        flat = places.flatten()
        order, counts = flat.argsort(stable=True), flat.bincount(minlength=count)
        most = int(counts.max())
        if count * most > 2 * len(flat):
            return cls(order, order.argsort(), counts.tolist())
        place = flat[order]
        slots = place * most + torch.arange(len(flat), device=flat.device) - (counts.cumsum(0) - counts)[place]
        padded, back = order.new_zeros(count * most), torch.empty_like(order)
        padded[slots], back[order] = order, slots
        return cls(padded, back, [most] * count)


@dataclass(frozen=True, eq=False)
class FilterCodes:
    """Codes of the P places of a batch; all units at a place are coded by one product.

    Attributes:
        of_queries: (P, h, d_h, R).
        of_keys: (P, h, d_h, R).
        queries: the units that are queries, or which places they have if that is the same for all structures.
        keys: likewise.
    """

    of_queries: Tensor
    of_keys: Tensor
    queries: Units | slice
    keys: Units | slice

    def map(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """From width d_h to width R."""
        return _coded(q, self.of_queries, self.queries), _coded(k, self.of_keys, self.keys)

    def gated(self, gate: Tensor, dry: Tensor) -> FilterCodes:
        """sqrt(1 - g) of these codes and sqrt(g) / (R d_h)^(1/4) of a noise that is the same at all places.

        Args:
            gate: (h, d_h) g, from 0 to 1.
            dry: (h, d_h, R) normal.
        """
        _, width, realisations = dry.shape
        constant = gate.sqrt()[..., None] * dry / (realisations * width) ** 0.25
        wet = (1 - gate).sqrt()[..., None]
        return replace(self, of_queries=self.of_queries * wet + constant, of_keys=self.of_keys * wet + constant)


class CodedModel(UnitModel):
    """Random codes of places, multiplied with queries and keys: vectors of width R, which give the score on average.

    It widens queries and keys: do not add it to another model that maps them. In training the noise is drawn for each
    batch, in evaluation, where the authors' code draws too, it is fixed.
    """

    def terms(self, prepared: Any, site: Site) -> Terms:
        return Terms(maps=(prepared.map,))


class FilteredModel(CodedModel):
    """Codes of places that are filtered noise, multiplied with queries and keys.

    Args:
        encoding: whole numbers 0, 1, ... per unit.
        realisations: R.
        width: K, of a filter.

    Raises:
        PositionError: a batch has other numbers.
    """

    def __init__(self, dims: Dims, encoding: Encoding = Order(), realisations: int = 256, width: int = 200) -> None:
        super().__init__(dims, encoding)
        self.sizes = {"K": width}
        # From U(0, sqrt(2 / K)), as in the authors' code.
        self.of_keys = nn.Parameter(torch.rand(dims.width, width) * math.sqrt(2 / width))
        self.of_queries = nn.Parameter(torch.rand(dims.width, width) * math.sqrt(2 / width))
        self.realisations, self.fixed = realisations, Normals(realisations, dims.width)

    def prepare(self, positions: Positions) -> FilterCodes:
        """The codes of the batch, for all layers."""
        _, places = self.places(positions)
        if places.is_floating_point() or int(places.min()) < 0:
            raise PositionError(
                f"position model {self.name!r} needs whole numbers from 0 on (order, depth, ...); "
                f"{self.encodings[0].name!r} returns other numbers"
            )
        return self.filtered(positions, self._draw(int(places.max()) + self.of_keys.shape[1]))

    def filtered(self, positions: Positions, noise: Tensor) -> FilterCodes:
        """The same with a given noise (R, d, P + K - 1) for P places.

        Filters are cross-correlated with it, and the result is divided by (R d_h)^(1/4).
        """
        dims, scale = self.dims, (noise.shape[0] * self.dims.head) ** 0.25
        count = noise.shape[2] - self.of_keys.shape[1] + 1
        places = PlaceRows.of(self.name, self.encodings[0], positions, count)
        codes = [correlated(noise, filters / scale) for filters in (self.of_queries, self.of_keys)]
        each = [made.transpose(0, 1).view(count, dims.heads, dims.head, -1) for made in codes]
        who = [p if isinstance(p, slice) else Units.of(p, count) for p in (places.queries, places.keys)]
        return FilterCodes(each[0], each[1], who[0], who[1])

    def _draw(self, count: int) -> Tensor:
        like = self.of_keys
        if self.training:
            return torch.randn(self.realisations, self.dims.width, count, dtype=like.dtype, device=like.device)
        return self.fixed.first(count).to(like).permute(1, 2, 0)


def _coded(x: Tensor, codes: Tensor, units: Units | slice) -> Tensor:
    """(b, h, n, R) from (b, h, n, d_h)."""
    codes = codes.to(x.dtype)
    if isinstance(units, slice):
        # One batch of vectors times a matrix per head and place: (h, n, b, d_h) @ (h, n, d_h, R).
        made = x.permute(1, 2, 0, 3) @ codes[units].transpose(0, 1)
        return made.permute(2, 0, 1, 3)
    b, h, n, _ = x.shape
    by_place = x.permute(1, 0, 2, 3).flatten(1, 2).index_select(1, units.order)
    if len(set(units.counts)) == 1:  # one batch of products
        coded = (by_place.reshape(h, len(codes), -1, by_place.shape[2]) @ codes.transpose(0, 1)).flatten(1, 2)
    else:
        each = zip(torch.split(by_place, units.counts, dim=1), codes.unbind(), strict=True)
        coded = torch.cat([mine @ code for mine, code in each if mine.shape[1]], dim=1)
    again: Tensor = coded.index_select(1, units.back).view(h, b, n, -1).transpose(0, 1)
    return again


def correlated(noise: Float[Tensor, "R d L"], filters: Float[Tensor, "d K"]) -> Float[Tensor, "d P R"]:
    """sum_u a_du z_r,d,t+u for the P = L - K + 1 places t.

    A filter is written out as a matrix of K + B - 1 by B, for blocks of B places, 64 at most: products of matrices with
    few more multiplications than a ``conv1d`` that has a group, and so only one channel, per filter.
    """
    width, count = filters.shape[1], noise.shape[2] - filters.shape[1] + 1
    block = min(count, 64)
    # One row after another, read as rows of one number less: each filter begins one further to the right.
    rows = functional.pad(filters, (0, block))[:, None].expand(-1, block, -1).flatten(1)
    shifted = rows[:, : block * (width + block - 1)].view(len(rows), block, -1)
    made = []
    for first in range(0, count, block):
        places = min(block, count - first)
        window = noise[:, :, first : first + places + width - 1].permute(1, 2, 0)
        made.append(shifted[:, :places, : places + width - 1] @ window)
    return torch.cat(made, dim=1)


@dataclass(frozen=True, eq=False)
class SineCodes:
    """q'_r = sum_dk q_d a_dk z_dkr / (R d_h)^(1/4), and k' in the same way: codes without a tensor of (n, d_h, R).

    Attributes:
        queries: (b, h, n, d_h, f) the a of each query.
        keys: (b, h, m, d_h, f) of each key.
        noise: (h, d_h, f, R) z, normal.
    """

    queries: Tensor
    keys: Tensor
    noise: Tensor

    def map(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """From width d_h to width R."""
        noise = self.noise.flatten(1, 2) / (self.noise.shape[1] * self.noise.shape[3]) ** 0.25

        def coded(x: Tensor, waves: Tensor) -> Tensor:
            result: Tensor = (x[..., None] * waves.to(x.dtype)).flatten(-2) @ noise.to(x.dtype)
            return result

        return coded(q, self.queries), coded(k, self.keys)

    def gated(self, gate: Tensor, dry: Tensor) -> SineCodes:
        """sqrt(1 - g) of these waves and sqrt(g) of a noise that is the same at all places: one more wave.

        Args:
            gate: (h, d_h) g, from 0 to 1.
            dry: (h, d_h, R) normal.
        """

        def mixed(waves: Tensor) -> Tensor:
            constant = gate.sqrt()[:, None, :, None].expand(*waves.shape[:-1], 1)
            return torch.cat([waves * (1 - gate).sqrt()[:, None, :, None], constant], dim=-1)

        return SineCodes(mixed(self.queries), mixed(self.keys), torch.cat([self.noise, dry[:, :, None]], dim=2))


class Sines(nn.Module):
    """a_dk of each place t: gain_dk cos(2 pi f_dk t + phase_dk) / sqrt(2K), then the same with sin.

    Keys have no phase. f = sigmoid(frequency) / 2 and gain = softplus, of each head, channel and sine. They start as in
    the authors' code: frequencies from N(-4, 1), for long waves; phases from N(0, 1); gains from N(0, 1), then 2 /
    sqrt(their norm) times that.

    Args:
        dims: sizes of the Transformer.
        sines: K.
    """

    def __init__(self, dims: Dims, sines: int) -> None:
        super().__init__()
        shape = dims.heads, dims.head, sines
        self.frequencies = nn.Parameter(torch.randn(shape) - 4)
        self.phases = nn.Parameter(torch.randn(shape))
        gains = torch.randn(shape)
        self.gains = nn.Parameter(2 * gains / gains.norm(dim=-1, keepdim=True).sqrt())

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """(b, h, n, d_h, 2K) of the places (b, n) of queries, and the same of keys."""
        turns, starts = 2 * math.pi * torch.sigmoid(wide(self.frequencies)) / 2, wide(self.phases)
        gains = functional.softplus(wide(self.gains))[..., None] / math.sqrt(2 * self.gains.shape[-1])

        def waves(places: Tensor, phases: Tensor | float) -> Tensor:
            angles = turns[:, None] * places[:, None, :, None, None].to(turns.dtype) + phases
            return (torch.stack([angles.cos(), angles.sin()], dim=-1) * gains[:, None]).flatten(-2)

        return waves(queries, starts[:, None]), waves(keys, 0.0)


class SineModel(CodedModel):
    """Codes of places that are sums of sines with random weights, multiplied with queries and keys.

    Args:
        realisations: R.
        sines: K.
    """

    others: ClassVar[int] = 0
    """How many noises of each channel there are beside those of its sines."""

    def __init__(self, dims: Dims, encoding: Encoding = Order(), realisations: int = 256, sines: int = 1) -> None:
        super().__init__(dims, encoding)
        self.sizes = {"K": sines}
        self.codes = Sines(dims, sines)
        rows = 2 * sines + self.others
        self.fixed = orthogonal(dims.heads, dims.head * rows, realisations).view(dims.heads, dims.head, rows, -1)

    def prepare(self, positions: Positions) -> SineCodes:
        """The waves of queries and keys, and the noise that all layers share."""
        return self.waves(positions, self.drawn(self.fixed[:, :, : 2 * self.sizes["K"]]))

    def waves(self, positions: Positions, noise: Tensor) -> SineCodes:
        """The waves of queries and keys, with a given noise (h, d_h, 2K, R)."""
        of_queries, of_keys = self.codes(*self.places(positions))
        return SineCodes(of_queries, of_keys, noise)

    def drawn(self, fixed: Tensor) -> Tensor:
        """The fixed noise; in training another draw of its shape."""
        fixed = fixed.to(self.codes.gains)
        return torch.randn_like(fixed) if self.training else fixed


ONE_DRAW = "relative on average over draws; one draw, which is what is measured, has other noise at each place"
DRAWS = "how much noise it draws depends on the batch"
"""Why a compiler does not trace models with filters."""


class SPESine(SineModel, name="spe-sine"):
    """Stochastic position encoding by sines (Liutkus et al. 2021, sineSPE), without a gate.

    (q_t, k_s) -> (sum_d q_td Q_td, sum_d k_sd K_sd) in R^R, with Q_td, K_sd in R^R drawn at random.

    On average q'.k' = sqrt(R / d_h) / (2K) sum_d q_d k_d P_d(t - s),  P_d(r) = sum_k gain_dk^2 cos(2 pi f_dk r +
    phase_dk).

    Q_td = sum_k gain_dk [cos, sin](2 pi f_dk t + phase_dk).z_dk / sqrt(2K) / (R d_h)^(1/4), z (h, d_h, 2K, R) normal;
    K_sd the same z without phases. Frequencies, phases and gains are (h, d_h, K), for all layers; see :class:`Sines`.
    Attention divides by sqrt(R), the width that vectors now have. (Liutkus et al. 2021, section 3.1.) Relative
    positions thus enter without a matrix of pairs, and attention with a feature map, linear in the number of units, can
    have them.

    One z is drawn for a batch in training, for all of its texts and layers, as in the authors' code. In evaluation,
    where that code draws too, z is fixed and its rows are orthogonal: with 2K d_h of them or more, R realisations give
    exactly the average above, the same at every place. With fewer they approximate it.

    It widens queries and keys: do not add it to another model that maps them.
    """

    spec = Spec(
        "liutkus2021",
        "sequence",
        UNBOUND("3*K*d"),
        note="relative on average over draws, and exactly so in evaluation with enough realisations",
    )


class SPEConv(FilteredModel, name="spe-conv"):
    """Stochastic position encoding by filters (Liutkus et al. 2021, convSPE).

    (q_t, k_s) -> (sum_d q_td Q_td, sum_d k_sd K_sd) in R^R, where Q and K are filtered noise.

    On average q'.k' = sqrt(R / d_h) sum_d q_d k_d P_d(t - s), P_d(r) = sum_u a_du b_d,u+r, zero beyond a filter.

    Q_td = sum_u a_du z_d,t+u / (R d_h)^(1/4), K_sd = sum_u b_du z_d,s+u / (R d_h)^(1/4), u = 0..K-1, z normal, of each
    head, channel, realisation and place; the filters a and b are (h d_h, K), for all layers. Attention divides by
    sqrt(R), the width that vectors now have. (Liutkus et al. 2021, section 3.2.)

    In the authors' code the module ``conv_k`` makes the codes of queries, that is a, and ``conv_q`` those of keys. It
    draws noise for L + 4K places and leaves out those outside the range; the filters are the same here. They start from
    U(0, sqrt(2 / K)). One noise is drawn for a batch in training; in evaluation, where the code draws too, it is fixed,
    place by place. Memory grows with n h d_h R.

    For a gate that lets content through, see ``spe-conv-gated``. Images, on which the code filters along each axis, are
    not included. It widens queries and keys: do not add it to another model that maps them.
    """

    spec = Spec(
        "liutkus2021",
        "sequence",
        Cells("B", "MAM", learnable=True, recurring=True, unbound=True, params="2*K*d"),
        note=ONE_DRAW,
        not_compiled=DRAWS,
        not_exported=DRAWS,
    )


class SPEGated(SineModel, name="spe-gated"):
    """Stochastic position encoding by sines, and a gate that lets content through (Liutkus et al. 2021, gated sineSPE).

    ``spe-sine`` with codes sqrt(1 - g_d) Q_td + sqrt(g_d) e_d / (R d_h)^(1/4), likewise for keys, with the same e.

    g = sigmoid(G), G (h, d_h) of each layer; e (h, d_h, R) is normal. On average a channel then contributes q_d k_d [(1
    - g_d) P_d(t - s) / (2K) + g_d] sqrt(R / d_h): with g_d = 1 it does not depend on positions. (Liutkus et al. 2021,
    section 3.3; survey, section 4.1.2; the authors' code for PyTorch. Their code for JAX exchanges g and 1 - g.)

    In training e is drawn for each layer, z for the batch. In evaluation both are fixed, and their rows are orthogonal
    together: with (2K + 1) d_h realisations or more the average is exact.

    Table 1 counts 3Kdh + ld; sines are of the channels of a head, so the code has 3Kd of them for any h. It calls the
    model bound; its sines are defined for all places.
    """

    spec = Spec(
        "liutkus2021",
        "sequence",
        UNBOUND("3*K*d + l*d"),
        table1=BOUND("3*K*d*h + l*d"),
        note="the code's sines are of the channels of a head, and have no last place",
    )

    others = 1

    def __init__(self, dims: Dims, encoding: Encoding = Order(), realisations: int = 256, sines: int = 1) -> None:
        super().__init__(dims, encoding, realisations, sines)
        self.gates = nn.Parameter(torch.randn(dims.layers, dims.heads, dims.head))

    def terms(self, prepared: SineCodes, site: Site) -> Terms:
        return Terms(maps=(self.gated(prepared, site.layer, self.drawn(self.fixed[:, :, -1])).map,))

    def gated(self, waves: SineCodes, layer: int, dry: Tensor) -> SineCodes:
        """The waves as a layer has them, with a given noise (h, d_h, R) that is the same at all places."""
        return waves.gated(torch.sigmoid(self.gates[layer]), dry)


class SPEConvGated(FilteredModel, name="spe-conv-gated"):
    """Stochastic position encoding by filters, and a gate that lets content through (Liutkus et al. 2021).

    ``spe-conv`` with codes sqrt(1 - g_d) Q_td + sqrt(g_d) e_d / (R d_h)^(1/4), likewise for keys, with the same e.

    g = sigmoid(G), G (h, d_h) of each layer, started from N(0, 1); e (h, d_h, R) is normal. On average a channel then
    contributes q_d k_d [(1 - g_d) P_d(t - s) + g_d] sqrt(R / d_h), P as of ``spe-conv``: with g_d = 1 it does not
    depend on positions. (Liutkus et al. 2021, sections 3.2 and 3.3; the authors' code for PyTorch, SPEFilter over
    ConvSPE. Their code for JAX exchanges g and 1 - g.)

    In training e is drawn for each layer, z for the batch. In evaluation both are fixed. Memory grows with n h d_h R.
    It widens queries and keys: do not add it to another model that maps them.
    """

    spec = Spec(
        "liutkus2021",
        "sequence",
        Cells("B", "MAM", learnable=True, recurring=True, unbound=True, params="2*K*d + l*d"),
        note=ONE_DRAW,
        not_compiled=DRAWS,
        not_exported=DRAWS,
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), realisations: int = 256, width: int = 200) -> None:
        super().__init__(dims, encoding, realisations, width)
        self.gates = nn.Parameter(torch.randn(dims.layers, dims.heads, dims.head))
        self.fixed_dry = orthogonal(dims.heads, dims.head, realisations)

    def terms(self, prepared: FilterCodes, site: Site) -> Terms:
        dry = self.fixed_dry.to(self.gates)
        return Terms(maps=(self.gated(prepared, site.layer, torch.randn_like(dry) if self.training else dry).map,))

    def gated(self, codes: FilterCodes, layer: int, dry: Tensor) -> FilterCodes:
        """The codes as a layer has them, with a given noise (h, d_h, R) that is the same at all places."""
        return codes.gated(torch.sigmoid(self.gates[layer]), dry)
