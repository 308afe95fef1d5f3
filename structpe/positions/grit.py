"""Attention whose scores are computed from vectors of pairs that each layer updates: GRIT and PPGT."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
from structpe.encodings.simple_paths import SimplePaths
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

__all__ = ["GRIT", "PPGT", "SPSE", "signed_root"]


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


_Results: TypeAlias = tuple[Tensor, Tensor, Tensor]


def _differentiable(x: Tensor) -> bool:
    """Whether only formulas will do, of which PyTorch finds the gradient or the precision itself."""
    traced = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
    return traced or torch.is_autocast_enabled(x.device.type)


def _seen(met: Tensor, e: Tensor, maps: Tensor, biases: Tensor, rectified: bool) -> Tensor:
    """(P, d) e' = rho(met * W_w e) + W_b e, through the relu if ``rectified``.

    Args:
        met: (P, d) q_i + k_j.
        e: (P, d) the states of pairs.
        maps: (2 d, d) W_w and W_b: one product for both.
        biases: (2 d,) theirs.
        rectified: whether it goes through the relu.
    """
    if _differentiable(e):
        return _formula_of_seen(met, e, maps, biases, rectified)
    seen: Tensor = _Seen.apply(met, e, maps, biases, rectified)  # type: ignore[no-untyped-call]
    return seen


def _formula_of_seen(met: Tensor, e: Tensor, maps: Tensor, biases: Tensor, rectified: bool) -> Tensor:
    weighed, added = linear(e, maps, biases).chunk(2, dim=-1)
    seen: Tensor = signed_root(met * weighed) + added
    return seen.relu_() if rectified else seen


class _Seen(torch.autograd.Function):
    """The same in half as many passes over the pairs: where it can, it writes into what is not needed any more."""

    @staticmethod
    def forward(ctx: Any, met: Tensor, e: Tensor, maps: Tensor, biases: Tensor, rectified: bool) -> Tensor:
        both = linear(e, maps, biases)
        seen, root = _rooted(met, both, rectified)
        ctx.rectified = rectified
        if any(ctx.needs_input_grad):
            ctx.save_for_backward(met, e, maps, biases, both, _inverse_slope(root), seen)
        return seen

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        met, e, maps, biases, both, slope, seen = ctx.saved_tensors
        if torch.is_grad_enabled():
            given = met, e, maps, biases
            formula = partial(_formula_of_seen, rectified=ctx.rectified)
            return *_further(formula, given, ctx.needs_input_grad[:4], [grad]), None
        of_met, of_both = _of_rooted(grad, met, both, slope, seen, ctx.rectified)
        return of_met, of_both @ maps, of_both.T @ e, of_both.sum(0), None


def _rooted(met: Tensor, both: Tensor, rectified: bool) -> tuple[Tensor, Tensor]:
    """(P, d) e' of W_w e and W_b e (P, 2 d), and |rho|."""
    weighed, added = both.chunk(2, dim=-1)
    signed = met * weighed
    root = signed.abs().sqrt_()
    seen = torch.copysign(root, signed, out=signed).add_(added)
    return seen.relu_() if rectified else seen, root


def _inverse_slope(root: Tensor) -> Tensor:
    """2 |rho|, in place; infinite where it is 0, as the gradient there is set to 0."""
    return torch.threshold_(root.mul_(2), 0, math.inf)


def _of_rooted(
    grad: Tensor, met: Tensor, both: Tensor, slope: Tensor, seen: Tensor, rectified: bool
) -> tuple[Tensor, Tensor]:
    """The gradients of q_i + k_j (P, d), and of W_w e and W_b e (P, 2 d); ``slope`` is of :func:`_inverse_slope`."""
    made = torch.empty_like(both)
    of_weighed, of_added = made.chunk(2, dim=-1)
    if rectified:
        torch.ops.aten.threshold_backward.grad_input(grad, seen, 0, grad_input=of_added)
    else:
        of_added.copy_(grad)
    of_signed = of_added / slope
    torch.mul(of_signed, met, out=of_weighed)
    return of_signed.mul_(both[:, : met.shape[1]]), made


def _further(
    formula: Callable[..., Any], given: Sequence[Tensor], needed: Sequence[bool], grads: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """Gradients of what a formula is given, of which gradients can be computed in turn."""
    results = formula(*given)
    results = results if isinstance(results, tuple) else (results,)
    outs, known = zip(*((x, g) for x, g in zip(results, grads, strict=True) if g is not None), strict=True)
    wanted = [x for x, wanted in zip(given, needed, strict=True) if wanted]
    found = iter(torch.autograd.grad(outs, wanted, known, create_graph=True, allow_unused=True))
    return [next(found) if wanted else None for wanted in needed]


@dataclass(frozen=True, eq=False)
class _Whole:
    """Queries of which all pairs with the n units of their structures are listed, so that nothing is looked up.

    Attributes:
        hidden: (c, h or 1, n) which pairs do not attend.
        rectified: whether e' goes through the relu.
        noise: (c, h, n) the factors of dropout, if any.
    """

    hidden: Tensor
    rectified: bool
    noise: Tensor | None

    def attended(self, *given: Tensor) -> _Results:
        """Weights (c, h, n), sum_j a_ij e'_ij (c, d) and e' (c n, d) of the queries.

        Args:
            given: q (c, d), k (s n, d) of their structures, e (c n, d), the maps and biases of :func:`_seen`, and
                A_w (d, h) of each head in its own rows.
        """
        if _differentiable(given[0]):
            return self.formula(*given)
        made: _Results = _Attended.apply(self, *given)  # type: ignore[no-untyped-call]
        return made

    def met(self, q: Tensor, k: Tensor) -> Tensor:
        """(s, c / s, n, d) q_i + k_j."""
        n, d = self.hidden.shape[-1], q.shape[-1]
        return q.view(len(k) // n, -1, 1, d) + k.view(-1, 1, n, d)

    def kept(self, weights: Tensor) -> Tensor:
        """Those that dropout leaves."""
        return weights if self.noise is None else weights * self.noise.to(weights.dtype)

    def formula(self, q: Tensor, k: Tensor, e: Tensor, maps: Tensor, biases: Tensor, by_head: Tensor) -> _Results:
        """As :meth:`attended`."""
        c, n = len(q), self.hidden.shape[-1]
        seen = _formula_of_seen(self.met(q, k).flatten(0, 2), e, maps, biases, self.rectified)
        states = seen.view(c, n, -1)
        kept = self.kept(softmax(clipped(by_head.T @ states.mT), ~self.hidden))
        return kept, _of_own_heads(kept.to(seen.dtype) @ states), seen


def _of_own_heads(every: Tensor) -> Tensor:
    """(c, d) of each head its own channels of (c, h, d): a product has more than is needed, but copies nothing."""
    c, h, _ = every.shape
    return every.view(c, h, h, -1).diagonal(dim1=1, dim2=2).transpose(1, 2).flatten(1)


class _Attended(torch.autograd.Function):
    """:meth:`_Whole.formula` in half as many passes over the pairs, with one product for all gradients of e'."""

    @staticmethod
    def forward(ctx: Any, block: _Whole, q: Tensor, k: Tensor, e: Tensor, *weights: Tensor) -> _Results:
        maps, biases, by_head = weights
        met, both = block.met(q, k).flatten(0, 2), linear(e, maps, biases)
        seen, root = _rooted(met, both, block.rectified)
        states = seen.view(len(q), -1, seen.shape[1])
        scores = (seen @ by_head).view(len(q), -1, by_head.shape[1]).transpose(1, 2).contiguous()
        least = torch.finfo(scores.dtype).min
        chosen = clipped(scores).masked_fill_(block.hidden, least).softmax(-1).masked_fill_(block.hidden, 0)
        kept = block.kept(chosen)
        ctx.block = block
        ctx.set_materialize_grads(False)
        if any(ctx.needs_input_grad):
            ctx.save_for_backward(q, k, e, *weights, met, both, _inverse_slope(root), seen, scores, chosen)
        return kept, _of_own_heads(kept @ states), seen

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        block: _Whole = ctx.block
        *given, met, both, slope, seen, scores, weights = ctx.saved_tensors
        if torch.is_grad_enabled():
            return None, *_further(block.formula, given, ctx.needs_input_grad[1:], grads)
        q, k, e, maps, _, by_head = given
        of_kept, of_summed, of_seen = grads
        (c, h, n), d = weights.shape, q.shape[1]
        states = seen.view(c, n, d)
        apart = q.new_zeros(c, h, h, d // h)
        if of_summed is not None:
            apart.diagonal(dim1=1, dim2=2).copy_(of_summed.view(c, h, -1).transpose(1, 2))
        apart = apart.view(c, h, d)
        of_weights = apart @ states.mT
        of_weights = block.kept(of_weights if of_kept is None else of_weights.add_(of_kept))
        of_scores = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype)
        of_scores.masked_fill_(clipped(scores) != scores, 0)
        left, right = torch.cat([of_scores, block.kept(weights)], 1), torch.cat([by_head.T.expand(c, -1, -1), apart], 1)
        of_states = left.mT @ right if of_seen is None else torch.baddbmm(of_seen.view(c, n, d), left.mT, right)
        of_met, of_both = _of_rooted(of_states.view(c * n, d), met, both, slope, seen, block.rectified)
        of_met = of_met.view(len(k) // n, -1, n, d)
        of_maps = of_both.T @ e, of_both.sum(0), (of_scores.transpose(0, 1).flatten(1) @ seen).T
        return None, of_met.sum(2).view_as(q), of_met.sum(1).view_as(k), of_both @ maps, *of_maps


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
        hidden = ~(there & listed.together[:, None]).transpose(1, 2).flatten(0, 1)  # (b n, h or 1, n)
        noise = [dropout(torch.ones(b, h, n, n, dtype=wide(x).dtype, device=x.device), dropped)] if dropped else []
        # A_w (d, h) of each head in its own rows: one product, where one of each head takes a copy of all states.
        by_head = self.score.T.diag_embed().transpose(0, 1).flatten(0, 1)
        q, k = (project(x).flatten(0, 1) for project in (self.query, self.key))
        blocks = listed.blocks(cut(b * n, 5 * n * d, x.device))
        grid = len(blocks) > 1 and len(listed.places) == b * n * n
        made = by_rows(
            partial(self._of_grid if grid else self._of_queries, listed, hidden),
            blocks,
            [q, state.pairs, *(each.transpose(1, 2).flatten(2).flatten(0, 1) for each in noise)],
            [k, *self._maps(), by_head, *self._changes()],
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
        self, listed: ListedPairs, hidden: Tensor, block: Ranges, q: Tensor, e: Tensor, *given: Tensor
    ) -> tuple[Tensor, ...]:
        """For c queries (c, h n) their weights and (c, d) sum_j a_ij e'_ij; with a norm also the changed states."""
        (*kept, k, maps, biases, by_head), changes = self._apart(given)
        (queries, pairs), n = block, hidden.shape[-1]
        query, places = listed.query[pairs] - queries.start, listed.places[pairs] - queries.start * n
        met = q.index_select(0, query) + k.index_select(0, listed.key[pairs])
        seen = _seen(met, e, maps, biases, self.rectified)
        scores = clipped(seen @ by_head)
        dense = scores.new_zeros(len(q) * n, scores.shape[1]).index_copy(0, places, scores).view(len(q), n, -1)
        weights = _weights(dense, ~hidden[queries], kept)
        own = weights.transpose(1, 2).flatten(0, 1).index_select(0, places)[..., None] * self._heads(seen)
        summed = own.new_zeros(q.shape).index_add(0, query, own.flatten(-2))
        return weights.flatten(1), summed, *self._changed(e, seen, changes)

    def _of_grid(
        self, listed: ListedPairs, hidden: Tensor, block: Ranges, q: Tensor, e: Tensor, *given: Tensor
    ) -> tuple[Tensor, ...]:
        """The same for queries of one structure, all of whose pairs are listed: nothing is looked up."""
        del listed
        (*kept, k, maps, biases, by_head), changes = self._apart(given)
        queries, n = block[0], hidden.shape[-1]
        first = queries.start // n * n
        noise = kept[0].view(len(q), -1, n) if kept else None
        weights, summed, seen = _Whole(hidden[queries], self.rectified, noise).attended(
            q, k[first : max(first + n, queries.stop)], e, maps, biases, by_head
        )
        return weights.flatten(1), summed, *self._changed(e, seen, changes)

    def _apart(self, given: Sequence[Tensor]) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        """What a block is given for attention, and the parameters of the change of the states."""
        count = len(given) - len(self._changes())
        return given[:count], given[count:]

    def _maps(self) -> list[Tensor]:
        """W_w and W_b (2 d, d), and their biases (2 d,): one product for both."""
        maps = self.weigh, self.add
        return [torch.cat([each.weight for each in maps]), torch.cat([each.bias for each in maps])]

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


class SPSE(GRIT, name="spse"):
    """GRIT with counts of simple paths in place of random walks (Airale et al. 2025).

    As ``grit``, P_ij (K) being the counts of paths of 0, 1, ..., K - 1 steps from i to j that meet no node twice.

    Counts tell cycles from paths, which random walks do not always. (Simple path structural encoding; Airale et al.
    2025, who put it into GRIT and CSA.) Their numbers come from an estimate, and go through several logarithms; here
    they are exact, and their logarithm is taken once, see the encoding. P_ii is the same for all nodes. Any other model
    of vectors per pair takes the encoding as well.
    """

    spec = Spec(
        "airale2025",
        "graph",
        Cells("B", "both", learnable=True, recurring=True, unbound=False, params=_PARAMS_GRIT),
        note="paths are relative, degrees absolute; a block counts its projections",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = SimplePaths(),
        labels: LabelPath | None = None,
        norm: Norm = "layer",
        rectified: bool = True,
    ) -> None:
        super().__init__(dims, encoding, labels, norm, rectified)


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
