"""Position models in the Vision Transformers of timm: patches are the nodes of a grid.

::

    vit = timm.create_model("vit_tiny_patch16_224", pretrained=True, dynamic_img_size=True)
    inject(vit, {"name": "swin", "window": (14, 14)})       # the numbers are part of the model
    vit(images)                                             # at first as the checkpoint computes it; images of any size

Class and register tokens have no place in the grid: what they attend to, and who attends to them, is left as it is.
timm is not imported: any model of the same form will do.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from structpe.adapters._injected import Injected, Start
from structpe.adapters._places import NONE, Places
from structpe.adapters._tokens import TokenPositions
from structpe.attention import attend
from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel, Site, build
from structpe.positions.build import Config
from structpe.terms import Terms
from structpe.transforms import grid

__all__ = ["dims", "eject", "inject"]

NAME = "structpe"
"""Of the submodule."""
HOOKS = "_structpe_hooks"


def inject(
    model: Any, position: PositionModel | Config, layers: Sequence[int] | None = None, start: Start = "zero"
) -> Injected:
    """Put a position model into the attention of a Vision Transformer, whose submodule ``structpe`` it becomes.

    It is asked in each layer, with the encodings of the grid of patches of the images that are given; a new size is
    encoded when it is first seen. It may act by anything but an attention of its own: by biases and vectors of pairs,
    rotations, masks, or on the patches that enter the layers. Rotations of the model's own come before.

    Args:
        model: with ``blocks``, each with an ``attn`` that calls ``scaled_dot_product_attention``; with ``patch_embed``
            and ``num_prefix_tokens``.
        position: built for :func:`dims`; or plain data of it.
        layers: numbers of the blocks; None for all.
        start: ``zero`` changes nothing at first; ``own`` starts with the numbers as they are.

    Raises:
        PositionError: the model has another form, or a position model already; the position model has other sizes or
            an attention of its own, or, with ``zero``, changes the model from the beginning.
    """
    if NAME in model._modules:
        raise PositionError("there is a position model already; give both as one, first + second, or eject it")
    needed, chosen = dims(model, layers), _numbers(model, layers)
    made = position if isinstance(position, PositionModel) else build(position, needed)
    if made.dims != needed:
        raise PositionError(
            f"position model {made.name!r} was built for {made.dims}, and the {type(model).__name__} needs {needed}"
        )
    if made.own_attention or "sources" in made.sites:
        raise PositionError(f"position model {made.name!r} replaces attention or its inputs; choose another")
    injected = Injected(made, "encoder", chosen, start)
    injected.train(model.training).to(next(model.parameters()).device)
    model.add_module(NAME, injected)
    model.__dict__[HOOKS] = _enter(model, _Images(model, injected), chosen)
    return injected


def eject(model: Any) -> None:
    """Take the position model out again."""
    for hook in model.__dict__.pop(HOOKS, []):
        hook.remove()
    for block in model.blocks:
        block.attn.__dict__.pop("forward", None)
    model._modules.pop(NAME, None)


def dims(model: Any, layers: Sequence[int] | None = None) -> Dims:
    """The sizes for which a position model must be built.

    Raises:
        PositionError: the model has another form, or not these layers.
    """
    blocks = getattr(model, "blocks", None)
    found: list[Any] = [getattr(block, "attn", None) for block in blocks or ()]
    whole = all(isinstance(getattr(model, name, None), kind) for name, kind in _PARTS.items())
    if not found or not whole or any(not _attends(each) for each in found):
        raise PositionError(
            f"{type(model).__name__} is no Vision Transformer of timm's form: patch_embed, num_prefix_tokens, and "
            f"blocks whose attn takes attn_mask and has num_heads"
        )
    return Dims(int(model.embed_dim), int(found[0].num_heads), len(_numbers(model, layers)))


_PARTS = {"patch_embed": nn.Module, "num_prefix_tokens": int, "embed_dim": int}


def _attends(attention: Any) -> bool:
    named = "attn_mask" in inspect.signature(attention.forward).parameters if attention is not None else False
    return named and isinstance(getattr(attention, "num_heads", None), int)


def _numbers(model: Any, layers: Sequence[int] | None) -> list[int]:
    count = len(model.blocks)
    chosen = list(range(count)) if layers is None else list(layers)
    if not chosen or any(not 0 <= each < count for each in chosen) or len(set(chosen)) < len(chosen):
        raise PositionError(f"layers are {chosen}; the model has blocks 0 to {count - 1}, each named once at most")
    return chosen


def _enter(model: Any, images: _Images, chosen: Sequence[int]) -> list[Any]:
    hooks = [model.patch_embed.register_forward_hook(images.begin)]
    for layer, number in enumerate(chosen):
        block = model.blocks[number]
        block.attn.forward = _Attention(images, layer, block.attn)
        if images.injected.position.sites & {"inputs", "layer"}:
            hooks.append(block.register_forward_pre_hook(_Before(images, layer)))
    return hooks


class _Images:
    """The grid of patches of the images of a pass.

    Args:
        model: the Vision Transformer.
        injected: the position model in it.
    """

    def __init__(self, model: Any, injected: Injected) -> None:
        self.model, self.injected = model, injected
        self.prefix = int(model.num_prefix_tokens)
        self.known: dict[tuple[int, ...], TokenPositions] = {}
        self.shape: tuple[int, ...] = ()
        self.prepared: Any = None

    def begin(self, patches: Any, _: Any, out: Tensor) -> None:
        """A hook of the embedding of patches: notes how many there are on each axis."""
        shape = out.shape[1:3] if out.ndim == 4 else patches.grid_size  # (b, height, width, d), or flat
        self.shape, self.prepared = tuple(map(int, shape)), None
        if self.shape not in self.known:
            image, tokens = grid(self.shape), [*[NONE] * self.prefix, *range(math.prod(self.shape))]
            self.known[self.shape] = TokenPositions.of([image], [tokens], self.injected.position.encodings)

    def ask(self, like: Tensor, tokens: int) -> tuple[TokenPositions, Any]:
        """The positions of the tokens, and what the position model prepares of them.

        Raises:
            PositionError: the tokens are not all patches of the images.
        """
        given = self.known[self.shape] = self.known[self.shape].to(like.device)
        if tokens != given.units.shape[1]:
            raise PositionError(
                f"a layer reads {tokens} tokens, and the images have {self.prefix} + {given.size}, a grid of "
                f"{self.shape}; a position model needs all patches, so set patch_drop_rate to 0"
            )
        if getattr(self.model, "grad_checkpointing", False):  # each layer is computed twice, on its own
            return given, self.injected.prepare(given, like)
        if self.prepared is None:
            self.prepared = self.injected.prepare(given, like)
        return given, self.prepared

    def terms(self, q: Tensor, layer: int) -> Terms:
        """The terms of the tokens."""
        given, prepared = self.ask(q, q.shape[2])
        terms = self.injected.terms(prepared, Site(layer, self.injected.training), q)
        units = given.units.expand(len(q) if terms.maps else 1, -1)
        return Places(units, units, given.size, 1).terms(terms)

    def change(self, x: Tensor, layer: int) -> Tensor:
        """The tokens as a layer sees them."""
        _, prepared = self.ask(x, x.shape[1])
        changed = self.injected.change(x[:, self.prefix :], prepared, Site(layer, self.injected.training))
        return torch.cat([x[:, : self.prefix], changed.to(x.dtype)], dim=1)


class _Before:
    """A hook of a block.

    Args:
        images: of the pass.
        layer: number of the layer among those that the position model enters.
    """

    def __init__(self, images: _Images, layer: int) -> None:
        self.images, self.layer = images, layer

    def __call__(self, _: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self.images.change(given[0], self.layer), *given[1:])


class _Attention:
    """The ``forward`` of an attention, in which scores, keys and values are those of the position model.

    Args:
        images: of the pass.
        layer: number of the layer among those that the position model enters.
        attention: the module.
    """

    def __init__(self, images: _Images, layer: int, attention: Any) -> None:
        self.images, self.layer, self.attention = images, layer, attention

    def __call__(self, *given: Any, **named: Any) -> Any:
        with _Attending(lambda q: self.images.terms(q, self.layer)) as calls:
            out = type(self.attention).forward(self.attention, *given, **named)
        if calls.count != 1:
            raise PositionError(
                f"{type(self.attention).__name__} called scaled_dot_product_attention {calls.count} times, and a "
                f"position model enters at one call; set fused_attn = True"
            )
        return out


class _Attending(TorchFunctionMode):
    """In this context ``scaled_dot_product_attention`` is :func:`structpe.attend` with further terms.

    Args:
        terms: of the queries.
    """

    def __init__(self, terms: Callable[[Tensor], Terms]) -> None:
        super().__init__()
        self.terms, self.count = terms, 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not scaled_dot_product_attention:
            return func(*args, **(kwargs or {}))
        self.count += 1
        return self._attend(*args, **(kwargs or {}))

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        **others: Any,
    ) -> Tensor:
        if lost := {name: each for name, each in others.items() if each}:
            raise PositionError(f"attention is called with {lost}, which a position model cannot take; leave it out")
        scaled = 1.0 if scale is None else scale * math.sqrt(query.shape[-1])
        terms = self.terms(query) + Terms(causal=is_causal, scale=scaled)
        if attn_mask is not None:
            mask = attn_mask.view(*[1] * (4 - attn_mask.ndim), *attn_mask.shape)
            terms += Terms(mask=(mask,)) if mask.dtype == torch.bool else Terms(bias=(mask,))
        return attend(query, key, value, terms, dropout=dropout_p)
