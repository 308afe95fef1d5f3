"""Attentions of other libraries that project queries, keys and values themselves, computed by :func:`structpe.attend`.

They are ``nn.MultiheadAttention``, also inside PyTorch's Transformers and PyG's ``GPSConv``, and DGL's ``BiasedMHA``.
The weights are those of the module. A pass without positions is computed by the module itself.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from structpe.adapters._injection import Begin, Host, Injected, Layers, Pass, Seat, running
from structpe.adapters._passes import Altered, Frozen
from structpe.attention import attend, weights
from structpe.errors import PositionError
from structpe.positions import Dims, Sources
from structpe.terms import Terms

__all__ = ["AttentionHost", "Biased", "Multihead", "OfLayer"]


class Projecting(ABC):
    """The ``forward`` of an attention with the terms of a position model.

    Args:
        host: the model.
        seat: the place of the position model.
        attention: the module.
    """

    dropout: float

    def __init__(self, host: Host, seat: Seat, attention: Any) -> None:
        self.host, self.seat, self.attention = host, seat, attention

    @abstractmethod
    def projected(self, sources: Sources) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (b, n, d), keys and values (b, m, d)."""

    def mixed(
        self, passing: Pass, sources: Sources, extra: Terms, need_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """The output (b, n, d) and, if asked for, the weights (b, h, n, m)."""
        seat, own = self.seat, self.attention
        x = sources.query
        _check(x, sources.key, seat.injected.where == "cross")
        dropout = self.dropout if own.training else 0.0
        if seat.replaces:
            if need_weights:
                raise PositionError(
                    f"position model {seat.injected.position.name!r} has its own attention, which does not say its "
                    f"weights; call with need_weights=False"
                )
            return seat.attend(passing, x, extra, dropout, own.training), None
        sources = seat.sources(passing, sources, own.training)
        projected = self.projected(sources)
        q, k, v = (x.reshape(*x.shape[:2], own.num_heads, -1).transpose(1, 2) for x in projected)
        terms = seat.terms(passing, q, k.shape[2], own.training) + extra
        out = own.out_proj(attend(q, k, v, terms, dropout=dropout).transpose(1, 2).flatten(2))
        return out, weights(q, k, terms) if need_weights else None


def _check(x: Tensor, keys: Tensor, cross: bool) -> None:
    """Check that what attends is a padded batch that attends to itself, or in cross-attention to another one."""
    if x.is_nested:
        raise PositionError("the input is a nested tensor; pad it, torch.nested.to_padded_tensor(x, 0.0)")
    if x.ndim != 3:
        raise PositionError(f"positions are of a batch; the input has {x.ndim} axes and needs 3")
    if x.shape[:2] != keys.shape[:2] and not cross:
        raise PositionError(
            f"positions are of tokens that attend to each other; there are {x.shape[1]} queries, {keys.shape[1]} keys"
        )


CARRIED = "_structpe_carried"
"""The mark on the mask of a layer of PyTorch with the pass, which the layer also has when it is computed again."""


@dataclass(frozen=True)
class Carried:
    """What a layer of PyTorch hands on to its attention.

    Attributes:
        passing: the pass.
        mask, padding: the masks that the layer was called with.
    """

    passing: Pass
    mask: Tensor | None
    padding: Tensor | None


class Multihead(Projecting):
    """The ``forward`` of an ``nn.MultiheadAttention``."""

    @property
    def dropout(self) -> float:  # type: ignore[override]
        """Probability that an attention weight is dropped in training."""
        return float(self.attention.dropout)

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend; arguments as for the module, of which ``is_causal`` only repeats what the mask says."""
        own, carried = self.attention, getattr(attn_mask, CARRIED, None)
        if carried is not None:
            attn_mask, key_padding_mask = carried.mask, carried.padding
        passing = running(self.host, self.seat.injected) if carried is None else carried.passing
        if passing.without(self.seat.injected):
            return type(own).forward(  # type: ignore[no-any-return]
                own, query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal
            )
        given = (
            [query, key, value]
            if own.batch_first or query.ndim != 3
            else [x.transpose(0, 1) for x in (query, key, value)]
        )
        extra = _masks(attn_mask, key_padding_mask, len(given[0]))
        out, found = self.mixed(passing, Sources(*given), extra, need_weights)
        if found is not None and average_attn_weights:
            found = found.mean(1)
        return (out if own.batch_first else out.transpose(0, 1)), found

    def projected(self, sources: Sources) -> tuple[Tensor, Tensor, Tensor]:
        own = self.attention
        each = (
            own.in_proj_weight.chunk(3)
            if own.in_proj_weight is not None
            else (own.q_proj_weight, own.k_proj_weight, own.v_proj_weight)
        )
        biases = (None,) * 3 if own.in_proj_bias is None else own.in_proj_bias.chunk(3)
        given = sources.query, sources.key, sources.value
        q, k, v = (linear(x, weight, bias) for x, weight, bias in zip(given, each, biases, strict=True))
        return q, k, v


def _masks(mask: Tensor | None, padding: Tensor | None, rows: int) -> Terms:
    """The terms of PyTorch's masks: bool, True for forbidden pairs, or added to scores."""
    terms = Terms()
    if mask is not None:
        terms += _mask(mask.reshape(rows, -1, *mask.shape[1:]) if mask.ndim == 3 else mask[None, None])
    return terms if padding is None else terms + _mask(padding[:, None, None])


def _mask(given: Tensor) -> Terms:
    """The terms of a mask; layers of PyTorch make numbers, -inf where pairs are forbidden, of a bool one."""
    if given.dtype == torch.bool:
        return Terms(mask=(~given,))
    allowed = given > -math.inf
    finite = given.masked_fill(~allowed, 0.0)
    mask = Terms(mask=(allowed,))
    known = not torch.compiler.is_compiling() and given.device.type == "cpu"
    return mask if known and not finite.any() else mask + Terms(bias=(finite,))


class Biased(Projecting):
    """The ``forward`` of a ``BiasedMHA`` of DGL."""

    @property
    def dropout(self) -> float:  # type: ignore[override]
        """Probability that an attention weight is dropped in training."""
        return float(self.attention.dropout.p)

    def __call__(self, ndata: Tensor, attn_bias: Tensor | None = None, attn_mask: Tensor | None = None) -> Tensor:
        """Attend; arguments as for the module."""
        passing = running(self.host, self.seat.injected)
        if passing.without(self.seat.injected):
            own: Tensor = type(self.attention).forward(self.attention, ndata, attn_bias, attn_mask)
            return own
        extra = Terms() if attn_mask is None else _mask(attn_mask.bool()[:, None])
        if attn_bias is not None:
            heads = attn_bias.permute(0, 3, 1, 2)
            extra += Terms(bias=(heads,)) if self.attention.attn_bias_type == "add" else Terms(gate=(heads,))
        return self.mixed(passing, Sources(ndata, ndata, ndata), extra)[0]

    def projected(self, sources: Sources) -> tuple[Tensor, Tensor, Tensor]:
        own = self.attention
        return own.q_proj(sources.query), own.k_proj(sources.key), own.v_proj(sources.value)


class OfLayer:
    """A hook of a layer that changes the vectors (b, n, d) that enter it.

    Args:
        host: the model.
        seat: the place of the position model.
        names: of the layer's arguments, for a layer of PyTorch, which then carries the pass; else none.
        batch_first: whether the batch is the first axis.
    """

    def __init__(self, host: Host, seat: Seat, names: Sequence[str] = (), batch_first: bool = True) -> None:
        self.host, self.seat, self.names, self.batch_first = host, seat, names, batch_first

    def __call__(self, layer: Any, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        passing = self.host.passes.known()
        if passing is None and layer is not self.host.model and self.names:
            raise PositionError(
                "a layer of this encoder is called by itself, where it knows no positions. Call the encoder; and if "
                "its layers are computed again for gradients (checkpointing), wrap them before inject"
            )
        passing = running(self.host, self.seat.injected)
        if passing.without(self.seat.injected):
            return given, named
        if not self.names:
            return (self._changed(passing, given[0], layer), *given[1:]), named
        x, mask, padding = self.names
        named = {**dict(zip(self.names, given, strict=False)), **named, "is_causal": False}
        source: Tensor = named.pop(x)
        carrier = source.new_zeros(())
        setattr(carrier, CARRIED, Carried(passing, named.get(mask), named.get(padding)))
        return (self._changed(passing, source, layer),), {**named, mask: carrier, padding: None}

    def _changed(self, passing: Pass, x: Tensor, layer: Any) -> Tensor:
        if not self.seat.injected.position.sites & {"inputs", "layer"}:
            return x
        if self.batch_first or x.ndim != 3:
            return self.seat.change(passing, x, 0, layer.training)
        return self.seat.change(passing, x.transpose(0, 1), 0, layer.training).transpose(0, 1)


class AttentionHost(Host):
    """A model whose attentions project by themselves. A subclass finds them."""

    forward: type[Any] = Multihead

    def dims(self, found: Layers) -> Dims:
        """The sizes of a position model for these layers."""
        if any(getattr(each, "bias_k", None) is not None or getattr(each, "add_zero_attn", False) for _, each in found):
            raise PositionError(
                "an attention with add_bias_kv or add_zero_attn attends to keys that are no tokens; build it without"
            )
        sizes = {self.size(attention) for _, attention in found}
        if len(sizes) > 1:
            raise PositionError(
                f"the layers have (width, heads) {', '.join(map(str, sorted(sizes)))}; choose layers= of one size"
            )
        return Dims(*sizes.pop(), len(found))

    def size(self, attention: Any) -> tuple[int, int]:
        """Width and heads of an attention."""
        return int(attention.embed_dim), int(attention.num_heads)

    def enter(self, injected: Injected, found: Layers) -> list[Any]:
        """Let layers ask an injected model; return what was changed."""
        begin = Begin(self, injected)
        made: list[Any] = [self.model.register_forward_pre_hook(begin, with_kwargs=True)]
        made.append(self.model.register_forward_hook(begin.end, always_call=True))
        for number, (layer, attention) in enumerate(found):
            seat = Seat(injected, number)
            made.append(Altered(attention, "forward", self.forward(self, seat, attention)))
            if seat.replaces:
                made += [Frozen(each) for each in attention.parameters() if each.requires_grad]
            if (hook := self.hook(seat, layer, attention)) is not None:
                made.append(layer.register_forward_pre_hook(hook, with_kwargs=True))
        return made

    def hook(self, seat: Seat, layer: Any, attention: Any) -> OfLayer | None:
        """The hook of a layer; None if only its attention is known."""
        return None if layer is attention else OfLayer(self, seat)
