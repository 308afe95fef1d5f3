"""Position models with PyTorch's own attention and Transformers.

::

    masks = additive_masks(position, positions, present)             # (b, h, n, n) for each layer
    scaled_dot_product_attention(q, k, v, attn_mask=masks[0])
    nn.MultiheadAttention(64, 4, batch_first=True)(x, x, x, attn_mask=masks[0].flatten(0, 1))

    inject(encoder, position)                                        # an nn.TransformerEncoder, or one layer
    encoder(x, structpe=positions, src_key_padding_mask=~present)

    flex_attention(q, k, v, **flex(q, k, terms))                     # tables are read pair by pair
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from structpe.adapters._passes import HOOKS, NAME, Passes, added, check_additive, enter, leave, written, written_for
from structpe.attention.flex import block_mask, kernel_options, modifications
from structpe.errors import PositionError, UnsupportedTerm
from structpe.positions import Dims, PositionModel, Positions, Site
from structpe.positions.build import Config, as_model, check_model
from structpe.terms import Terms

__all__ = ["additive_masks", "eject", "flex", "inject"]


def additive_masks(
    position: PositionModel,
    positions: Positions,
    present: Bool[Tensor, "b n"] | None = None,
    causal: bool = False,
    training: bool = False,
) -> list[Float[Tensor, "b h n n"]]:
    """The additive attention mask of each layer: what the position model adds to scores, and -inf for forbidden pairs.

    Use it as ``attn_mask`` of ``scaled_dot_product_attention``; for ``nn.MultiheadAttention`` call ``.flatten(0, 1)``,
    and do not give ``key_padding_mask``. A query that may attend to nothing, such as padding, has a row of zeros, for
    which PyTorch would return NaN. Layers with the same terms share a tensor.

    Args:
        position: the position model. The masks have its dtype, or float32 if it has no parameters. PyTorch needs the
            dtype of the queries, but does not always check it: results for float64 queries and a float32 mask may be
            wrong.
        positions: the values of its encodings, from :func:`structpe.encode`.
        present: which places hold a unit; by default those of the positions.
        causal: whether units attend only to themselves and to earlier ones.
        training: whether this is a training step, in which some models are random.

    Raises:
        UnsupportedTerm: the model has terms that do not add to scores.
        PositionError: the number of units is unknown, as there are only listed pairs and no ``present``.
    """
    check_model(position, "additive_masks")
    prepared = position.prepare(positions)
    layers = [position.terms(prepared, Site(layer, training)) for layer in range(position.dims.layers)]
    like = next((each.detach() for each in (*position.parameters(), *position.buffers())), torch.zeros(()))
    return written(layers, like, position.dims.heads, positions, present, causal)


def inject(module: nn.Module, position: PositionModel | Config) -> PositionModel:
    """Add a position model to PyTorch's ``nn.TransformerEncoder``, a layer of it, or ``nn.MultiheadAttention``.

    The position model becomes the submodule ``structpe``. Calls take the positions as ``structpe=``, or None for a call
    without positions. Masks and padding of a call still apply. PyTorch's fast path for inference is disabled, as its
    results with such masks are NaN or otherwise wrong.

    Args:
        module: the module, with ``batch_first`` or not.
        position: a position model built for the width, the heads and the number of layers of the module; or plain data
            for :func:`structpe.build`. Its ``inputs`` act on the input of the encoder or layer.

    Raises:
        PositionError: the module is of another class, has a position model, or other sizes; or the position model has
            its own attention, or changes the inputs of the projections.
        UnsupportedTerm: the position model has terms that do not add to scores.
    """
    layers = _layers(module)
    attending = [layer if isinstance(layer, nn.MultiheadAttention) else layer.self_attn for layer in layers]
    first: Any = attending[0]
    needed = (first.embed_dim, first.num_heads, len(layers))
    position = as_model(position, Dims(*needed))
    if (position.dims.width, position.dims.heads, position.dims.layers) != needed:
        raise PositionError(
            f"position model {position.name!r} was built for {position.dims}; the {type(module).__name__} has width "
            f"{needed[0]}, {needed[1]} heads and {needed[2]} layers"
        )
    if position.own_attention or "sources" in position.sites:
        raise PositionError(f"position model {position.name!r} replaces attention or its inputs; choose another")
    if isinstance(module, nn.MultiheadAttention) and position.sites - {"terms"}:
        raise PositionError(f"position model {position.name!r} acts on the input of a layer, not of an attention")
    if NAME in module._modules:
        raise PositionError("there is a position model already; give both as one, first + second, or eject it")
    check_additive(position)
    enter(module, position)
    whole = _Whole(position, bool(first.batch_first), [layer is module for layer in layers] == [True])
    hooks = [module.register_forward_pre_hook(whole, with_kwargs=True)]
    hooks.append(module.register_forward_hook(whole.end, always_call=True))
    if not whole.alone:
        for number, layer in enumerate(layers):
            hooks.append(layer.register_forward_pre_hook(_Part(whole, number), with_kwargs=True))
    for attention in attending:
        # Any hook, even without effect, disables PyTorch's fast path.
        hooks.append(attention.register_forward_pre_hook(_nothing))
    if isinstance(module, nn.TransformerEncoder):
        module.use_nested_tensor = False  # in nested tensors, layers see no padding
    module.__dict__[HOOKS] = hooks
    return position


def eject(module: nn.Module) -> None:
    """Remove the position model from a module."""
    leave(module)


def flex(q: Float[Tensor, "b h n d"], k: Float[Tensor, "b h m d"], terms: Terms) -> dict[str, Any]:
    """Arguments of PyTorch's ``flex_attention``: ``score_mod``, ``block_mask``, ``scale`` and ``kernel_options``.

    Tables are read pair by pair, so no tensor has an entry for each pair, and blocks of forbidden pairs are skipped.
    The kernel ``flex`` of :func:`structpe.attend` uses these, and also computes the other terms.

    Args:
        q, k: queries and keys, after ``maps`` if there are any.
        terms: the terms of a layer: biases, factors, gates, vectors at keys and queries, masks and listed pairs.

    Raises:
        UnsupportedTerm: ``flex_attention`` does not support one of the terms.
    """
    if lost := terms.used() & {"maps", "value", "product", "feature_map", "projection"}:
        raise UnsupportedTerm(
            f"flex_attention does not compute {', '.join(sorted(lost))}; call structpe.attend, or, for maps, apply "
            f"them first: for change in terms.maps: q, k = change(q, k)"
        )
    score_mod, masks = modifications(q, k, terms, captured=True)
    blocks = None if masks is None else block_mask(masks, q.shape[2], k.shape[2])
    scale, options = terms.scale / math.sqrt(q.shape[-1]), kernel_options(terms, q.dtype, captured=True)
    return {"score_mod": score_mod, "block_mask": blocks, "scale": scale, "kernel_options": options}


@dataclass(frozen=True)
class _Known:
    """The state of a pass.

    Attributes:
        masks: the mask of each layer; None for a pass without positions.
        prepared: the result of the position model's ``prepare``.
    """

    masks: list[Tensor] | None = None
    prepared: Any = None


class _Whole:
    """A hook of an encoder, a layer or an attention that makes the masks of all layers, once per call.

    Args:
        position: the position model.
        batch_first: whether the batch is the first axis.
        alone: whether the module is a single layer.
    """

    def __init__(self, position: PositionModel, batch_first: bool, alone: bool) -> None:
        self.position, self.batch_first, self.alone = position, batch_first, alone
        self.passes: Passes[_Known] = Passes()

    def __call__(self, module: Any, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if NAME not in named:
            raise PositionError(
                f"this {type(module).__name__} has a position model; call it with structpe=structpe.encode(structures, "
                f"position.encodings), or structpe=None for a call without"
            )
        named = dict(named)
        positions = named.pop(NAME)
        if positions is None:
            self.passes.begin(_Known())
            return given, named
        if not isinstance(positions, Positions):
            raise PositionError(f"structpe takes the Positions of structpe.encode; given is {type(positions).__name__}")
        x: Tensor = given[0] if given else named["query" if "query" in named else "src"]
        if x.ndim != 3:
            raise PositionError(f"positions are of a batch; the input has {x.ndim} axes and needs 3")
        if x.is_nested:
            raise PositionError("the input is a nested tensor; pad it, torch.nested.to_padded_tensor(x, 0.0)")
        positions = positions.to(x.device, x.dtype)
        prepared = self.position.prepare(positions)
        layers = [self.position.terms(prepared, Site(i, module.training)) for i in range(self.position.dims.layers)]
        b, n = x.shape[:2] if self.batch_first else (x.shape[1], x.shape[0])
        masks = written_for(layers, x.new_empty(b, self.position.dims.heads, n, 0), positions.present)
        self.passes.begin(_Known(masks, prepared))
        if isinstance(module, nn.MultiheadAttention):
            named = {**dict(zip(_ATTENTION[3:], given[3:], strict=False)), **named, "is_causal": False}
            return given[:3], added(named, masks[0], "attn_mask", "key_padding_mask")
        given, named = self.changed(given, named, lambda rows: self.position.inputs(rows, prepared))
        return self.part(0, given, named) if self.alone else (given, named)

    def end(self, *_: Any) -> None:
        """End the pass, after each call."""
        self.passes.end()

    def part(self, number: int, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The arguments of a layer.

        Raises:
            PositionError: the layer is called outside of the encoder.
        """
        if (known := self.passes.known()) is None:
            raise PositionError(
                "a layer of this encoder is called by itself, where it knows no positions. Call the encoder; and if "
                "its layers are computed again for gradients (checkpointing), wrap them before inject"
            )
        if known.masks is None:
            return given, named
        site, prepared = Site(number, self.position.training), known.prepared
        given, named = self.changed(given, named, lambda rows: self.position.layer(rows, prepared, site))
        names = ("src", "src_mask", "src_key_padding_mask")
        named = {**dict(zip(names, given, strict=False)), **named}
        x = named.pop("src")
        return (x,), added({**named, "is_causal": False}, known.masks[number], *names[1:])

    def changed(
        self, given: tuple[Any, ...], named: dict[str, Any], change: Callable[[Tensor], Tensor]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with a changed input."""
        x: Tensor = given[0] if given else named["src"]
        x = change(x) if self.batch_first else change(x.transpose(0, 1)).transpose(0, 1)
        return ((x, *given[1:]), named) if given else (given, {**named, "src": x})


_ATTENTION = ("query", "key", "value", "key_padding_mask", "need_weights", "attn_mask")
"""The arguments of ``nn.MultiheadAttention``, in order."""


class _Part:
    """A hook of a layer of an encoder.

    Args:
        whole: the hook of the encoder.
        number: of the layer.
    """

    def __init__(self, whole: _Whole, number: int) -> None:
        self.whole, self.number = whole, number

    def __call__(self, _: Any, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return self.whole.part(self.number, given, named)


def _nothing(*_: Any) -> None:
    return None


def _layers(module: Any) -> list[Any]:
    """The layers of a module.

    Raises:
        PositionError: the module is of another class.
    """
    if isinstance(module, nn.TransformerEncoder):
        return list(module.layers)
    if isinstance(module, nn.TransformerEncoderLayer | nn.MultiheadAttention):
        return [module]
    raise PositionError(
        f"a {type(module).__name__} is not known; known are nn.TransformerEncoder, nn.TransformerEncoderLayer and "
        f"nn.MultiheadAttention. additive_masks makes the masks for any other attention"
    )
