"""The layer of a decoder for one unit per text: what :class:`structpe.nn.layer.Layer` computes, in fewer operations.

For a few rows, starting operations takes longer than computing them. So there is one projection for queries, keys and
values, dropout is left out, weights are rearranged for few rows, and a kernel is not chosen in each step. Tests compare
it with the layer.
"""

from __future__ import annotations

from functools import partial
from typing import TypeGuard

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from structpe.attention import attend
from structpe.attention.base import Call, Compute, choose
from structpe.nn.attention import Attention
from structpe.nn.context import Context
from structpe.nn.layer import Layer
from structpe.nn.packed import After, Linear, linear_map
from structpe.positions import PositionModel, Site
from structpe.terms import Terms

__all__ = ["StepLayer"]


class StepLayer(nn.Module):
    """A layer in a step of one unit, without gradients. Its parameters are those of the layer when it is made.

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
        """Whether a layer has no other parts than those that are known here, in the order of pre-norm, and no hooks."""
        if not isinstance(layer, Layer) or not isinstance(layer.attention, Attention) or "sources" in position.sites:
            return False
        hooks = any(each._forward_hooks or each._forward_pre_hooks for each in layer.modules())
        linear = all(type(each) is nn.Linear for each in layer.modules() if isinstance(each, nn.Linear))
        ours = layer.messages is None and layer.attention.feature_map is None and layer.config.norm == "layer"
        return ours and layer.first and linear and not hooks

    def forward(
        self, x: Float[Tensor, "b d"], edges: Tensor | None, context: Context, site: Site
    ) -> tuple[Float[Tensor, "b d"], Tensor | None]:
        """The next unit of each text; ``edges`` are returned as they are."""
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
    """Attention of the next units, time after time.

    Terms are checked and a kernel is chosen in the first call, and when the keys have doubled.

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
            alike: whether all calls have terms of the same kind, so that what suits one suits the next.
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
    """Whether all that terms have is one dense bias or mask, or nothing."""
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
