"""One way to put a position model into a model of another library, and to take it out again.

::

    handle = structpe.inject(model, "shaw")        # of Hugging Face, PyTorch, PyG, DGL or timm
    model(..., structpe=structures)                # or handle.reading(...), or a batch of handle.collator(tokenizer)
    structpe.eject(model)                          # the model of before
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch
from torch import nn

from structpe.adapters._injection import Host, Injected, Layers, Pass, Start, Structures, Where, check_trial
from structpe.adapters._passes import HOOKS, NAME, Altered, Frozen, undo
from structpe.encodings.base import Encoding
from structpe.errors import PositionError, listed
from structpe.positions import Dims, PositionModel
from structpe.positions.build import Config, as_model

__all__ = ["Handle", "dims", "eject", "inject", "injections"]


TRAINED = ("lora_", "adapter", "prompt_encoder", "modules_to_save", f"{NAME}.")
"""Parts of the names of parameters that ``freeze`` does not freeze: those of position models and adapters."""


class Handle:
    """A position model inside a model of another library.

    Attributes:
        model: the model.
        injected: the position model, and where it is.
    """

    def __init__(self, host: Host, injected: Injected) -> None:
        self.model, self.injected, self._host = host.model, injected, host

    def __repr__(self) -> str:
        """What was injected where, such as ``Handle(shaw in BertModel: encoder, layers 0, 1; start='zero')``."""
        own = self.injected
        layers = listed([str(each) for each in own.layers], most=12)
        names = [each.name for each in own.position] if own.position.name == "Sum" else [own.position.name]  # type: ignore[attr-defined]
        rest = f"start={own.start!r}" + (", structures='path'" if own.structures == "path" else "")
        rest += ", instead of its own" if own.instead else ""
        return f"Handle({' + '.join(names)} in {type(self.model).__name__}: {own.where}, layers {layers}; {rest})"

    @property
    def position(self) -> PositionModel:
        """The position model, whose parameters are part of the model."""
        return self.injected.position

    @property
    def encodings(self) -> tuple[Encoding, ...]:
        """What a batch must be encoded by: ``structpe.encode(structures, handle.encodings)``."""
        return self.position.encodings

    @contextmanager
    def reading(self, given: Any) -> Iterator[None]:
        """A context for passes over a batch, where the model is called without ``structpe``, as inside another one.

        Args:
            given: what the argument ``structpe`` takes: positions, structures, a batch of PyG or DGL; or None for
                passes without positions.
        """
        self._host.passes.begin(Pass(self._host.given(given, self.injected), {}, keeps=True))
        try:
            yield
        finally:
            self._host.passes.end()

    def collator(self, tokenizer: Any, **options: Any) -> Any:
        """A collator for a model of Hugging Face; options as in :class:`structpe.adapters.transformers.Collator`.

        Raises:
            PositionError: the model reads no tokens of a tokenizer.
        """
        made = getattr(self._host, "collator", None)
        if made is None:
            raise PositionError(
                f"{type(self.model).__name__} is no model of Hugging Face, and has no collator; give the argument "
                f"structpe=structpe.encode(structures, handle.encodings)"
            )
        return made(tokenizer, **options)


def inject(
    model: Any,
    position: PositionModel | Config,
    *,
    where: Where | None = None,
    layers: Sequence[int] | None = None,
    start: Start | None = None,
    instead: bool = False,
    freeze: bool = False,
    structures: Structures = "given",
) -> Handle:
    """Add a position model to the attention of a model of another library, as its submodule ``structpe``.

    A call of the model takes the positions as ``structpe=``: what :func:`structpe.encode` gives, or structures, whose
    i-th unit is the i-th token; or :class:`structpe.adapters.transformers.TokenPositions`, which say which unit each
    token is; or a batch of PyG or DGL; or None for a call without positions. A Vision Transformer needs none, as it
    reads the grid of its patches.

    Args:
        model: a model of Hugging Face; an ``nn.Transformer``, its encoder or decoder, a layer of these or an
            ``nn.MultiheadAttention``; a model with ``GPSConv`` or ``TransformerConv`` layers of PyG, or with
            ``BiasedMHA`` of DGL; or a Vision Transformer of timm's form.
        position: a name, or other plain data for :func:`structpe.build`; or a position model built for :func:`dims`.
        where: self-attention of the ``encoder`` or the ``decoder``, or ``cross``, the decoder's attention to the
            encoder, in which each token of the decoder has the position of the root; by default the first of these
            that the model has.
        layers: numbers of the layers; all by default.
        start: with ``zero`` the model computes the same before training, and all parameters of the position model have
            gradients; with ``own`` the position model is used as it is, such as with a table of T5. By default
            ``zero``, and with ``instead`` ``own``.
        instead: whether it replaces the positions of the model: its rotation (Llama, Qwen2, ModernBERT, EVA), relative
            biases (T5) or learned positions (BERT, BART, GPT-2, ViT). Tokens without a unit then have no position. A
            position model with its own attention replaces that of PyTorch, PyG or DGL.
        freeze: whether to train only position models and adapters such as LoRA.
        structures: with ``given`` a call has positions; with ``path`` each row is the path of its tokens, for position
            models of sequences, and a decoder can generate at any place.

    Raises:
        PositionError: the model is unknown, or already has a position model there; it has no such place or layer; the
            sizes differ; the position model acts in a way that this model cannot take, or cannot start at zero; or
            the model has no positions to be replaced.
        UnsupportedTerm: scores of ``TransformerConv`` are added to only, and the position model does more.
        MissingExtra: the library is not installed.
    """
    host = _host(model)
    where = host.places[0] if where is None else where
    every, numbers = _layers(host, where, layers)
    found = [every[number] for number in numbers]
    needed = host.dims(found)
    made = as_model(position, needed)
    _check(host, made, needed, where, instead)
    if where in injections(model):
        raise PositionError(f"the {where} has a position model already; give both as one, first + second, or eject it")
    start = ("own" if instead else "zero") if start is None else start
    _check_options(made, start, structures)
    like = next(iter(model.parameters()), torch.zeros(()))
    injected = Injected(made, where, numbers, start, structures, instead).to(like.device, like.dtype)
    check_trial(host, injected)
    replaced = _replaced(host, injected, found, len(found) == len(every)) if instead else []
    changes = model.__dict__.setdefault(HOOKS, [])
    changes += replaced
    if _PASSES not in model.__dict__:
        changes.append(Altered(model, _PASSES, host.passes))
    if NAME not in model._modules:
        model.add_module(NAME, nn.ModuleDict().train(model.training))
    model.get_submodule(NAME)[where] = injected.train(model.training)
    changes += host.enter(injected, found)
    if freeze:
        named = model.named_parameters()
        changes += [Frozen(each) for name, each in named if not any(part in name for part in TRAINED)]
    return Handle(host, injected)


def eject(model: nn.Module) -> None:
    """Remove all position models from a model, which then is as it was before, its numbers to the bit."""
    undo(model)


def dims(model: Any, where: Where | None = None, layers: Sequence[int] | None = None) -> Dims:
    """The sizes of a position model for these layers.

    Raises:
        PositionError: as in :func:`inject`.
    """
    host = _host(model)
    every, numbers = _layers(host, host.places[0] if where is None else where, layers)
    return host.dims([every[number] for number in numbers])


def injections(model: Any) -> dict[str, Injected]:
    """The injected models, by their place."""
    found: Any = model._modules.get(NAME)
    return {} if found is None else dict(found.items())


def _host(model: Any) -> Host:
    """The model as one of its library.

    Raises:
        PositionError: the model is of no known library.
    """
    if getattr(getattr(model, "config", None), "model_type", None) is not None:
        library, name = "transformers", "HuggingFaceHost"
    elif isinstance(model, _OF_PYTORCH):
        library, name = "pytorch", "PytorchHost"
    elif getattr(model, "patch_embed", None) is not None:
        library, name = "timm", "TimmHost"
    elif _has(model, "torch_geometric", "GPSConv", "TransformerConv"):
        library, name = "pyg", "PygHost"
    elif _has(model, "dgl", "BiasedMHA"):
        library, name = "dgl", "DglHost"
    else:
        raise PositionError(
            f"{type(model).__name__} is not known; known are models of Hugging Face, nn.Transformer, "
            f"nn.TransformerEncoder, nn.TransformerDecoder, their layers and nn.MultiheadAttention, models with "
            f"GPSConv or TransformerConv of PyG or BiasedMHA of DGL, and Vision Transformers of timm's form. If it "
            f"has such a part, inject into the part; for an attention of your own, "
            f"structpe.adapters.pytorch.additive_masks makes masks"
        )
    host: Host = getattr(import_module(f"structpe.adapters.{library}"), name)(model)
    host.passes = model.__dict__.get(_PASSES, host.passes)
    return host


_OF_PYTORCH = (
    nn.Transformer,
    nn.TransformerEncoder,
    nn.TransformerEncoderLayer,
    nn.TransformerDecoder,
    nn.TransformerDecoderLayer,
    nn.MultiheadAttention,
)


def _has(model: Any, library: str, *names: str) -> bool:
    """Whether a model has a module of a class of a library, without importing it."""
    if library not in sys.modules or not isinstance(model, nn.Module):
        return False
    return any(
        kind.__name__ in names and kind.__module__.startswith(library)
        for each in model.modules()
        for kind in type(each).__mro__
    )


def _layers(host: Host, where: Where, layers: Sequence[int] | None) -> tuple[Layers, list[int]]:
    """All layers of a place, and the numbers of the chosen ones.

    Raises:
        PositionError: there is no such place or layer.
    """
    if where not in host.places:
        raise PositionError(
            f"{type(host.model).__name__} has no attention {where!r} to enter; it has {listed(host.places)}"
        )
    every = host.layers(where)
    chosen = list(range(len(every))) if layers is None else [int(each) for each in layers]
    if wrong := [each for each in chosen if not 0 <= each < len(every)]:
        raise PositionError(f"there is no layer {wrong[0]}; the {where} has {len(every)}, 0..{len(every) - 1}")
    if not chosen or len(set(chosen)) < len(chosen):
        raise PositionError(f"layers are {chosen}; give one or more, each once")
    return every, chosen


_PASSES = "_structpe_passes"
"""Attribute of a model with the passes that all of its position models know."""

_ACTS = {
    "inputs": "changes the vectors that enter the first layer",
    "layer": "changes the vectors that enter a layer",
    "sources": "changes what queries and keys are projected from",
    "attention": "has its own attention",
}
_TAKEN = {
    "inputs": "changes of the input",
    "layer": "of each layer's input",
    "sources": "of what is projected",
    "attention": "attentions of position models",
}


def _check(host: Host, position: PositionModel, needed: Dims, where: Where, instead: bool) -> None:
    """Check that a position model fits a place of a model."""
    name = position.name
    if position.dims != needed:
        raise PositionError(
            f"position model {name!r} was built for {position.dims}, and the {where} needs {needed}; build it for "
            f"structpe.adapters.dims(model, {where!r}, layers), or give its name"
        )
    acts = position.sites | ({"attention"} if position.own_attention else frozenset())
    takes = host.takes - ({"inputs", "layer", "sources", "attention"} if where == "cross" else set())
    if lost := [text for act, text in _ACTS.items() if act in acts and act not in takes]:
        scores = "biases, vectors of pairs, masks and rotations" if "vectors" in takes else "biases and masks"
        scores = scores.replace(" and rotations", "") if where == "cross" else scores
        can = ", ".join([scores, *(text for act, text in _TAKEN.items() if act in takes)])
        raise PositionError(
            f"position model {name!r} {lost[0]}, which the {where} of {type(host.model).__name__} cannot take; choose "
            f"one that acts by what it can: {can}{host.hint}"
        )
    width = host.width()
    if acts & {"inputs", "layer"} and width not in (None, needed.width):
        raise PositionError(
            f"the hidden vectors have {width} numbers and all heads together {needed.width}: a position model "
            f"that acts on the input does not fit; choose one that acts in attention"
        )
    if position.own_attention and not instead:
        raise PositionError(
            f"position model {name!r} has its own attention, and that of {type(host.model).__name__} would not be "
            f"used; say so with instead=True, or choose another"
        )


def _check_options(position: PositionModel, start: str, structures: str) -> None:
    """Check the options of an injection."""
    for option, value, known in (
        ("start", start, ("zero", "own")),
        ("structures", structures, ("given", "path")),
    ):
        if value not in known:
            raise PositionError(f"{option} is {value!r}; it must be one of {', '.join(known)}")
    if start == "zero" and position.own_attention:
        raise PositionError(
            f"position model {position.name!r} has its own attention, and cannot start at zero; use start='own'"
        )


def _replaced(host: Host, injected: Injected, found: Layers, every: bool) -> list[Any]:
    """Take the model's own positions out; what was changed.

    Raises:
        PositionError: it has none.
    """
    changes = host.replaced(injected.where, found, every)
    if changes is None and not injected.position.own_attention:
        raise PositionError(
            f"the {injected.where} of {type(host.model).__name__} has no positions of its own to replace; leave out "
            f"instead=True"
        )
    return changes or []
