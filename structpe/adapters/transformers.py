"""Position models inside models of Hugging Face.

::

    model = T5ForConditionalGeneration.from_pretrained(folder)
    injected = inject(model, {"name": "graformer", "encoding": "distance"})    # the numbers are part of the model
    batch = injected.collator(tokenizer)([{"structure": graph, "target": "A text."}])
    model(**batch).loss.backward()                                             # at first as the checkpoint computes it
    model.save_pretrained("out"); model = load(T5ForConditionalGeneration, "out")

The attention of the model becomes :func:`structpe.attend`. Where a model rotates queries and keys itself (Llama, Qwen2,
ModernBERT), a position model meets them as they were before, and what it makes of them is rotated.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from structpe.adapters._hf_models import FAMILIES, Where, attentions, sizes, take_t5, usual
from structpe.adapters._hooks import TURNED, Before, Beginning, Generating, Turning, check_known, first_place
from structpe.adapters._injection import Injected, Pass, Seat, Start, Structures, check_trial, check_width
from structpe.adapters._passes import NAME, Passes, enter
from structpe.adapters._tokens import Collator, TokenPositions
from structpe.attention import attend, weights
from structpe.encodings.base import Encoding
from structpe.errors import PositionError, StoreError, listed, needing, undamaged
from structpe.positions import Dims, PositionModel, build, describe
from structpe.positions.build import Config
from structpe.terms import Terms

__all__ = [
    "FAMILIES",
    "Collator",
    "Handle",
    "TokenPositions",
    "asked",
    "dims",
    "eject",
    "inject",
    "load",
    "read_numbers",
    "register",
    "restore",
    "take_t5",
]


WHOLE, PARTS = "model.safetensors", "model.safetensors.index.json"


def read_numbers(folder: Any, prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, without it.

    Raises:
        StoreError: there is no checkpoint in the form of safetensors, or it is damaged.
    """
    from safetensors import safe_open

    place = Path(folder)
    found: dict[str, Tensor] = {}
    with undamaged(place, "save the model again"):
        for file in _files(place):
            with safe_open(file, framework="pt") as opened:
                names = [name for name in opened.keys() if name.startswith(prefix)]  # noqa: SIM118, it is no mapping
                found |= {name.removeprefix(prefix): opened.get_tensor(name) for name in names}
    return found


def _files(place: Path) -> list[Path]:
    """The files of a checkpoint, which may be in several parts."""
    if (place / PARTS).is_file():
        parts = json.loads((place / PARTS).read_text(encoding="utf-8"))["weight_map"].values()
        return [place / name for name in sorted(set(parts))]
    if (place / WHOLE).is_file():
        return [place / WHOLE]
    raise StoreError(f"there is no {WHOLE}; give the folder that save_pretrained wrote").at(str(place))


TRAINED = ("lora_", "adapter", "prompt_encoder", "modules_to_save", f"{NAME}.")
"""Parts of the names of parameters that ``freeze`` leaves trainable: the position model's, and adapters'."""


class Handle:
    """What :func:`inject` returns: the position model in its place.

    Attributes:
        model: the model of Hugging Face.
        injected: the position model, with where it is; a submodule of the model.
    """

    def __init__(self, model: Any, injected: Injected) -> None:
        self.model, self.injected = model, injected

    @property
    def position(self) -> PositionModel:
        """The position model."""
        return self.injected.position

    def collator(self, tokenizer: Any, **options: Any) -> Collator:
        """What makes batches with positions for all position models of the model; options as of :class:`Collator`."""
        config = self.model.config
        # RoBERTa counts what is no padding by itself.
        places = not config.is_encoder_decoder and first_place(config) == 0
        return Collator(tokenizer, asked(self.model), bool(config.is_encoder_decoder), **{"places": places, **options})


def inject(
    model: Any,
    position: PositionModel | Config,
    where: Where | None = None,
    layers: Sequence[int] | None = None,
    start: Start = "zero",
    structures: Structures = "given",
    instead: bool = False,
    freeze: bool = False,
) -> Handle:
    """Put a position model into the attention of a model of Hugging Face.

    Args:
        model: a model of a family of ``FAMILIES``. Its attention becomes ``structpe``.
        position: a position model built for :func:`dims`, or plain data for :func:`structpe.build`.
        where: self-attention of the ``encoder`` or the ``decoder``, or ``cross``, the decoder's attention to the
            encoder, in which each token of the decoder stands at the root; by default the first that the model has.
        layers: numbers of the layers that it enters; all by default.
        start: ``zero``: before training the model computes what it did, and all numbers of the position model have a
            gradient. ``own``: the position model is used as it is, such as with a table of T5.
        structures: ``given``: a batch has :class:`TokenPositions` as ``structpe``. ``path``: each text is the path of
            its tokens, for position models of sequences; with it a decoder can generate at any place.
        instead: whether T5's own bias is left out.
        freeze: whether only the position models and adapters such as LoRA are trained.

    Raises:
        PositionError: the model is of another family, there is a position model already, the sizes differ, or the
            position model acts where it cannot in another model, or cannot start at zero.
        MissingExtra: ``transformers`` is not installed.
    """
    register()
    where = usual(model) if where is None else where
    found = attentions(model, where, layers)
    made = position if isinstance(position, PositionModel) else build(position, sizes(found[0][1], len(found)))
    numbers = [int(each) for each in (range(len(found)) if layers is None else layers)]
    _check(made, sizes(found[0][1], len(found)), where)
    if where in _injections(model):
        raise PositionError(f"the {where} has a position model already; give both as one, first + second, or eject it")
    like = next(model.parameters())
    injected = Injected(made, where, numbers, start, structures, instead).to(like.device, like.dtype)
    check_width(made, int(model.config.hidden_size))
    check_trial(injected)
    _enter(model, injected, found)
    described = {"position": _described(made), "layers": numbers, "start": start}
    described |= {"structures": structures, "instead": instead}
    model.config.structpe = {**(getattr(model.config, NAME, None) or {}), where: described}
    if instead:
        _without_own_bias(model, where)
    if freeze:
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(parameter.requires_grad and any(part in name for part in TRAINED))
    return Handle(model, injected)


def asked(model: Any) -> tuple[Encoding, ...]:
    """The encodings of all position models of a model that read the structures of a batch, each once."""
    parts = [each for each in _injections(model).values() if each.structures == "given"]
    return tuple(dict.fromkeys(encoding for each in parts for encoding in each.position.encodings))


def dims(model: Any, where: Where | None = None, layers: Sequence[int] | None = None) -> Dims:
    """The sizes that a position model must be built for, to enter these layers.

    Raises:
        PositionError: as :func:`inject`.
    """
    found = attentions(model, usual(model) if where is None else where, layers)
    return sizes(found[0][1], len(found))


def eject(model: Any, attention: str = "sdpa") -> None:
    """Take all position models out of a model, and give it an attention of Hugging Face."""
    for handle in model.__dict__.pop("_structpe_hooks", []):
        handle.remove()
    for module in model.modules():
        module.__dict__.pop("_structpe", None)
    model.__dict__.pop("generate", None)
    if _injections(model):
        del model.structpe
    model.config.structpe = None
    model.set_attn_implementation(attention)


def load(
    cls: Any,
    folder: Any,
    positions: Mapping[str, PositionModel] | None = None,
    freeze: bool = False,
    **options: Any,
) -> Any:
    """The model that ``save_pretrained`` wrote, with its position models; ``from_pretrained`` alone drops them.

    Args:
        cls: the class of the model, or an ``AutoModelFor...``.
        folder: what ``save_pretrained`` was given.
        positions: by where they are: position models of your own, without a name in the registry.
        freeze: as in :func:`inject`.
        options: of ``from_pretrained``.

    Raises:
        StoreError: the folder has no position model, or its numbers are missing or of other sizes.
    """
    register()
    numbers = read_numbers(folder, f"{NAME}.")
    model = quietly(cls, folder, options)
    if not numbers or not restore(model, positions, freeze):
        raise StoreError(
            "the folder has no position model; save the model with save_pretrained after inject, or load it with "
            "from_pretrained"
        ).at(str(folder))
    try:
        model.structpe.load_state_dict(numbers)
    except RuntimeError as error:
        raise StoreError(f"the numbers of the position models do not fit ({' '.join(str(error).split())})").at(
            str(folder)
        ) from None
    return model


def restore(model: Any, positions: Mapping[str, PositionModel] | None = None, freeze: bool = False) -> bool:
    """Inject the position models that the configuration of a model describes, with new numbers; whether there are any.

    Args:
        model: without position models.
        positions, freeze: as in :func:`load`.

    Raises:
        StoreError: a position model has no name, and is not given.
    """
    described = dict(getattr(model.config, NAME, None) or {})
    for where, each in described.items():
        own = (positions or {}).get(where) or each["position"]
        if own is None:
            raise StoreError(
                f"the position model of the {where} has no name in the registry; build it, and give it as "
                f"positions={{{where!r}: it}}"
            ).at(str(model.config._name_or_path))
        # What starts at zero is told apart by its numbers, which replace those made here.
        inject(model, own, where, **{key: value for key, value in each.items() if key != "position"}, freeze=freeze)
    return bool(described)


def register() -> None:
    """Make the attention ``structpe`` known to Hugging Face, with its mask function; :func:`inject` does so.

    Without a mask function of its own Hugging Face would give an attention no masks, and padding would be read.

    Raises:
        MissingExtra: ``transformers`` is not installed.
        PositionError: it is older than version 5.
    """
    with needing("transformers", "hf"):
        from transformers import __version__ as installed
    if int(installed.partition(".")[0]) < 5:
        raise PositionError(
            f"transformers {installed} is installed; position models need version 5, as BERT, T5 and others of "
            f"version 4 compute attention themselves, and never ask them: pip install 'transformers>=5'"
        )
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)


def attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **others: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attention as Hugging Face calls it: (b, h, n, d) queries, (b, g, m, d) keys; (b, n, h, d) comes back.

    A head of keys may be for several heads of queries. The terms of a position model that was injected are added to
    the mask and to the model's own bias. With ``output_attentions`` the weights (b, h, n, m) come back too.

    Raises:
        PositionError: an argument is not known, such as ``softcap`` or sinks, by which attention would be another one.
    """
    check_known(module, others)
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (x.repeat_interleave(groups, dim=1) for x in (key, value))
    d, keys = query.shape[-1], key.shape[2]
    terms = Terms() if scaling is None else Terms(scale=scaling * math.sqrt(d))
    terms += _own(module, query, keys, attention_mask, others)
    seat: Seat | None = getattr(module, "_structpe", None)
    if seat is not None:
        terms += seat.terms(others.get(NAME, {}), query, keys, bool(module.training))
        if (turned := others.get(TURNED)) is not None:
            query, key, terms = turned.rewritten(query, key, terms)
    mixed = attend(query, key, value, terms, dropout=dropout)
    asked = weights(query, key, terms) if others.get("output_attentions") else None
    return mixed.transpose(1, 2).contiguous(), asked


def _own(module: Any, query: Tensor, keys: int, mask: Tensor | None, others: Mapping[str, Any]) -> Terms:
    """The terms of the model itself: its mask, and the bias of T5."""
    terms = Terms()
    if mask is not None:
        mask = mask[..., :keys]
        terms += Terms(mask=(mask,)) if mask.dtype == torch.bool else Terms(bias=(mask,))
    elif query.shape[2] > 1 and _first(others.get("is_causal"), getattr(module, "is_causal", False)):
        terms += Terms(causal=True)
    bias, seat = others.get("position_bias"), getattr(module, "_structpe", None)
    if bias is not None and not (seat is not None and seat.injected.instead):
        terms += Terms(bias=(bias,))
    return terms


def _first(given: bool | None, default: bool) -> bool:
    return default if given is None else given


def _check(position: PositionModel, needed: Dims, where: Where) -> None:
    """Check that a position model can enter."""
    if position.dims != needed:
        raise PositionError(
            f"position model {position.name!r} was built for {position.dims}, and the {where} needs {needed}; build it "
            f"for structpe.adapters.transformers.dims(model, {where!r}, layers)"
        )
    if position.own_attention or "sources" in position.sites:
        what = "has its own attention" if position.own_attention else "changes what queries and keys are projected from"
        raise PositionError(f"position model {position.name!r} {what}, which another model cannot do; choose another")
    if where == "cross" and position.sites - {"terms"}:
        raise PositionError(f"position model {position.name!r} acts on the input, and cross-attention has none")


def _injections(model: Any) -> Mapping[str, Injected]:
    found: Any = model._modules.get(NAME)
    return {} if found is None else dict(found.items())


def _enter(model: Any, injected: Injected, found: Sequence[tuple[nn.Module, nn.Module]]) -> None:
    """Register the position model, mark the attentions and hook the layers."""
    first = not _injections(model)
    if first:
        enter(model, nn.ModuleDict())
    enter(model.structpe, injected, injected.where)
    model.set_attn_implementation(NAME)
    hooks = model.__dict__.setdefault("_structpe_hooks", [])
    for number, (layer, attending) in enumerate(found):
        seat = Seat(injected, number)
        attending._structpe = seat  # type: ignore[assignment]  # not a module, so that it is no submodule
        hooks.append(attending.register_forward_pre_hook(Turning(), with_kwargs=True))
        if injected.position.sites & {"inputs", "layer"}:
            hooks.append(layer.register_forward_pre_hook(Before(seat, attending), with_kwargs=True))
    if first:
        asked, writing = [model], Passes[Pass]()
        if model.config.is_encoder_decoder and (encoder := model.get_encoder()) is not None:
            asked.append(encoder)
        for module in asked:
            hooks.append(module.register_forward_pre_hook(Beginning(model, module, writing), with_kwargs=True))
        if callable(getattr(type(model), "generate", None)):
            model.generate = Generating(model, writing)


def _described(position: PositionModel) -> Any:
    """Plain data of a position model; None if it has no name, and must be given to :func:`load`."""
    try:
        return _plain(describe(position))
    except PositionError:
        return None


def _plain(given: Any) -> Any:
    """The same with lists for tuples, as JSON has it, so that a configuration is equal to itself read again."""
    if isinstance(given, Mapping):
        return {key: _plain(value) for key, value in given.items()}
    return [_plain(each) for each in given] if isinstance(given, list | tuple) else given


def _without_own_bias(model: Any, where: Where) -> None:
    """Freeze the table that is not used any more, which would never have a gradient."""
    tables = [
        each.relative_attention_bias
        for _, each in attentions(model, where, None)
        if isinstance(getattr(each, "relative_attention_bias", None), nn.Module)
    ]
    if not tables:
        raise PositionError(f"the {where} has no bias of its own that could be left out; leave out instead=True")
    for table in tables:
        table.requires_grad_(False)


def quietly(cls: Any, folder: Any, options: Mapping[str, Any]) -> Any:
    """A model by ``from_pretrained``, whose report of unexpected keys would name those of the position models.

    Raises:
        StoreError: other keys are unexpected, or some are missing.
    """
    from transformers import logging as theirs

    before, bars = theirs.get_verbosity(), theirs.is_progress_bar_enabled()
    theirs.set_verbosity(logging.ERROR)
    theirs.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        model, found = cls.from_pretrained(folder, output_loading_info=True, **options)
    finally:
        theirs.set_verbosity(before)
        if bars:
            theirs.enable_progress_bar()  # type: ignore[no-untyped-call]
    lost = [*_unknown(found["unexpected_keys"]), *found["missing_keys"]]
    if lost:
        raise StoreError(
            f"the folder and {type(model).__name__} have different numbers: {listed(sorted(lost))}; load it with the "
            f"class that it was saved from"
        ).at(str(folder))
    return model


def _unknown(keys: Sequence[str]) -> Iterator[str]:
    return (key for key in keys if not key.startswith(f"{NAME}."))
