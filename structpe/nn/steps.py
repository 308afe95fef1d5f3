"""The steps of one decoding: values that all steps share, and the layer for one unit per text.

A step multiplies one row per text by every weight of the model, and reading the weights then takes most of the time.
``torch.nn.functional.linear`` reads them as they are stored; rearranged once, the same products of 8 to 32 rows take
half as long on a CPU. PyTorch's compiler rearranges weights by the same two operators when it freezes a model. But they
take 40 microseconds to start, in which one row is multiplied with 200,000 numbers as they are stored.

For a few rows, starting operations takes longer than computing them. So there is one projection for queries, keys and
values, dropout is left out, weights are rearranged for few rows, and a kernel is not chosen in each step. Tests compare
the result with that of the layer.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Literal, TypeAlias, TypeGuard

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from structpe.attention import attend
from structpe.attention.attend import Call, Compute, choose
from structpe.attention.gather import OF_PAIRS
from structpe.nn.layer import Attention, Context, Layer
from structpe.nn.stack import Stack
from structpe.positions import PositionModel, Positions, Site
from structpe.terms import Lookup, Terms, Toeplitz

__all__ = ["After", "Linear", "StepLayer", "Steps", "linear_map"]


Linear: TypeAlias = Callable[[Tensor], Tensor]
"""A function of rows (..., in) to rows (..., out)."""

After: TypeAlias = Literal["none", "relu", "gelu"]
"""The activation after a linear map; ``gelu`` without approximation."""

_LEAST = 1 << 21
"""Products of numbers from which a rearranged weight is faster; with fewer, starting oneDNN takes more time."""


def linear_map(
    weight: Float[Tensor, "out in"], bias: Float[Tensor, " out"] | None = None, after: After = "none"
) -> Linear:
    """The function xW^T + b of x (..., in), or relu or gelu of it, without gradients.

    Args:
        weight: W. For many rows the function makes a rearranged copy of it, which does not follow later changes of W.
        bias: b, or None.
        after: the activation.
    """
    weight, bias = weight.detach(), None if bias is None else bias.detach()
    return _Rearranged(weight, bias, after) if _can_pack(weight) else partial(_plain, weight, bias, after)


class _Rearranged:
    """The function of :func:`linear_map` that rearranges the weight when there are rows enough for the first time."""

    def __init__(self, weight: Tensor, bias: Tensor | None, after: After) -> None:
        self.given, self.tidy = (weight, bias, after), None

    tidy: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        weight, bias, after = self.given
        if x.numel() * len(weight) < _LEAST:
            return _plain(weight, bias, after, x)
        if self.tidy is None:
            self.tidy = torch.ops.mkldnn._reorder_linear_weight(weight)
        product: Tensor = torch.ops.mkldnn._linear_pointwise.default(
            x, self.tidy, bias, after, [], "none" if after == "gelu" else ""
        )
        return product


def _plain(weight: Tensor, bias: Tensor | None, after: After, x: Tensor) -> Tensor:
    product = functional.linear(x, weight, bias)
    if after == "gelu":
        return functional.gelu(product)
    return product.relu_() if after == "relu" else product


def _can_pack(weight: Tensor) -> bool:
    """Whether a weight is of float32, and on a CPU for which PyTorch was built with oneDNN."""
    like = weight.device.type == "cpu" and weight.dtype == torch.float32
    return like and not torch.is_autocast_enabled("cpu") and _has_operators()


@cache
def _has_operators() -> bool:
    """Whether this build of PyTorch has the two operators and they compute a product."""
    if not torch._C._has_mkldnn:
        return False
    weight, x = torch.arange(6.0).view(2, 3), torch.arange(12.0).view(4, 3)
    try:
        tidy = torch.ops.mkldnn._reorder_linear_weight(weight)
        product = torch.ops.mkldnn._linear_pointwise.default(x, tidy, None, "none", [], "")
    except (AttributeError, RuntimeError):  # another version of PyTorch, or another processor
        return False
    return torch.equal(product, functional.linear(x, weight))  # whole numbers, so exact


class StepLayer(nn.Module):
    """A layer in a step of one unit, without gradients. It has a copy of the layer's parameters.

    Args:
        layer: one that is :meth:`plain`.
    """

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        own, cross, feedforward = layer.attention, layer.cross, layer.feedforward
        assert isinstance(own, Attention)
        weight = torch.cat([own.query.weight.detach(), own.key_value.weight.detach()])
        bias = torch.cat([own.query.bias.detach(), own.key_value.bias.detach()])
        self.own = _Attend(own)
        self.own_maps = _norm(layer.attention_norm), linear_map(weight, bias), _linear(own.out)
        self.cross = _Attend(cross) if isinstance(cross, Attention) else None
        if isinstance(cross, Attention):
            self.cross_maps = _norm(layer.cross_norm), _linear(cross.query), _linear(cross.out)
        self.feedforward = None
        if isinstance(feedforward, nn.Sequential):
            first, last = feedforward[0], feedforward[-1]
            self.feedforward = _norm(layer.feedforward_norm), _linear(first, layer.config.activation), _linear(last)

    @staticmethod
    def plain(layer: nn.Module, position: PositionModel) -> TypeGuard[Layer]:
        """Whether a layer has only the parts that are known here, in the order of pre-norm, and no hooks."""
        if not isinstance(layer, Layer) or not isinstance(layer.attention, Attention) or "sources" in position.sites:
            return False
        hooks = any(each._forward_hooks or each._forward_pre_hooks for each in layer.modules())
        linear = all(type(each) is nn.Linear for each in layer.modules() if isinstance(each, nn.Linear))
        ours = layer.messages is None and layer.attention.feature_map is None and layer.config.norm == "layer"
        return ours and layer.first and linear and not hooks

    def forward(
        self, x: Float[Tensor, "b d"], edges: Tensor | None, context: Context, site: Site
    ) -> tuple[Float[Tensor, "b d"], Tensor | None]:
        """Compute the next unit of each text; ``edges`` are returned unchanged."""
        norm, project, out = self.own_maps
        q, k, v = project(norm(x)).view(len(x), 3, self.own.heads, 1, -1).unbind(1)
        k, v = context.past.caches[site.layer].append(k, v)
        (terms,) = context.terms(site)
        x = x + out(self.own(q, k, v, terms, alike=context.given is not None))
        if self.cross is not None:
            norm, project, out = self.cross_maps
            k, v = context.past.source[site.layer]
            q = project(norm(x)).view(len(k), -1, self.cross.heads, k.shape[-1]).transpose(1, 2)  # texts of one source
            x = x + out(self.cross(q, k, v, context.past.reading or Terms(), alike=True))
        if self.feedforward is not None:
            norm, first, last = self.feedforward
            x = x + last(first(norm(x)))
        return x, edges


class _Attend:
    """Attention of the next units, called in each step.

    Terms are checked and a kernel is chosen in the first call, and again when the keys have doubled.

    Args:
        attention: the attention of the layer.
    """

    def __init__(self, attention: Attention) -> None:
        self.heads, self.kernel = attention.heads, attention.kernel
        self.chosen: tuple[Compute, int] | None = None

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, terms: Terms, alike: bool) -> Float[Tensor, "bn hd"]:
        """Attend from q (b, h, n, d) to k and v (b, h, m, d).

        Args:
            q, k, v: of the next unit, and of all.
            terms: of the next unit.
            alike: whether all calls have terms of the same kind, for which one choice of kernel holds.
        """
        if alike and self.chosen is not None and k.shape[2] < self.chosen[1]:
            mixed = self.chosen[0](q, k, v, terms, 0.0)
        else:
            (b, h, n, d), m = q.shape, k.shape[2]
            kernel = choose(self.kernel, Call.of(terms, q, (b, h, n, m, d), 0.0, False))
            self.chosen = _sdpa if kernel.name == "sdpa" and _one_mask(terms) else kernel.compute, 2 * m
            mixed = attend(q, k, v, terms, self.kernel)
        return mixed.transpose(1, 2).reshape(q.shape[0] * q.shape[2], -1)


def _one_mask(terms: Terms) -> bool:
    """Whether terms are at most one dense bias or mask."""
    both = (*terms.bias, *terms.mask)
    return len(both) <= 1 and all(isinstance(each, Tensor) for each in both) and terms.used() <= {"bias", "mask"}


def _sdpa(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float) -> Tensor:
    """The kernel of this name, for terms of which :func:`_one_mask` is true."""
    both = (*terms.bias, *terms.mask)
    mask = both[0].expand(len(q), -1, -1, -1) if both and isinstance(both[0], Tensor) else None
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)


def _linear(module: nn.Module, after: After = "none") -> Linear:
    assert isinstance(module, nn.Linear)
    return linear_map(module.weight, module.bias, after)


def _norm(module: nn.Module | None) -> Linear:
    assert isinstance(module, nn.LayerNorm)
    shape, weight, bias = list(module.normalized_shape), module.weight.detach(), module.bias.detach()
    return partial(torch.layer_norm, normalized_shape=shape, weight=weight, bias=bias, eps=module.eps)


class Steps:
    """Rearranged weights and the terms of all positions, for steps of one unit without gradients.

    They are taken from the model at the first step. Like the keys and values in the caches, they do not follow later
    changes of its parameters.
    """

    def __init__(self) -> None:
        self._stack: Stack | None = None
        self._output: tuple[Tensor, Linear] | None = None
        self._terms: tuple[Positions, Sequence[_Rows] | None] | None = None

    def stack(self, stack: Stack) -> Stack:
        """The stack, with a :class:`StepLayer` for each layer that has only known parts."""
        if self._stack is None:
            each = [StepLayer(x) if StepLayer.plain(x, stack.position) else x for x in stack.layers]
            self._stack = copy.copy(stack)
            self._stack.__dict__["_modules"] = {**stack._modules, "layers": nn.ModuleList(each)}
        return self._stack

    def logits(self, hidden: Float[Tensor, "b n d"], weight: Float[Tensor, "v d"]) -> Float[Tensor, "b n v"]:
        """The products of hidden vectors and the vectors of a vocabulary."""
        if torch.is_grad_enabled() or hidden.shape[1] > 1:
            return functional.linear(hidden, weight)
        if self._output is None or self._output[0] is not weight:
            self._output = weight, linear_map(weight)
        return self._output[1](hidden)

    def terms(self, position: PositionModel, positions: Positions, place: int) -> list[Terms] | None:
        """The terms of each layer for the query at a place, taken from those of all positions.

        Args:
            position: the position model.
            positions: of the longest text that they are made for.
            place: of the query, whose keys are at 0..place.

        Returns:
            None if the model does more than add quantities of pairs from tables; then ask it in each step.
        """
        if self._terms is None or self._terms[0] is not positions:
            self._terms = positions, _of_all(position, positions)
        rows = self._terms[1]
        if rows is None:
            return None
        made = {row: row.at(place) for row in dict.fromkeys(rows)}
        return [made[row] for row in rows]


class _Rows:
    """The terms of one layer for all queries, read one query at a time.

    Args:
        terms: with quantities of pairs from tables only.
    """

    def __init__(self, terms: Terms) -> None:
        self.biases = [(each.local()[0].T.contiguous(), each.index) for each in _lookups(terms, "bias")]
        self.pairs = {name: _lookups(terms, name) for name in OF_PAIRS if name != "bias" and getattr(terms, name)}
        self.rest = Terms(act=terms.act, scale=terms.scale)

    def same(self, other: _Rows) -> bool:
        """Whether all rows are the same: biases from equal tables, and nothing else."""
        if self.pairs or other.pairs or self.rest.used() | other.rest.used():
            return False
        both = list(zip(self.biases, other.biases, strict=False))
        return len(self.biases) == len(other.biases) and all(a[1] is b[1] and torch.equal(a[0], b[0]) for a, b in both)

    def at(self, place: int) -> Terms:
        """The terms of the query at a place, whose keys are at 0..place."""
        row = slice(place, place + 1)
        given: dict[str, Any] = {name: tuple(x.queries(row) for x in each) for name, each in self.pairs.items()}
        biases = [table.index_select(1, _row(index, place))[None, :, None] for table, index in self.biases]
        return replace(self.rest, bias=(sum(biases[1:], biases[0]),) if biases else (), **given)


def _row(index: Tensor | Toeplitz, place: int) -> Tensor:
    """(place + 1,) the index of the query at a place, over the keys up to it."""
    if isinstance(index, Toeplitz):
        return index.diagonals[0, index.n - 1 - place : index.n].long()
    return index[0, place, : place + 1].long()


def _of_all(position: PositionModel, positions: Positions) -> list[_Rows] | None:
    """The terms of each layer for all queries, if their rows are the terms of single queries."""
    if not position.sites <= {"terms"} or position.own_attention:
        return None
    prepared = position.prepare(positions)
    found = [position.terms(prepared, Site(layer)) for layer in range(position.dims.layers)]
    if not all(map(_only_tables, found)):
        return None
    distinct: list[_Rows] = []
    for rows in map(_Rows, found):
        distinct.append(next((known for known in distinct if known.same(rows)), rows))
    return distinct


def _only_tables(terms: Terms) -> bool:
    """Whether the terms have quantities of pairs from tables of one text only."""
    pairs = [x for name in OF_PAIRS for x in getattr(terms, name)]
    alone = all(isinstance(x, Lookup) and len(x.rows) == x.index.shape[0] == 1 for x in pairs)
    return alone and terms.used() <= {*OF_PAIRS, "act", "scale"}


def _lookups(terms: Terms, name: str) -> tuple[Lookup, ...]:
    found: tuple[Lookup, ...] = getattr(terms, name)
    return found
