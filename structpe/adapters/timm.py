"""Position models in the Vision Transformers of timm: patches are the nodes of a grid.

::

    vit = timm.create_model("vit_tiny_patch16_224", pretrained=True, dynamic_img_size=True)
    structpe.inject(vit, {"name": "swin", "window": (14, 14)})      # its parameters are part of the model
    vit(images)                                             # the same result before training; images of any size

Class and register tokens have no place in the grid, and their pairs do not change. timm is not imported: any model of
the same form will do.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from structpe.adapters._injection import Host, Injected, Layers, Where, constant
from structpe.adapters._passes import Altered, Frozen, Passes, Zeros
from structpe.adapters._tokens import NONE, TokenPositions, TokenUnits
from structpe.attention import attend
from structpe.errors import PositionError
from structpe.positions import Dims, Site
from structpe.structure import Structure
from structpe.terms import Terms
from structpe.transforms import grid

__all__ = ["TimmHost"]


class TimmHost(Host):
    """A Vision Transformer of timm's form, whose images say themselves which grid their patches are.

    It has ``patch_embed``, ``num_prefix_tokens``, ``embed_dim`` and ``blocks``, each with an ``attn`` that calls
    ``scaled_dot_product_attention``. A new size of images is encoded when it is first seen.
    """

    takes = frozenset({"vectors", "inputs", "layer"})

    def layers(self, where: Where) -> Layers:
        """The blocks, each with its attention."""
        model = self.model
        found: list[Any] = [(each, getattr(each, "attn", None)) for each in getattr(model, "blocks", None) or ()]
        whole = all(isinstance(getattr(model, name, None), kind) for name, kind in _PARTS.items())
        if not found or not whole or any(not _attends(each) for _, each in found):
            raise PositionError(
                f"{type(model).__name__} is not a Vision Transformer of timm's form: patch_embed, num_prefix_tokens, "
                f"and blocks whose attn takes attn_mask and has num_heads"
            )
        return found

    def dims(self, found: Layers) -> Dims:
        """The sizes of a position model for these blocks."""
        attention: Any = found[0][1]
        return Dims(int(self.model.embed_dim), int(attention.num_heads), len(found))

    def samples(self, paths: bool) -> list[Structure]:
        """A grid of patches."""
        if paths:
            raise PositionError(
                f"patches of {type(self.model).__name__} are nodes of a grid, and no path; leave out structures='path'"
            )
        return [grid((2, 2))]

    def given(self, structpe: Any, injected: Injected) -> Any:
        """Nothing: positions are those of the images."""
        raise PositionError(
            f"{type(self.model).__name__} reads the grid of its images; call it with images, and give no positions"
        )

    def replaced(self, where: Where, found: Layers, every: bool) -> list[Any] | None:
        """Take learned positions out, or the rotation (``rope``) of the blocks."""
        learned = self.model._parameters.get("pos_embed")
        rotates = [each for _, each in found if "rope" in inspect.signature(type(each).forward).parameters]
        if learned is None:
            return [] if rotates and getattr(self.model, "rope", None) is not None else None
        if not every:
            raise PositionError(
                f"the learned positions of {type(self.model).__name__} enter before all layers, and instead=True "
                f"would take them from layers without the position model; leave out layers"
            )
        hidden = Altered(self.model, "pos_embed", torch.zeros_like(learned))
        return [hidden, self.model.register_forward_pre_hook(Zeros("pos_embed")), Frozen(learned)]

    def enter(self, injected: Injected, found: Layers) -> list[Any]:
        """Let blocks ask an injected model; return what was changed."""
        model, images = self.model, _Images(self.model, injected)
        hooks: list[Any] = [model.patch_embed.register_forward_hook(images.begin)]
        hooks.append(model.register_forward_hook(images.end, always_call=True))
        for layer, (block, attention) in enumerate(found):
            before = _Before(images, layer)
            hooks.append(Altered(attention, "forward", _Attention(images, layer, attention)))
            hooks.append(block.register_forward_pre_hook(before))
            hooks.append(block.register_forward_hook(before.end, always_call=True))
        return hooks


_PARTS = {"patch_embed": nn.Module, "num_prefix_tokens": int, "embed_dim": int}


def _attends(attention: Any) -> bool:
    named = "attn_mask" in inspect.signature(type(attention).forward).parameters if attention is not None else False
    return named and isinstance(getattr(attention, "num_heads", None), int)


@dataclass
class _Grid:
    """The state of a pass.

    Attributes:
        shape: shape of the grid of patches.
        alone: whether a single block is recomputed, for gradients.
        prepared: the result of the position model's ``prepare``; None before.
    """

    shape: tuple[int, ...]
    alone: bool = False
    prepared: Any = None


class _Images:
    """The encoded grids of patches, and the grid of the current pass.

    Args:
        model: the Vision Transformer.
        injected: the position model in it.
    """

    def __init__(self, model: Any, injected: Injected) -> None:
        self.model, self.injected = model, injected
        self.prefix = int(model.num_prefix_tokens)
        self.known: dict[tuple[int, ...], TokenPositions] = {}
        self.passes: Passes[_Grid] = Passes()

    def begin(self, patches: Any, _: Any, out: Tensor) -> None:
        """A hook of the patch embedding, which begins a pass with the shape of the grid."""
        shape = out.shape[1:3] if out.ndim == 4 else patches.grid_size  # (b, height, width, d), or flat
        self.passes.end()  # the last pass, if it did not end, as with forward_features
        self.passes.begin(_Grid(tuple(map(operator.index, shape))))  # torch.compile must not make it symbolic

    def end(self, *_: Any) -> None:
        """A hook of the model, which ends the pass."""
        self.passes.end()

    def again(self, x: Tensor, tokens: int) -> _Grid:
        """The grid of the input of a block that is recomputed.

        Raises:
            PositionError: the input is not marked, and grids of several shapes have this number of patches.
        """
        shape = getattr(x, _SHAPE, None)
        fitting = [each for each, known in self.known.items() if known.units.shape[1] == tokens]
        if shape is None and len(fitting) != 1:
            raise PositionError(
                f"a block with {tokens} tokens is computed outside of a pass of its model, and there were images of "
                f"{len(fitting)} forms with as many; call the model, and checkpoint blocks with use_reentrant=False"
            )
        return _Grid(shape or fitting[0], alone=True)

    def positions(self, shape: tuple[int, ...], like: Tensor) -> TokenPositions:
        """The positions of the tokens of a grid, encoded once."""
        self._encode(shape)
        found = self.known[shape].to(like.device)
        if not torch.compiler.is_compiling():
            self.known[shape] = found
        return found

    @constant
    def _encode(self, shape: tuple[int, ...]) -> Tensor:
        """Encode a grid. In a compiled model this runs once per shape, and is not traced."""
        if shape not in self.known:
            tokens = [*[NONE] * self.prefix, *range(math.prod(shape))]
            self.known[shape] = TokenPositions.of([grid(shape)], [tokens], self.injected.position.encodings)
        return torch.empty(0)  # tracing needs a tensor

    def ask(self, like: Tensor, tokens: int) -> tuple[TokenPositions, Any]:
        """The positions of the tokens, and the result of the position model's ``prepare``.

        Raises:
            PositionError: the tokens are not all patches of the images.
        """
        grid = self.passes.known() or self.again(like, tokens)
        given = self.positions(grid.shape, like)
        if tokens != given.units.shape[1]:
            raise PositionError(
                f"a layer reads {tokens} tokens, and the images have {self.prefix} + {given.size}, a grid of "
                f"{grid.shape}; a position model needs all patches, so set patch_drop_rate to 0"
            )
        if self.checkpointed() or torch.compiler.is_compiling():  # each layer is recomputed independently
            return given, self.injected.prepare(given.positions, like)
        if grid.prepared is None:
            grid.prepared = self.injected.prepare(given.positions, like)
        return given, grid.prepared

    def checkpointed(self) -> bool:
        """Whether blocks are recomputed for gradients."""
        return bool(getattr(self.model, "grad_checkpointing", False)) and not torch.compiler.is_compiling()

    def terms(self, q: Tensor, layer: int) -> Terms:
        """The terms of the tokens."""
        given, prepared = self.ask(q, q.shape[2])
        terms = self.injected.terms(prepared, Site(layer, self.injected.training), q)
        units = given.units.expand(len(q) if terms.maps else 1, -1)
        return TokenUnits(units, units, given.size, 1).terms(terms)

    def change(self, x: Tensor, layer: int) -> Tensor:
        """The tokens as a layer sees them."""
        _, prepared = self.ask(x, x.shape[1])
        changed = self.injected.change(x[:, self.prefix :], prepared, Site(layer, self.injected.training), 1)
        return torch.cat([x[:, : self.prefix], changed.to(x.dtype)], dim=1)


_SHAPE = "_structpe_shape"
"""The mark on the input of a checkpointed block, which it still has when the block is recomputed."""


class _Before:
    """A hook of a block.

    Args:
        images: the grids.
        layer: index of the layer among those of the position model.
    """

    def __init__(self, images: _Images, layer: int) -> None:
        self.images, self.layer = images, layer

    def __call__(self, _: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
        images, x = self.images, given[0]
        if (grid := images.passes.known()) is None:
            images.passes.begin(images.again(x, x.shape[1]))
        elif images.checkpointed():
            setattr(x, _SHAPE, grid.shape)
        if not images.injected.position.sites & {"inputs", "layer"}:
            return given
        return (images.change(x, self.layer), *given[1:])

    def end(self, *_: Any) -> None:
        """End the pass of a block that was recomputed alone."""
        if (grid := self.images.passes.known()) is not None and grid.alone:
            self.images.passes.end()


class _Attention:
    """The ``forward`` of an attention with the terms of the position model.

    Args:
        images: the grids.
        layer: index of the layer among those of the position model.
        attention: the module.
    """

    def __init__(self, images: _Images, layer: int, attention: Any) -> None:
        self.images, self.layer, self.attention = images, layer, attention

    def __call__(self, *given: Any, **named: Any) -> Any:
        asked: list[Tensor] = []
        if self.images.injected.instead:
            given, named = self._unturned(given, named)
        with _Attending(self._asking(asked)):
            out = type(self.attention).forward(self.attention, *given, **named)
        if len(asked) != 1:
            raise PositionError(
                f"{type(self.attention).__name__} called scaled_dot_product_attention {len(asked)} times, and a "
                f"position model enters at one call; set fused_attn = True"
            )
        return out

    def _unturned(self, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments without a rotation."""
        names = list(inspect.signature(type(self.attention).forward).parameters)[1:]
        if "rope" not in names:
            return given, named
        return (), {**dict(zip(names, given, strict=False)), **named, "rope": None}

    def _asking(self, asked: list[Tensor]) -> Callable[[Tensor], Terms]:
        """A function of queries that returns their terms, and notes the queries in a list.

        A list, because torch.compile reads no attribute of a mode.
        """

        def terms(q: Tensor) -> Terms:
            asked.append(q)
            return self.images.terms(q, self.layer)

        return terms


class _Attending(TorchFunctionMode):
    """A context in which ``scaled_dot_product_attention`` is :func:`structpe.attend` with additional terms.

    Args:
        terms: a function of the queries.
    """

    def __init__(self, terms: Callable[[Tensor], Terms]) -> None:
        super().__init__()
        self.terms = terms

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not scaled_dot_product_attention:
            return func(*args, **(kwargs or {}))
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
