"""Attention that decays with distance: ALiBi, KERPLE, DA-Transformer and others.

The distance of two units is |r_ij|, r_ij = s - t, key minus query, or any other encoding of pairs. Two units of one
node, k places apart, have distance k. A pair without a path has ``max_distance`` of the encoding as distance; without
one it is an error.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding
from structpe.encodings.distance import UndirectedDistance
from structpe.encodings.order import Offset, Order
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, Positions, Site, Spec
from structpe.positions.batch import of_arity
from structpe.positions.block import CachedBlock, ranks, softmax
from structpe.positions.by_rows import Ranges, by_rows, cut
from structpe.positions.networks import perceptron
from structpe.positions.places import UnitModel
from structpe.positions.tables import UNBOUND, PairModel, Sharing, Table, distances, is_plain
from structpe.precision import wide, widened
from structpe.terms import Lookup, Terms

__all__ = [
    "FIRE",
    "GRAPEA",
    "ALiBi",
    "ALiBiCausal",
    "Bounded",
    "BoundedDecay",
    "DATransformer",
    "DistanceModel",
    "FixedDecay",
    "Gradformer",
    "KERPLELog",
    "KERPLEPower",
    "Sandwich",
    "rescaled",
    "slopes",
]

FIXED = Cells("R", "MAM", learnable=False, recurring=True, unbound=True, params="0")


def slopes(heads: int) -> Tensor:
    """(h,) float64: 2^(-8/H), 2^(-16/H), ...; between powers of 2 the lower one's, then every other of the double's."""
    power = 1 << (heads.bit_length() - 1)
    first = 2.0 ** (-8 / power * torch.arange(1, power + 1, dtype=torch.float64))
    rest = 2.0 ** (-4 / power * torch.arange(1, 2 * power + 1, 2, dtype=torch.float64))
    return torch.cat([first, rest[: heads - power]])


class DistanceModel(PairModel):
    """A model of the distance |r_ij| of two units.

    Args:
        encoding: r_ij, signed integers per pair: s - t, key minus query, or any other. Units of one node, k places
            apart, have distance k, pairs without a path the limit of the encoding.

    Raises:
        PositionError: a batch has a pair without a path, and the encoding has no ``max_distance``.
    """

    def prepare(self, positions: Positions) -> Lookup:
        """The distance of each distinct value."""
        return self.of_pairs(positions).map(lambda values: distances(self.name, self.encodings[0], values))


class FixedDecay(DistanceModel):
    """A bias of each head that depends on the distance of two units and is not learned."""

    like: Tensor

    def __init__(self, dims: Dims, encoding: Encoding = Offset()) -> None:
        super().__init__(dims, encoding)
        # Follows the model to float64, and the bias takes its dtype; stored distances or slopes would be rounded.
        self.register_buffer("like", torch.empty(0), persistent=False)

    @abstractmethod
    def fall(self, far: Tensor) -> Tensor:
        """(R, h) float64 the bias at the distances (R, 1)."""

    def prepare(self, positions: Positions) -> Lookup:
        """The bias of each distinct value and head, the same for all layers."""
        dtype = wide(self.like).dtype

        def bias(values: Tensor) -> Tensor:
            return self.fall(distances(self.name, self.encodings[0], values)[:, None]).to(dtype)

        return self.of_pairs(positions).map(bias).share()

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(bias=(prepared,))


class ALiBi(FixedDecay, name="alibi"):
    """Attention with linear biases (Press, Smith and Lewis 2022).

    s_ij -= m_h |r_ij|: each head has its own slope m_h, fixed and not learned.

    m_h = 2^(-8h/H) for heads h = 1..H where H is a power of 2, see :func:`slopes` for other H. (Press et al. 2022,
    section 3.) This is the symmetric form, for encoders; the authors' code adds m_h s, without the place of the query
    and for causal attention only: ``alibi-causal``. Where keys ahead are masked, both are the same after the softmax.
    """

    spec = Spec("press2022", "sequence", FIXED)

    def fall(self, far: Tensor) -> Tensor:
        return -slopes(self.dims.heads).to(far.device) * far


class ALiBiCausal(UnitModel, name="alibi-causal"):
    """Attention with linear biases as in its authors' code: on keys only, and causal (Press, Smith and Lewis 2022).

    s_ij += m_h s for keys s <= t, and keys s > t do not attend: each head prefers late keys at its own slope.

    m_h as of ``alibi``. The bias does not depend on the query: m_h s and -m_h (t - s) differ by m_h t, which the
    softmax cancels. It is one row per head, not a matrix. (Press et al. 2022, section 3; their code for fairseq, mask
    included.)
    """

    spec = Spec("press2022", "sequence", FIXED)
    of_keys: ClassVar[bool] = True
    """Whether the bias of a pair lacks a number of its query, which a softmax would cancel."""
    like: Tensor

    def __init__(self, dims: Dims, encoding: Encoding = Order()) -> None:
        super().__init__(dims, encoding)
        # As in FixedDecay.
        self.register_buffer("like", torch.empty(0), persistent=False)

    def prepare(self, positions: Positions) -> Terms:
        """The terms of every layer."""
        queries, keys = self.places(positions)
        bias = slopes(self.dims.heads).to(keys.device)[:, None] * keys[:, None]
        behind = keys[:, None] <= queries[..., None]
        return Terms(bias=(bias[:, :, None].to(wide(self.like).dtype),), mask=(behind[:, None],))

    def terms(self, prepared: Terms, site: Site) -> Terms:
        return prepared


class Sandwich(FixedDecay, name="sandwich"):
    """Sandwich: a fixed bias from products of sinusoids, which falls about as a logarithm (Chi et al. 2023).

    s_ij += H / (8 h) (sum_i cos(r_ij 10000^(-2i/w)) - w/2),  i = 1..w/2, for the heads h = 1..H.

    The sum is the product of the sinusoids of two places; the bias is 0 at distance 0. (Chi et al. 2023, section 5.) As
    in ``alibi`` keys ahead are treated as those behind. As in the paper w is 128 whatever the width of the model.
    Written out in NVIDIA's NeMo, with i from 1 as in the paper's sum; compared with that formula in float64, as the
    authors published no code.

    Args:
        width: w, even.
    """

    spec = Spec("chi2023", "sequence", FIXED)

    def __init__(self, dims: Dims, encoding: Encoding = Offset(), width: int = 128) -> None:
        super().__init__(dims, encoding)
        self.width = width

    def fall(self, far: Tensor) -> Tensor:
        powers = torch.arange(1, self.width // 2 + 1, dtype=torch.float64, device=far.device) * (-2 / self.width)
        product = (far * 10000.0**powers).cos().sum(dim=-1, keepdim=True) - self.width // 2
        heads = torch.arange(1, self.dims.heads + 1, dtype=torch.float64, device=far.device)
        return product * (self.dims.heads / (8 * heads))


class Bounded(Table):
    """One number per layer and head, from U(0, most), never below 0.01 or above ``greatest``.

    Args:
        sharing: which layers and heads have the same number.
        most: of the numbers that it starts from.
        greatest: upper bound; None for no bound.
    """

    least = 0.01

    def __init__(self, dims: Dims, sharing: Sharing, most: float, greatest: float | None = None) -> None:
        super().__init__(dims, 1, sharing)
        self.greatest = greatest
        nn.init.uniform_(self.weight, 0, most)

    def within(self, layer: int) -> Tensor:
        """(h or 1,) the numbers of a layer, clamped to the bounds; gradients ignore the clamping."""
        row: Tensor = self.at(layer)[0]
        return row + (row.clamp(self.least, self.greatest) - row).detach()


class BoundedDecay(DistanceModel):
    """A bias that falls with distance, whose learned numbers are :class:`Bounded`.

    Args:
        sharing: ``layer-wise`` as in the code: each head has its numbers, for all layers.
    """

    def __init__(self, dims: Dims, encoding: Encoding = Offset(), sharing: Sharing = "layer-wise") -> None:
        super().__init__(dims, encoding)
        self.sizes = {"copies": Table.copies(sharing, dims)}

    def prepare(self, positions: Positions) -> Lookup:
        """The distance of each distinct value; each training step first clamps the numbers to their bounds."""
        if self.training:
            with torch.no_grad():
                for number in self.children():
                    if isinstance(number, Bounded):
                        number.weight.clamp_(number.least, number.greatest)
        return super().prepare(positions)


class KERPLELog(BoundedDecay, name="kerple-log"):
    """KERPLE's logarithmic kernel: a bias that falls with the logarithm of distance (Chi et al. 2022).

    s_ij -= p_h log(1 + a_h |r_ij|), p and a learned, 0.01 or more.

    (Chi et al. 2022, section 4.1, r_1 = p, r_2 = a.) As in the authors' code, p starts from U(0, 2), a from U(0, 1),
    both are shared by all layers, and each training step first clamps them to 0.01 from below.
    """

    spec = Spec("chi2022", "sequence", UNBOUND("2*copies"))

    def __init__(self, dims: Dims, encoding: Encoding = Offset(), sharing: Sharing = "layer-wise") -> None:
        super().__init__(dims, encoding, sharing)
        self.height = Bounded(dims, sharing, most=2)
        self.speed = Bounded(dims, sharing, most=1)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        p, a = self.height.within(site.layer), self.speed.within(site.layer)
        return Terms(bias=(prepared.map(lambda far: -p * (1 + a * far[:, None].to(a.dtype)).log()),))


class KERPLEPower(BoundedDecay, name="kerple-power"):
    """KERPLE's power kernel: a bias that falls with a power of distance (Chi et al. 2022).

    s_ij -= a_h |r_ij|^p_h, a and p learned, a 0.01 or more, p from 0.01 to 2; ``alibi`` is p = 1 and a fixed.

    (Chi et al. 2022, section 4.1, r_1 = a, r_2 = p.) As in the authors' code, a starts from U(0, 1), p from U(0, 2),
    both are shared by all layers, and each training step first clamps them to their bounds. That code can also multiply
    scores by exp(-a |r|^p), which the paper names as a variant; that is not included.
    """

    spec = Spec("chi2022", "sequence", UNBOUND("2*copies"))

    def __init__(self, dims: Dims, encoding: Encoding = Offset(), sharing: Sharing = "layer-wise") -> None:
        super().__init__(dims, encoding, sharing)
        self.slope = Bounded(dims, sharing, most=1)
        self.power = Bounded(dims, sharing, most=2, greatest=2)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        a, p = self.slope.within(site.layer), self.power.within(site.layer)
        return Terms(bias=(prepared.map(lambda far: -a * far[:, None].to(a.dtype) ** p),))


class DATransformer(DistanceModel, name="da-transformer"):
    """Functions of distance that multiply the rectified score (Wu, Wu and Huang 2021, DA-Transformer).

    s_ij = ReLU(q_i.k_j) f(|s - t|) / sqrt(d_h),  f(r) = (1 + e^v) / (1 + e^(v - w r)).

    w and v are two learned scalars of each head. f(0) = 1; f falls to 0 for w < 0 and rises to 1 + e^v for w > 0: a
    head may prefer near or distant keys. Direction is not distinguished. (Wu et al. 2021; survey, eqs. 16 and 17, which
    have no sqrt(d_h). No code by the authors is known.)

    Table 1 counts 2h parameters, one pair per head for all layers. w and v start from N(0, 0.02), near f = 1, where
    attention ignores positions: our choice.

    Args:
        sharing: ``layer-wise`` as Table 1 counts; ``none`` is a pair for each head of each layer.
    """

    spec = Spec("wu2021", "sequence", UNBOUND("2*copies"), table1=UNBOUND("2*h"))

    def __init__(self, dims: Dims, encoding: Encoding = Offset(), sharing: Sharing = "layer-wise") -> None:
        super().__init__(dims, encoding)
        self.sizes = {"copies": Table.copies(sharing, dims)}
        self.table = Table(dims, 2, sharing)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        w, v = self.table.at(site.layer)
        return Terms(act=torch.relu, gate=(prepared.map(lambda far: rescaled(far[:, None].to(w.dtype), w, v)),))


def rescaled(far: Tensor, w: Tensor, v: Tensor) -> Tensor:
    """f: (1 + e^v) / (1 + e^(v - w r)), without the overflow of its exponential."""
    return (1 + v.exp()) * torch.sigmoid(w * far - v)


EPSILON = 1e-6


class FIRE(UnitModel, name="fire"):
    """FIRE: a bias interpolated by a network from relative distances (Li S. et al. 2024).

    s_ij += (W_2 relu(W_1 x_ij + c_1) + c_2) of the head,  x_ij = log(|c| |i - j| + 1) / log(|c| max(i, L) + 1).

    Functional interpolation: x stays within 0 and 1 however long a text is, and a learned threshold L turns this off
    for short texts. (Li S. et al. 2024, section 3, for decoders, where j <= i.) W_1 (w, 1), W_2 (h, w), c and L are
    learned, and each layer has its own, or all have the same (their FIRE-S).

    As in the code in the appendix: L = |a L_0| with a learned, 1 at first, and the divisor is increased by 1e-6. For an
    encoder, keys after the query have the distances of those before it, but no paper has tried that.

    A bias of this kind depends on the pair and on the place of the query, so there is no table of few distinct values:
    it takes b h n m numbers, as the authors' does.

    Args:
        hidden: w.
        threshold: L_0.
        shared: whether all layers have the same network.
    """

    spec = Spec(
        "li2024",
        "sequence",
        UNBOUND("copies*(2*w + w*h + h + 2)"),
        note="relative as long as a text has at most L units; beyond, the place of the query counts too",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Order(), hidden: int = 32, threshold: float = 512.0, shared: bool = False
    ) -> None:
        super().__init__(dims, encoding)
        copies = 1 if shared else dims.layers
        self.sizes, self.threshold = {"copies": copies, "w": hidden}, threshold
        self.networks = nn.ModuleList(perceptron([1, hidden, dims.heads]) for _ in range(copies))
        self.slope = nn.Parameter(torch.full((copies,), 0.1))
        self.stretch = nn.Parameter(torch.ones(copies))

    def prepare(self, positions: Positions) -> tuple[Tensor, Tensor]:
        """The places of the queries (b, n, 1), and of the keys (b, 1, m)."""
        queries, keys = self.places(positions)
        return queries[..., None], keys[:, None]

    def terms(self, prepared: tuple[Tensor, Tensor], site: Site) -> Terms:
        number = 0 if len(self.networks) == 1 else site.layer
        slope, stretch = wide(self.slope)[number].abs(), wide(self.stretch)[number]
        queries, keys = (each.to(slope.dtype) for each in prepared)
        network = widened(self.networks[number])
        b, n, m = len(queries), queries.shape[1], keys.shape[2]
        # Twice as many numbers as there are: a block is soon computed again, and memory from the system is not faster.
        blocks = cut(n, 2 * b * m * (2 * self.sizes["w"] + self.dims.heads + 4), keys.device)
        whole = keys, slope, stretch * self.threshold, *network.parameters()
        (bias,) = by_rows(_interpolated, blocks, [queries], whole)
        return Terms(bias=(bias,))


def _interpolated(block: Ranges, queries: Tensor, *whole: Tensor) -> tuple[Tensor]:
    """(b, h, n, m) the bias of queries (b, n, 1) and keys (b, 1, m), from c, L and the network's parameters."""
    del block
    keys, slope, least, into, into_bias, out, out_bias = whole
    longest = torch.maximum(queries, least.abs())
    x = (slope * (queries - keys).abs()).log1p() / ((slope * longest).log1p() + EPSILON)
    # Channels first: each product then has the pairs side by side, as attention takes the result.
    hidden = torch.addmm(into_bias[:, None], into, x.view(1, -1)).relu_()
    bias = torch.addmm(out_bias[:, None], out, hidden)
    return (bias.view(-1, *x.shape).transpose(0, 1),)


_FAR = 510.0
"""The distance of two nodes without a path, as in the authors' code."""


class Gradformer(PairModel, name="gradformer"):
    """Scores that fade exponentially with distance, from a learned distance on (Liu et al. 2024, Gradformer).

    s_ij *= gamma^f(d_ij - p_h),  f(z) = z for z > 0 and slope z below,  p_h learned, of each head and all layers.

    With slope 0, as in most of the authors' settings, scores of pairs up to p_h edges apart are left alone, and those
    of farther ones fade. (Liu C. et al. 2024, section 4, the decay mask with its learnable constraint; the authors'
    code.) As in the code, the *score* q_i.k_j / sqrt(d_h) is multiplied, before the softmax: far pairs tend to an
    average weight, not to none; and p_h starts from 5, pairs without a path count as 510 apart.

    Args:
        encoding: one number per pair; d_ij is its magnitude.
        gamma: above 0 and at most 1; 0.5 in the code.
        hops: what p_h starts from.
        slope: of f below 0.

    Raises:
        PositionError: another gamma.
    """

    spec = Spec(
        "liu2024",
        "graph",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="h"),
        note="beyond p_h + 50 edges or so, nothing is left of a score",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = UndirectedDistance(),
        gamma: float = 0.5,
        hops: float = 5.0,
        slope: float = 0.0,
    ) -> None:
        super().__init__(dims, encoding)
        if not 0 < gamma <= 1:
            raise PositionError(f"position model {self.name!r} takes a gamma above 0 and at most 1; given is {gamma}")
        self.logarithm, self.slope = math.log(gamma), slope
        self.hops = nn.Parameter(torch.full((dims.heads,), float(hops)))

    def prepare(self, positions: Positions) -> Terms:
        """The factor of each distinct distance, the same for all layers."""
        return Terms(gate=(self.of_pairs(positions).map(self._factor).share(),))

    def terms(self, prepared: Terms, site: Site) -> Terms:
        return prepared

    def _factor(self, values: Tensor) -> Tensor:
        """(R, h) of distinct values (R,)."""
        near = torch.where(is_plain(values), values, values - WITHIN).abs().to(self.hops.dtype)
        far = torch.where(values == UNREACHABLE, _FAR, near)
        return (self.logarithm * functional.leaky_relu(far[:, None] - self.hops, self.slope)).exp()


class GRAPEA(CachedBlock, name="grape-a"):
    """GRAPE-A: biases that fall with distance, at a slope that query and key choose (Zhang Y. et al. 2026).

    s_ij = q_i.k_j / sqrt(d_h) - (i - j) w_h m_h (softplus(v_h.q_i / sqrt(d_h)) + softplus(u_h.k_j / sqrt(d_h))).

    The additive form of GRAPE, from unipotent matrices. i - j counts units by their order; w_h, u_h and v_h (d_h) are
    learned for each head of each layer, m_h are the slopes of ``alibi``. (Zhang Y. et al. 2026, section 4.1, equation
    4.6, "GRAPE-A-QK"; "query" alone is their GRAPE-A-Q, "key" GRAPE-A-K.) As in their code, which is where m_h comes
    from, u and v are used at length 1, w is a softplus of what is learned and starts from 1, u and v from a normal
    distribution, and projections have no biases. Not included: the norms of queries and keys there. Compared with that
    code in float64. Their GRAPE-AP with gates that do not depend on the query is ``forgetting-attention``.

    The model is causal by itself: keys after the query do not attend. The encoding defines before and after; of units
    with the same number those stored later are later.

    Args:
        encoding: one number per unit, by which units are ordered.
        gates: what chooses the slope.
    """

    spec = Spec(
        "zhang2026",
        "sequence",
        UNBOUND("(4*d*d + h + g*d)*l"),
        note="a block counts its projections; g is the number of gates",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Order(), gates: Literal["query", "key", "both"] = "both"
    ) -> None:
        used = {"query": (True, False), "key": (False, True), "both": (True, True)}[gates]
        super().__init__(dims, [of_arity(self.name, encoding, 1)], g=sum(used))
        # softplus(log(e - 1)) = 1
        self.slope = nn.Parameter(torch.full((dims.layers, dims.heads), math.log(math.expm1(1.0))))
        shape = (dims.layers, dims.heads, dims.head, 1)
        self.of_query, self.of_key = (
            nn.Parameter(torch.randn(shape) / math.sqrt(dims.head)) if each else None for each in used
        )

    def prepare(self, positions: Positions) -> Tensor:
        """(b or 1, m) the rank of each unit."""
        return ranks(self.name, self.encodings[0], positions)

    def mixed(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, prepared: Tensor, site: Site) -> Tensor:
        rank, own = prepared[:, None, None], prepared[:, None, -q.shape[2] :, None]
        score, layer = self.scores(q, k), site.layer
        chosen = score.new_zeros(())
        if self.of_query is not None:
            chosen = chosen + self._gate(q, self.of_query[layer])
        if self.of_key is not None:
            chosen = chosen + self._gate(k, self.of_key[layer]).mT
        slope = functional.softplus(wide(self.slope[layer])) * slopes(self.dims.heads).to(score)
        score = score - (own - rank) * slope[:, None, None] * chosen
        return softmax(score, seen & (rank <= own), site.dropout).to(v.dtype) @ v

    def _gate(self, x: Tensor, direction: Tensor) -> Tensor:
        """(b, h, n, 1) of (b, h, n, d_h)."""
        unit = functional.normalize(wide(direction), dim=1, eps=1e-6)
        return functional.softplus(wide(x) @ unit / math.sqrt(self.dims.head))
