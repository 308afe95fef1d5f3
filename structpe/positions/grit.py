"""Attention whose scores are computed from vectors of pairs that each layer updates: GRIT and PPGT."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import layer_norm, linear

from structpe.dropout import dropout
from structpe.encodings.base import Encoding
from structpe.encodings.distance import Degree
from structpe.encodings.label_path import LabelPath
from structpe.encodings.order import Size
from structpe.encodings.walks import RRWP
from structpe.positions import Block, Cells, Dims, Positions, Site, Spec
from structpe.positions.batch import clipped
from structpe.positions.block import FactoredBlock, ListedPairs, allowed, of_layers, products, softmax
from structpe.positions.by_rows import Ranges, by_rows, cut
from structpe.positions.networks import BatchNorm, pair_vector_width
from structpe.positions.path_labels import Edges, check_single_edges
from structpe.positions.tables import diagonal, numbers_and_marks, pair_width
from structpe.precision import wide
from structpe.terms import Lookup, Terms

__all__ = ["GRIT", "PPGT", "signed_root"]


def signed_root(z: Tensor) -> Tensor:
    """rho(z) = sgn(z) sqrt(|z|) (Ma et al. 2023, section 3.2), whose gradient at 0 is set to 0.

    sqrt(relu(z)) - sqrt(relu(-z)), which has the same gradient, takes six passes over z in place of three; the compiler
    makes one of them, and does not trace functions with a forward gradient of their own.
    """
    if torch.compiler.is_compiling():
        return z.relu().sqrt() - (-z).relu().sqrt()
    rooted: Tensor = _SignedRoot.apply(z)  # type: ignore[no-untyped-call]
    return rooted


class _SignedRoot(torch.autograd.Function):
    """As rho' = 1 / (2 |rho|), only rho is kept."""

    generate_vmap_rule = True

    @staticmethod
    def forward(z: Tensor) -> Tensor:
        return z.abs().sqrt_().copysign_(z)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * _slope(*ctx.saved_tensors)

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        return tangent * _slope(*ctx.saved_tensors)


def _slope(root: Tensor) -> Tensor:
    """1 / (2 |root|), and 0 where root is 0."""
    return root.abs().mul_(2).masked_fill_(root.logical_not(), float("inf")).reciprocal_()


_PARAMS_GRIT = "2*K*d + V*d + l*(6*d*d + 6*d + d + dh*d) + (l - 1)*(d*d + 3*d)"
_PARAMS_PPGT = "(7*K + 1)*w + (w + 1)*d + (K + 2)*d + d + (4*(d*d + d) + 2*h*(d + 1))*l"
"""Formulas of the number of parameters."""

_MANY = 1 << 15
"""Pairs whose vectors are beyond a cache."""

Norm: TypeAlias = Literal["layer", "batch"]
"""How the states of pairs are normalised: each for itself, or each channel over all pairs of a batch."""


@dataclass(frozen=True, eq=False)
class _State:
    """What each layer gives to the next.

    Attributes:
        pairs: (P, d) e, the states of the pairs that are listed.
        listed: which these are.
        own: (b, n, K) the values of the walks from each unit to itself.
        degree: (b, n, 1) log(1 + degree).
    """

    pairs: Tensor
    listed: ListedPairs
    own: Tensor
    degree: Tensor

    def repeated(self, times: int) -> _State:
        """That of one structure for several rows."""
        return replace(self, pairs=self.pairs.repeat(times, 1), listed=self.listed.repeated(times))


class GRIT(Block, name="grit"):
    """Attention whose scores are computed from states of pairs, which start from random walks (Ma et al. 2023).

    Scores A_w.e'_ij from the states e_ij of pairs, which each layer changes: e_ij = W_r P_ij + E[label ij] at first.

    ::

        x_i   = x_i + W_a P_ii                                                        before the first layer
        e'_ij = relu(rho((W_q x_i + W_k x_j) * W_w e_ij) + W_b e_ij)                  rho(z) = sgn(z) sqrt(|z|)
        a_ij  = softmax_j(clip(A_w.e'_ij, -5, 5))                                     of each head
        y_i   = sum_j a_ij (W_v x_j + W_e e'_ij)
        out_i = W_o (y_i * c_1 + log(1 + deg_i) y_i * c_2),    e_ij = norm(e_ij + W_o' e'_ij)

    P_ij are random walk probabilities (K), W_r and W_a (d, K) without bias; the others are of each layer: W_q, W_w,
    W_b, W_o, W_o' (d, d) with bias, W_k, W_v (d, d) without, A_w (d_h) and W_e (d_h, d_h) of each head, c_1, c_2 (d).
    deg_i is the number of nodes that edges of i lead to. (Ma et al. 2023, section 3.2; the authors' code.) The
    states take d numbers for each pair of units of one structure. Padding has none.

    E (1 + V, d) embeds the label of the edge that joins i and j, if there is one and ``labels`` is given.

    As in the code: q_i and k_j are added, not multiplied, and there is no 1/sqrt(d_h). Unlike the code: units are
    normalised before a layer, as in all layers of this library, and the last layer does not change the states, which
    are not used any more. The code's configurations have ``norm="batch"``; here LayerNorm is the default, as it does
    not depend on the rest of a batch. Where they have labels of edges, the state of i and j has that of an edge j -> i
    only; here it also has that of an edge i -> j, by their own rows. Parallel edges count as the one with the smallest
    label and as one for deg_i, where the code adds them up; a self-loop has no label. The code's attention without the
    rest of its layer has no rectifier: ``rectified=False``.

    Args:
        encoding: a vector per pair.
        labels: the labels of single edges, ``LabelPath(max_length=1, longer="symbol")``; None leaves them out.
        norm: of the states of pairs, ``layer`` or ``batch``.
        rectified: whether e'_ij goes through the relu.

    Raises:
        PositionError: labels are not those of single edges, or another norm.
    """

    drops = True
    spec = Spec(
        "ma2023",
        "graph",
        Cells("B", "both", learnable=True, recurring=True, unbound=False, params=_PARAMS_GRIT),
        note="walks are relative, degrees absolute; a block counts its projections",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = RRWP(),
        labels: LabelPath | None = None,
        norm: Norm = "layer",
        rectified: bool = True,
    ) -> None:
        width = pair_vector_width(self.name, encoding)
        if labels is not None:
            check_single_edges(self.name, labels)
        edges = None if labels is None else Edges(labels.size, dims.width)
        rows = 0 if edges is None else len(edges.table)
        super().__init__(dims, [encoding, Degree("out"), *([] if labels is None else [labels])], K=width, V=rows)
        self.absolute, self.relative = (nn.Linear(width, dims.width, bias=False) for _ in range(2))
        self.edges = edges
        self.attentions = nn.ModuleList(
            _Attention(dims, rectified, norm if layer + 1 < dims.layers else None) for layer in range(dims.layers)
        )

    def prepare(self, positions: Positions) -> _State:
        """The states of pairs before the first layer."""
        walks: Lookup = positions[self.encodings[0]]
        own = walks.map(lambda p: p.to(self.relative.weight.dtype))
        degree: Tensor = positions[self.encodings[1]]
        logarithm = torch.log1p(degree.to(self.relative.weight.dtype))[..., None]
        listed = ListedPairs.of(walks, positions.present)
        # A map of distinct values, unless there are about as many as pairs: then they would only take memory.
        distinct = len(own.table) < len(listed.places) // 2 or len(listed.places) < _MANY
        pairs = listed.read(own.map(self.relative)) if distinct else self.relative(listed.read(own))
        if self.edges is not None:  # 0 without an edge
            labels: Lookup = positions[self.encodings[2]]
            pairs = pairs + listed.read(labels.map(self.edges.summed))
        return _State(pairs, listed, diagonal(own), logarithm)

    def inputs(self, x: Tensor, prepared: _State) -> Tensor:
        added: Tensor = self.absolute(prepared.own)
        return x + added

    def attend(self, x: Tensor, prepared: _State, site: Site, terms: Terms) -> tuple[Tensor, _State]:
        if len(x) > len(prepared.listed.together):
            prepared = prepared.repeated(len(x))
        out, pairs = self.attentions[site.layer](x, prepared, allowed(self.name, terms, x), site.dropout)
        return out, replace(prepared, pairs=pairs)


class _Attention(nn.Module):
    """A layer's attention; with a norm it also changes the states of pairs."""

    def __init__(self, dims: Dims, rectified: bool, norm: Norm | None) -> None:
        super().__init__()
        d, h, dh = dims.width, dims.heads, dims.head
        self.dims, self.rectified = dims, rectified
        self.query, self.key, self.value = nn.Linear(d, d), nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        self.weigh, self.add, self.out = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.score = nn.Parameter(torch.empty(h, dh))
        self.of_pairs = nn.Parameter(torch.empty(h, dh, dh))
        self.scaler = nn.Parameter(torch.empty(2, d))
        self.pairs = nn.Linear(d, d) if norm else None
        self.norm = None if norm is None else BatchNorm(d) if norm == "batch" else nn.LayerNorm(d)
        for weight in (self.query.weight, self.key.weight, self.value.weight, self.weigh.weight, self.add.weight):
            nn.init.xavier_normal_(weight)
        for parameter in (self.score, self.scaler):
            nn.init.xavier_normal_(parameter)
        nn.init.normal_(self.of_pairs, std=math.sqrt(1 / dh))

    def forward(self, x: Tensor, state: _State, there: Tensor, dropped: float) -> tuple[Tensor, Tensor]:
        """(b, n, d) what is added to the units, and (P, d) the states of pairs after it."""
        (b, n, d), h, listed = x.shape, self.dims.heads, state.listed
        may = (there & listed.together[:, None]).transpose(1, 2).flatten(0, 1)  # (b n, h or 1, n)
        noise = [dropout(torch.ones(b, h, n, n, dtype=wide(x).dtype, device=x.device), dropped)] if dropped else []
        # A_w (d, h) of each head in its own rows: one product, where one of each head takes a copy of all states.
        by_head = self.score.T.diag_embed().transpose(0, 1).flatten(0, 1)
        q, k = (project(x).flatten(0, 1) for project in (self.query, self.key))
        blocks = listed.blocks(cut(b * n, 10 * n * d, x.device))
        grid = len(blocks) > 1 and len(listed.places) == b * n * n
        made = by_rows(
            partial(self._of_grid if grid else self._of_queries, listed, may),
            blocks,
            [q, state.pairs, *(each.transpose(1, 2).flatten(2).flatten(0, 1) for each in noise)],
            [k, by_head, *self.weigh.parameters(), *self.add.parameters(), *self._changes()],
            of=(0, 1, *(0 for _ in noise)),
            out=(0, 0, 1) if self.pairs else (0, 0),
        )
        weights = made[0].view(b, n, h, n).transpose(1, 2)
        y = torch.einsum("bhij,bjhc->bihc", weights, self._heads(self.value(x)))
        y = (y + torch.einsum("bihc,hck->bihk", self._heads(made[1].view(b, n, d)), self.of_pairs)).flatten(2)
        out = self.out(y * self.scaler[0] + state.degree * y * self.scaler[1])
        if self.pairs is None:
            return out, state.pairs
        return out, self.norm(made[2], listed.real) if isinstance(self.norm, BatchNorm) else made[2]

    def _of_queries(
        self, listed: ListedPairs, may: Tensor, block: Ranges, q: Tensor, e: Tensor, *given: Tensor
    ) -> tuple[Tensor, ...]:
        """For c queries (c, h n) their weights and (c, d) sum_j a_ij e'_ij; with a norm also the changed states."""
        (*kept, k, by_head, weigh, weigh_bias, add, add_bias), changes = self._apart(given)
        (queries, pairs), n = block, may.shape[-1]
        query, places = listed.query[pairs] - queries.start, listed.places[pairs] - queries.start * n
        met = (q.index_select(0, query) + k.index_select(0, listed.key[pairs])) * linear(e, weigh, weigh_bias)
        seen = signed_root(met) + linear(e, add, add_bias)
        seen = seen.relu_() if self.rectified else seen
        scores = clipped(seen @ by_head)
        dense = scores.new_zeros(len(q) * n, scores.shape[1]).index_copy(0, places, scores).view(len(q), n, -1)
        weights = _weights(dense, may[queries], kept)
        own = weights.transpose(1, 2).flatten(0, 1).index_select(0, places)[..., None] * self._heads(seen)
        summed = own.new_zeros(q.shape).index_add(0, query, own.flatten(-2))
        return weights.flatten(1), summed, *self._changed(e, seen, changes)

    def _of_grid(
        self, listed: ListedPairs, may: Tensor, block: Ranges, q: Tensor, e: Tensor, *given: Tensor
    ) -> tuple[Tensor, ...]:
        """The same for queries of one structure, all of whose pairs are listed: nothing is looked up."""
        del listed
        (*kept, k, by_head, weigh, weigh_bias, add, add_bias), changes = self._apart(given)
        queries, (c, d), n = block[0], q.shape, may.shape[-1]
        first = queries.start // n * n
        # One product for both. Weights of all heads with all channels: more than is needed, but nothing is copied.
        weighed, added = (
            linear(e, torch.cat([weigh, add]), torch.cat([weigh_bias, add_bias])).view(c, n, 2, d).unbind(2)
        )
        seen = signed_root((q[:, None] + k[first : first + n]) * weighed) + added
        seen = seen.relu_() if self.rectified else seen
        weights = _weights(clipped(seen @ by_head), may[queries], kept)
        summed = self._heads(weights.to(seen.dtype) @ seen).diagonal(dim1=1, dim2=2).transpose(1, 2).flatten(1)
        return weights.flatten(1), summed, *self._changed(e, seen.flatten(0, 1), changes)

    def _apart(self, given: Sequence[Tensor]) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        """What a block is given for attention, and the parameters of the change of the states."""
        count = len(given) - len(self._changes())
        return given[:count], given[count:]

    def _changes(self) -> list[Tensor]:
        """The parameters of the change of the states of pairs."""
        if self.pairs is None:
            return []
        return [*self.pairs.parameters(), *(self.norm.parameters() if isinstance(self.norm, nn.LayerNorm) else ())]

    def _changed(self, e: Tensor, seen: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """(P, d) the states after this layer, before batch normalisation; nothing without a norm."""
        if self.pairs is None:
            return ()
        changed = e + linear(seen, weights[0], weights[1])
        return (changed if len(weights) == 2 else layer_norm(changed, changed.shape[-1:], weights[2], weights[3]),)

    def _heads(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.dims.heads, self.dims.head)


def _weights(scores: Tensor, may: Tensor, kept: Sequence[Tensor]) -> Tensor:
    """(c, h, n) of the scores (c, n, h) of the pairs that may attend, with the factors of dropout, if any."""
    weights = softmax(scores.transpose(1, 2), may)
    for each in kept:
        weights = weights * each.view_as(weights).to(weights.dtype)
    return weights


@dataclass(frozen=True)
class _Prepared:
    """``pairs``, vectors (R, d) of distinct values, and what is added to the units, ``own`` (b, n, d)."""

    pairs: Lookup
    own: Tensor


class PPGT(FactoredBlock, name="ppgt"):
    """Attention by squared distances of queries and keys, with a bias and a factor from walks (Ma et al. 2025, PPGT).

    o_i = W_o sum_j (1 + D e_ij + c) softmax_j(q_i.k_j - |k_j|^2 / (2 sqrt(d_h)) + B e_ij + b) v_j + w_o.

    ::

        e_ij = W_2 gelu(W_1 f(P_ij) + c_1) + c_2      f(z) = cat[z, sin(2^m pi z), cos(2^m pi z) for m = 0, 1, 2]
        x_i + V [P_ii, log(1 + deg_i), log(1 + n)] + v            before the first layer

    P_ij are the probabilities of random walks (K), deg_i is the number of nodes that edges of i lead to, n that of
    units. e_ij (d) is the same for all layers; W_1 (w, 7 K), W_2 (d, w), V (d, K + 2). Of each layer are B, D (h, d),
    q, k, v and W_o (d, d) with bias. (Simplified L2 attention: q.k - |k|^2 / 2 differs from -|q - k|^2 / 2 by what is
    the same for all keys of a query. Ma et al. 2025, PPGT; the authors' code, its configuration for ZINC.)

    As in the code, q.k is *not* divided by sqrt(d_h), while |k|^2 is; and 1 + D e_ij + c multiplies after the softmax:
    rows do not sum to 1. Not included: what their configurations add to the stem for pairs (inverse degrees and sizes,
    labels of edges, two blocks with norms), norms, which the layers around it have, and dropout.

    Args:
        encoding: a vector, or a number, per pair.
        hidden: w.
    """

    spec = Spec(
        "ma2025",
        "graph",
        Cells("B", "both", learnable=True, recurring=True, unbound=False, params=_PARAMS_PPGT),
        note="walks are relative, degrees and the size absolute; a block counts its projections",
    )

    def __init__(self, dims: Dims, encoding: Encoding = RRWP(), hidden: int = 128) -> None:
        width = pair_width(self.name, encoding) + bool(encoding.codes)
        super().__init__(dims, [encoding, Degree("out"), Size()], K=width, w=hidden)
        self.enter = nn.Linear(7 * width, hidden)
        self.leave, self.own = nn.Linear(hidden, dims.width), nn.Linear(width + 2, dims.width)
        self.queries, self.keys, self.values, self.outs = (of_layers(dims, dims.width) for _ in range(4))
        self.biases, self.factors = (of_layers(dims, dims.heads) for _ in range(2))

    def prepare(self, positions: Positions) -> _Prepared:
        """The vectors of pairs, once for all layers."""
        values: Lookup = positions[self.encodings[0]]
        walks = values.map(lambda p: numbers_and_marks(self.encodings[0], p, self.own.weight.dtype))
        counts = [torch.log1p(positions[each].to(walks.table.dtype))[..., None] for each in self.encodings[1:]]
        return _Prepared(walks.map(self._stem), self.own(torch.cat([diagonal(walks), *counts], dim=-1)))

    def inputs(self, x: Tensor, prepared: _Prepared) -> Tensor:
        return x + prepared.own.to(x.dtype)

    def scored(self, q: Tensor, k: Tensor, prepared: _Prepared, site: Site) -> tuple[Tensor, Tensor]:
        near = products(q, k) - wide(k).square().sum(-1)[:, :, None] / (2 * math.sqrt(self.dims.head))
        bias, factor = (prepared.pairs.map(each[site.layer]).dense() for each in (self.biases, self.factors))
        return near + bias.movedim(-1, 1), 1 + factor.movedim(-1, 1)

    def _stem(self, numbers: Tensor) -> Tensor:
        waves = [math.pi * 2**m * numbers for m in range(3)]
        lifted = torch.cat([numbers, *(wave.sin() for wave in waves), *(wave.cos() for wave in waves)], dim=-1)
        out: Tensor = self.leave(functional.gelu(self.enter(lifted)))
        return out
