"""Models with their own attention, which replaces that of the layer.

A model raises a :class:`PositionError` for an encoding that does not give one number per unit, or integer per pair.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.dropout import dropout
from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding
from structpe.encodings.features import Words
from structpe.encodings.order import Offset, Order, Remaining
from structpe.errors import PositionError
from structpe.positions import Block, Cells, Dims, Positions, Site, Spec
from structpe.positions.batch import holds, numbers, of_all_pairs, of_arity, offsets
from structpe.positions.block import CachedBlock, allowed, joined, of_layers, products, ranks, softmax, split
from structpe.positions.tables import Sharing, Table, is_plain
from structpe.precision import wide
from structpe.terms import Lookup, Terms

__all__ = ["CoPE", "Complex", "ForgettingAttention", "HardCodedGaussian", "PathAttention", "StickBreaking"]


Parts = tuple[Tensor, Tensor]
"""Real and imaginary parts, of one shape."""


def turned(amplitude: Parts, angle: Tensor) -> Parts:
    """The product a e^(i angle)."""
    (real, imaginary), cos, sin = amplitude, angle.cos(), angle.sin()
    return real * cos - imaginary * sin, real * sin + imaginary * cos


def attended(q: Parts, k: Parts, v: Parts, mask: Tensor, dropped: float = 0.0) -> Parts:
    """(b, h, n, c/h) twice: the weighted sums of both parts of v."""
    p = weights(q, k, mask, dropped)
    return p @ v[0], p @ v[1]


def weights(q: Parts, k: Parts, mask: Tensor, dropped: float = 0.0) -> Tensor:
    """(b, h, n, m) softmax_j(|sum_c q_ic k_jc| / sqrt(d_h)) over the keys that ``mask`` allows; zeros for none.

    The product is not conjugated. The modulus has no gradient at zero; there it is 0, not NaN.
    """
    real = q[0] @ k[0].mT - q[1] @ k[1].mT
    imaginary = q[0] @ k[1].mT + q[1] @ k[0].mT
    square = real * real + imaginary * imaginary
    modulus = torch.where(square > 0, torch.where(square > 0, square, 1).sqrt(), 0)
    return softmax(modulus / math.sqrt(q[0].shape[-1]), mask, dropped)


class Complex(Block, name="complex"):
    """Complex embeddings: each word is rotated by its place, at its own frequencies (Wang B. et al. 2020).

    z_t = a_t e^(i t omega_w), w the word at place t; in every layer softmax(|Q K^T| / sqrt(c/h)) V, all complex.

    A complex vector of c = d/2 channels is stored as d real ones: its real parts, then its imaginary parts. The unit
    embeddings are read in the same way: a_t is complex, and its modulus and argument are the r and theta of the
    survey's eq. 8. omega (V, c) are learned, a row for each word of the vocabulary and one, the first, for all others;
    each starts as 10000^(-2 floor(j/2)/c) in channel j. Q = W_q z + b_q and likewise K, V and the output, with real W
    (c, c) and b (c) of each layer, used for real and imaginary parts. Q K^T is the plain product, neither part
    conjugated: phases add, and a score is not a function of the offset. (Wang B. et al. 2020, section 3, and their
    code, text classification; survey, eq. 8.)

    As in their code, where the paper differs: the product is not conjugated; places run backwards, the last unit has t
    = 0; for their words theta is 0 (a_t without imaginary part), which here the embeddings may learn. Outside
    attention, layers see d real numbers: norms and feed-forward parts mix real and imaginary channels, where the
    authors apply one of each to both. Their second layer exchanges real and imaginary parts; this does not.

    Args:
        encoding: t, one number per unit.
        words: the word of each unit.

    Raises:
        PositionError: twice the number of heads does not divide the width.
    """

    drops = True
    spec = Spec(
        "wang2020",
        "sequence",
        Cells("A", "-", learnable=True, recurring=False, unbound=True, params="V*c + 4*l*c*(c + 1)"),
        table1=Cells("A", "-", learnable=True, recurring=False, unbound=True, params="2*n*d"),
        note="Table 1 counts frequencies and phases of d complex channels; the code has no phases, and a block counts "
        "its projections",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Remaining(), words: Words = Words()) -> None:
        if dims.width % (2 * dims.heads):
            raise PositionError(
                f"position model 'complex' halves the width into real and imaginary parts, each for {dims.heads} "
                f"heads; the width {dims.width} is not a multiple of {2 * dims.heads}"
            )
        c = dims.width // 2
        super().__init__(dims, [of_arity(self.name, encoding, 1), words], V=words.size, c=c)
        powers = torch.arange(c, dtype=torch.float64) // 2 * (-2 / c)
        self.frequency = nn.Parameter((10000.0**powers).to(torch.get_default_dtype()).repeat(words.size, 1))
        self.project = nn.ModuleList(nn.ModuleList(nn.Linear(c, c) for _ in range(4)) for _ in range(dims.layers))

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n, c) the angle t omega_w of each channel, float32 at least."""
        places, words = (positions.queries(encoding) for encoding in self.encodings)
        return numbers(self.name, self.encodings[0], places)[..., None] * wide(self.frequency)[words]

    def inputs(self, x: Tensor, prepared: Tensor) -> Tensor:
        real, imaginary = turned(_parts(x.to(prepared.dtype)), prepared)
        return torch.cat([real, imaginary], dim=-1).to(x.dtype)

    def attend(self, x: Tensor, prepared: Any, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        layer = self.project[site.layer]
        assert isinstance(layer, nn.ModuleList)
        *projections, out = layer
        q, k, v = (self._of_heads(each, _parts(x)) for each in projections)
        mixed = attended(q, k, v, allowed(self.name, terms, x), site.dropout)
        return torch.cat([out(joined(part)) for part in mixed], dim=-1), prepared

    def _of_heads(self, projection: nn.Module, parts: Parts) -> Parts:
        real, imaginary = (split(projection(part), self.dims.heads) for part in parts)
        return real, imaginary


def _parts(x: Tensor) -> Parts:
    real, imaginary = x.chunk(2, dim=-1)
    return real, imaginary


class CoPE(Block, name="cope"):
    """Contextual positions: each query counts the keys that are relevant to it (Golovneva et al. 2024, CoPE).

    s_ij = q_i.k_j / sqrt(d_h) + q_i.e(p_ij),  p_ij = sum of sigmoid(q_i.k_u / sqrt(d_h)) over keys u from j to i.

    p is the number of keys from j on that the query counts, at most T - 1, and in general not a whole number: e(p) is
    interpolated between the vectors E[floor p] and E[ceil p]. E (T, d_h) is learned and starts from zero. Queries, keys
    and values are projected as usual. (Golovneva et al. 2024, section 4, equations 3 to 5; the listing of their
    appendix.)

    As in that listing, gates use scaled products, the term of positions is not scaled, and all heads of a layer have
    one table; T is far below the length of a text. The code that the authors released divides that term by sqrt(d_h)
    too, unless it is given "cope-nodiv": ``divided``. The model is causal by itself: keys after the query neither count
    nor attend, as well as those that are masked. The encoding defines before and after: in a tree a unit can count its
    ancestors, for example; of units with the same number those stored later are later.

    Args:
        encoding: one number per unit, by which units are counted.
        max_length: T, number of positions, 2 or more.
        sharing: ``head-wise`` as in the listing.
        divided: whether the term of positions is divided by sqrt(d_h) too, as by default in the released code.
    """

    drops = True
    spec = Spec(
        "golovneva2024",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="4*(d*d + d)*l + T*dh*copies"),
        note="a block counts its projections",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        max_length: int = 64,
        sharing: Sharing = "head-wise",
        divided: bool = False,
    ) -> None:
        if max_length < 2:
            raise PositionError(f"position model 'cope' needs 2 positions or more; given is max_length={max_length}")
        super().__init__(dims, [of_arity(self.name, encoding, 1)], T=max_length, copies=Table.copies(sharing, dims))
        self.max_length, self.table = max_length, Table(dims, max_length, sharing, width=dims.head, std=0)
        self.scale = 1 / math.sqrt(dims.head) if divided else 1.0
        self.projections, self.outs = of_layers(dims, 3 * dims.width), of_layers(dims, dims.width)

    def prepare(self, positions: Positions) -> Tensor:
        """(b, n) the units in their order."""
        return numbers(self.name, self.encodings[0], positions[self.encodings[0]]).argsort(dim=1, stable=True)

    def attend(self, x: Tensor, prepared: Tensor, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        # Everything is put in order and back: sums over later keys then run along an axis.
        seen = _sorted_pairs(allowed(self.name, terms, x), prepared).tril()
        projected = self.projections[site.layer](_sorted(x[:, None], prepared)[:, 0])
        q, k, v = (split(each, self.dims.heads) for each in projected.chunk(3, dim=-1))
        out = self._attended(q, k, v, seen, self.table.at(site.layer), site.dropout)
        return self.outs[site.layer](joined(_sorted(out, prepared.argsort(dim=1)))), prepared

    def _attended(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, table: Tensor, dropped: float) -> Tensor:
        """(b, h, n, d_h) of units in order; table (T, h or 1, d_h)."""
        score = products(q, k) / math.sqrt(self.dims.head)
        gates = torch.sigmoid(score).masked_fill(~seen, 0)
        position = gates.flip(-1).cumsum(-1).flip(-1).clamp(max=self.max_length - 1)  # summed from the last key back
        whole = products(q, table.transpose(0, 1)) * self.scale  # (b, h, n, T) q.E
        low, high = (whole.gather(-1, p.long()) for p in (position.floor(), position.ceil()))
        score = score + low + (high - low) * (position - position.floor())
        return softmax(score, seen, dropped).to(v.dtype) @ v


class HardCodedGaussian(Block, name="hard-coded-gaussian"):
    """Attention weights that are fixed bell curves around a neighbour (You, Sun and Iyyer 2020).

    o_i = W_o [ sum_j w_ij v_j ],  w_ij = exp(-((r_ij - c_h) / z_h)^2 / 2) / (z_h sqrt(2 pi)),  v = W_v x.

    w is the density of a normal distribution around c_h, deviation z_h; it depends on positions only, and there are no
    queries and keys. r_ij = s - t, key minus query, or any other encoding of pairs; pairs without a path have weight 0.
    W_v and W_o are (d, d) without bias, of each layer; heads as usual. (You et al. 2020, section 3.)

    As in the authors' code w is used directly: without a softmax rows do not sum to 1, least of all at the ends of a
    text, and a masked pair has weight 0 without changing the others. Not included: the factor on the place of the query
    with which the code aligns two languages in cross attention, and learned heads next to fixed ones.

    Args:
        encoding: signed integers per pair.
        centres: c, for one head after the other, repeated if there are more heads.
        deviations: z, in the same way.
        threshold: densities below this are 0.

    Raises:
        PositionError: no centre or deviation, or a deviation of 0 or less.
    """

    drops = True
    spec = Spec(
        "you2020",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="2*d*d*l"),
        note="a block counts its projections; the weights have no parameters, and far keys all have weight 0",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Offset(),
        centres: tuple[float, ...] = (-1.0, 1.0),
        deviations: tuple[float, ...] = (1.0,),
        threshold: float = 0.0,
    ) -> None:
        super().__init__(dims, [of_all_pairs(self.name, encoding)])
        if not centres or not deviations or min(deviations) <= 0:
            raise PositionError(
                f"position model 'hard-coded-gaussian' needs a centre and a deviation above 0 for each head; given are "
                f"centres {centres} and deviations {deviations}"
            )
        self.centres, self.deviations = (
            torch.tensor([given[h % len(given)] for h in range(dims.heads)], dtype=torch.float64)
            for given in (centres, deviations)
        )
        self.threshold = threshold
        self.values, self.outs = (of_layers(dims, dims.width, bias=False) for _ in range(2))

    def prepare(self, positions: Positions) -> Tensor:
        """(b, h, n, n) the weights, float64, the same for all layers."""
        of_pairs: Lookup = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        return of_pairs.map(self._density).dense().movedim(3, 1)

    def attend(self, x: Tensor, prepared: Tensor, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        weights = dropout(prepared.to(x.dtype) * allowed(self.name, terms, x), site.dropout)
        v = split(self.values[site.layer](x), self.dims.heads)
        return self.outs[site.layer](joined(weights.to(v.dtype) @ v)), prepared

    def _density(self, values: Tensor) -> Tensor:
        r = torch.where(is_plain(values), values, values - WITHIN)[:, None].double()
        c, z = self.centres.to(r.device), self.deviations.to(r.device)
        density = torch.exp(-(((r - c) / z) ** 2) / 2) / (z * math.sqrt(2 * math.pi))
        return density * (density >= self.threshold) * (values != UNREACHABLE)[:, None]


class InOrder(CachedBlock):
    """Attention of each unit to itself and to those before it, by the encoding; so the model is causal by itself.

    Of units with the same number those stored later are later.

    Args:
        encoding: one number per unit, by which units are ordered.
        sizes: see :class:`PositionModel`.
    """

    def __init__(self, dims: Dims, encoding: Encoding, **sizes: int) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)], False, **sizes)

    def prepare(self, positions: Positions) -> Tensor:
        """(b or 1, m) the rank of each unit."""
        return ranks(self.name, self.encodings[0], positions)


class ForgettingAttention(InOrder, name="forgetting-attention"):
    """Forgetting attention: scores fall by the forget gates of the units between query and key (Lin et al. 2025).

    s_ij = q_i.k_j / sqrt(d_h) + sum of log f_t over the units t with j < t <= i,  f_t = sigmoid(w.x_t + b).

    FoX, the forgetting Transformer: f is a gate of each unit and head; w (d) and b are learned for each head of each
    layer. With equal gates for all units this is ``alibi-causal`` with learned slopes. (Lin et al. 2025, section 3,
    equations 5 to 7; gates and bias "full" in their code.) CABLE (Veisi et al. 2025) is the same with -w and -b, as
    -softplus(z) = log sigmoid(-z); its code has biases in projections, and does not divide q.k by sqrt(d_h).

    As in their code, queries, keys, values and output are projected without biases, b starts from 0, and sums are in
    float32. Not included: the parts of their "Pro" block that have nothing to do with gates (norms of queries and keys,
    an output gate, shifts of keys and values). Compared with the reference of flash-linear-attention in float64.

    The model is causal by itself: keys after the query do not attend. The encoding defines before and after: in a tree
    gates can add up along the depth; of units with the same number those stored later are later. Gates of units that a
    mask hides still count, as in a sliding window; those of padding do not. A decoder keeps log f as one more channel
    of the keys.
    """

    spec = Spec(
        "lin2025",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="(4*d*d + d*h + h)*l"),
        note="a block counts its projections",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order()) -> None:
        super().__init__(dims, encoding)
        self.gates = of_layers(dims, dims.heads)

    def project(self, x: Tensor, site: Site) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().project(x, site)
        gates = functional.logsigmoid(self.gates[site.layer](x)).transpose(1, 2)
        return q, torch.cat([k, gates[..., None].to(k.dtype)], dim=-1), v

    def mixed(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, prepared: Tensor, site: Site) -> Tensor:
        k, gates = k[..., :-1], k[..., -1]
        score = self.scores(q, k)
        rank, own = prepared[:, None], prepared[:, None, -q.shape[2] :]
        # Sums of log f in order, from the first unit on; the sum between two units is the difference of theirs.
        order = rank.argsort(dim=-1).expand(gates.shape)
        total = gates.to(score.dtype).gather(-1, order).cumsum(dim=-1).gather(-1, rank.expand(gates.shape))
        score = score + total[..., -q.shape[2] :, None] - total[..., None, :]
        return softmax(score, seen & (rank[..., None, :] <= own[..., None]), site.dropout).to(v.dtype) @ v


class StickBreaking(InOrder, name="stick-breaking"):
    """Stick-breaking attention: each key takes a share of what the keys after it have left (Tan et al. 2025).

    p_ij = sigmoid(z_ij) prod of (1 - sigmoid(z_iu)) over the units u with j < u < i,  z_ij = q_i.k_j / sqrt(d_h).

    In the place of a softmax: a query goes back from the unit before it, gives each key a share of the rest of a stick
    of length 1, and needs no other positions, as the nearest of equal keys gets most. Weights sum to 1 or less. (Tan et
    al. 2025; the authors' code, which computes logarithms: sums of log(1 - sigmoid(z)).) As there, a unit does not
    attend to itself, and the first one attends to nothing; with ``current`` a unit is the first key of its own, as
    "attend_current" in flash-linear-attention. Projections have no biases. What is left of the stick goes to nothing.
    Compared with the product, and with the authors' reference in float64.

    The model is causal by itself: keys after the query do not attend. The encoding defines before and after: in a tree
    a unit can go up along its ancestors, with a mask of these; of units with the same number those stored later are
    later. Keys that a mask hides take no share.

    Args:
        current: whether a unit attends to itself.
    """

    spec = Spec(
        "tan2025",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="4*d*d*l"),
        note="a block counts its projections",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), current: bool = False) -> None:
        super().__init__(dims, encoding)
        self.current = current

    def mixed(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, prepared: Tensor, site: Site) -> Tensor:
        rank, own = prepared[:, None, None], prepared[:, None, -q.shape[2] :, None]
        seen = seen & ((rank <= own) if self.current else (rank < own))
        score = self.scores(q, k)
        order = prepared.argsort(dim=-1)[:, None, None].expand(score.shape)
        left = functional.logsigmoid(-score).masked_fill(~seen, 0).gather(-1, order)
        # Of the keys after each: the sum from the last one back, without the key itself.
        after = left.flip(-1).cumsum(-1).flip(-1) - left
        share = functional.logsigmoid(score) + after.gather(-1, rank.expand(score.shape))
        weights = dropout(share.exp().masked_fill(~seen, 0), site.dropout)
        return weights.to(v.dtype) @ v


_CHUNK = 64
"""Units whose matrices are multiplied together, as in the authors' kernel."""


class PathAttention(InOrder, name="path-attention"):
    """PaTH attention: products of Householder-like matrices between query and key (Yang S. et al. 2025).

    s_ij = q_i^T H_i H_(i-1) ... H_(j+1) k_j / sqrt(d_h),  H_t = I - beta_t w_t w_t^T.

    PaTH: the matrix between two units is the product of one matrix for each unit after the key, up to the query, and
    depends on what these units contain. w_t (d_h) has length 1 and is read for each head from the unit and the two
    before it, w = U V x (V (r, d)), then a convolution over ``window`` units, channel by channel, and SiLU; beta_t = 2
    sigmoid(u.x_t + b), which lets H reflect. (Yang S. et al. 2025, sections 3.1 and 3.3, and the layer of
    flash-linear-attention.)

    As in that layer: projections have no biases, w is divided by sqrt(|w|^2 + 1e-6), and products are computed for 64
    units at a time by the inverse of a triangular matrix (section 3.2), in time that grows with n^2, not n^3. Not
    included: their forget gate (PaTH-FoX), norms of queries and keys, and shared keys. Compared with the reference of
    flash-linear-attention in float64.

    The model is causal by itself: keys after the query do not attend. The encoding defines before and after; of units
    with the same number those stored later are later. The matrices of units that a mask hides still count. A decoder
    keeps w and beta as more channels of the keys, and multiplies anew in each step; its units must come in their order.

    Args:
        rank: r.
        window: units of the convolution.

    Raises:
        PositionError: units of a decoder do not come in their order.
    """

    spec = Spec(
        "yang2025path",
        "sequence",
        Cells("B", "MAM", learnable=True, recurring=True, unbound=True, params="(4*d*d + 2*d*r + d*k + d*h + h)*l"),
        note="a block counts its projections; relative but for the convolution, which reads units in front too",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), rank: int = 32, window: int = 3) -> None:
        super().__init__(dims, encoding, r=rank, k=window)
        self.down, self.strengths = of_layers(dims, rank, bias=False), of_layers(dims, dims.heads)
        self.up = nn.ModuleList(nn.Linear(rank, dims.width, bias=False) for _ in range(dims.layers))
        self.filters = nn.Parameter(torch.empty(dims.layers, dims.width, window).uniform_(-1, 1) * window**-0.5)

    def project(self, x: Tensor, site: Site) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().project(x, site)
        w = split(self.up[site.layer](self.down[site.layer](x)), self.dims.heads)
        beta = 2 * torch.sigmoid(self.strengths[site.layer](x)).transpose(1, 2)[..., None]
        return q, torch.cat([k, w, beta.to(k.dtype)], dim=-1), v

    def mixed(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, prepared: Tensor, site: Site) -> Tensor:
        n, m = q.shape[2], k.shape[2]
        if n < m:
            if holds((prepared != torch.arange(m, device=k.device)).any()):
                raise PositionError(
                    f"position model {self.name!r} multiplies the matrices of units in their order, and here a unit "
                    f"comes before one that was written earlier; order them by {Order().name!r}"
                )
            return self._in_order(q, k, v, seen, site)
        order = prepared.argsort(dim=1)
        seen = _sorted_pairs(seen, order)
        q, k, v = (_sorted(each, order) for each in (q, k, v))
        return _sorted(self._in_order(q, k, v, seen, site), prepared)

    def _in_order(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, site: Site) -> Tensor:
        n, m = q.shape[2], k.shape[2]
        k, w, beta = torch.split(wide(k), [self.dims.head, self.dims.head, 1], dim=-1)
        with torch.autocast(q.device.type, enabled=False):  # there is no inverse in half precision
            score = chunked_products(wide(q), k, self._directions(w, site.layer), beta) / self.dims.head**0.5
        behind = torch.ones(n, m, dtype=torch.bool, device=q.device).tril(m - n)
        return softmax(score, seen & behind, site.dropout).to(v.dtype) @ v

    def _directions(self, w: Tensor, layer: int) -> Tensor:
        """The w_t (b, h, m, d_h) of length 1: convolved, activated, divided by their length."""
        channels = w.transpose(2, 3).flatten(1, 2)
        filters = self.filters[layer][:, None].to(w.dtype)
        padded = functional.pad(channels, (filters.shape[-1] - 1, 0))
        mixed = functional.silu(functional.conv1d(padded, filters, groups=len(filters)))
        w = split(mixed.transpose(1, 2), self.dims.heads)
        return w * (w.square().sum(-1, keepdim=True) + 1e-6).rsqrt()


def chunked_products(q: Tensor, k: Tensor, w: Tensor, beta: Tensor) -> Tensor:
    """(b, h, n, m) q_i^T H_i ... H_(j+1) k_j for keys j <= i; numbers of other pairs mean nothing.

    Within a chunk, H_i ... H_(j+1) = I - sum_st w_s T_st beta_t w_t^T, T the inverse of I + the strictly lower triangle
    of beta_s w_s.w_t; whole chunks follow one by one, from the last to the first.

    Args:
        q: (b, h, n, d) of the last n units.
        k: (b, h, m, d).
        w: (b, h, m, d), of length 1.
        beta: (b, h, m, 1).
    """
    n, m = q.shape[2], k.shape[2]
    size = min(_CHUNK, m)
    first, after = (m - n) // size, -m % size
    q = _chunks(q, m - n - first * size, after, size)
    k, w, beta = (_chunks(each, 0, after, size) for each in (k, w, beta))
    weighted = beta * w
    within = (weighted @ w.mT).tril(-1) + torch.eye(size, dtype=w.dtype, device=w.device)
    solved = torch.linalg.solve_triangular(
        within, torch.cat([(weighted @ k.mT).tril(-1), weighted], dim=-1), upper=False, unitriangular=True
    )
    of_keys, of_chunk = solved[..., :size], solved[..., size:]
    crossed = (q @ w[:, :, first:].mT).tril()
    local = (q @ k[:, :, first:].mT).tril() - crossed @ of_keys[:, :, first:]
    q = q - crossed @ of_chunk[:, :, first:]  # turned back to the start of its chunk
    k = k - of_keys.mT @ w  # turned to the end of its chunk
    columns: list[Tensor] = []
    for chunk in reversed(range(k.shape[2])):
        own = max(chunk - first, -1)  # the chunk of the same units among those of the queries
        later = q[:, :, own + 1 :]
        blocks = [later @ k[:, :, chunk, None].mT]
        if own >= 0:
            blocks = [torch.zeros_like(local[:, :, :own]), local[:, :, own, None], *blocks]
        columns.append(torch.cat(blocks, dim=2).flatten(2, 3))
        turned = later - later @ (w[:, :, chunk, None].mT @ of_chunk[:, :, chunk, None])
        q = torch.cat([q[:, :, : own + 1], turned], dim=2)
    score = torch.cat(columns[::-1], dim=-1)
    return score[:, :, m - n - first * size :, :m][:, :, :n]


def _chunks(x: Tensor, before: int, after: int, size: int) -> Tensor:
    """(b, h, c, size, d) of (b, h, n, d), with so many zeros before and after."""
    padded = functional.pad(x, (0, 0, before, after))
    return padded.view(*x.shape[:2], -1, size, x.shape[-1])


def _sorted(x: Tensor, order: Tensor) -> Tensor:
    """(b, h, n, ...) rows of x in an order (b or 1, n)."""
    b = max(len(x), len(order))
    index = order[:, None, :, None].expand(b, x.shape[1], -1, x.shape[3])
    return x.expand(b, *x.shape[1:]).gather(2, index)


def _sorted_pairs(pairs: Tensor, order: Tensor) -> Tensor:
    """(b, h, n, n) rows and columns in an order (b or 1, n)."""
    return _sorted(_sorted(pairs, order).transpose(2, 3), order).transpose(2, 3)
