"""Position models inside models of Hugging Face.

::

    model = T5ForConditionalGeneration.from_pretrained(folder)
    handle = inject(model, {"name": "graformer", "encoding": "distance"})    # its parameters are part of the model
    batch = handle.collator(tokenizer)([{"structure": graph, "target": "A text."}])
    model(**batch).loss.backward()                                             # the same result before training
    model.save_pretrained("out"); model = load(T5ForConditionalGeneration, "out")

:func:`structpe.attend` replaces the attention of the model. If the model rotates queries and keys itself (Llama, Qwen3,
ModernBERT), the position model gets them before the rotation, and its results are rotated; with ``instead`` nothing is.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from structpe.adapters._hf_models import FAMILIES, found_at, places_of, sizes, take_t5
from structpe.adapters._hooks import (
    PAST,
    ROTATION,
    BeginPass,
    ChangeInput,
    Generate,
    PassRotation,
    WithPairs,
    check_known,
    first_place,
)
from structpe.adapters._injection import Host, Injected, Layers, Seat, Where
from structpe.adapters._passes import NAME, Altered, Frozen, Without, Zeros
from structpe.adapters._tokens import Collator, TokenPositions
from structpe.adapters.hosts import inject, injections
from structpe.adapters.rotary import rotary_from
from structpe.attention import attend, weights
from structpe.attention.reference import log_total
from structpe.encodings.base import Encoding
from structpe.errors import PositionError, StoreError, listed, needing, undamaged
from structpe.positions import Dims, PositionModel, describe
from structpe.precision import wide
from structpe.terms import Terms

__all__ = [
    "FAMILIES",
    "Collator",
    "HuggingFaceHost",
    "TokenPositions",
    "asked",
    "load",
    "quietly",
    "register",
    "restore",
    "rotary_from",
    "take_t5",
]


WHOLE, PARTS = "model.safetensors", "model.safetensors.index.json"


def _read_numbers(folder: Any, prefix: str) -> dict[str, Tensor]:
    """The tensors of a checkpoint with a prefix, by their names without it.

    Raises:
        StoreError: there is no safetensors checkpoint, or it is damaged.
    """
    from safetensors import safe_open

    place = Path(folder)
    found: dict[str, Tensor] = {}
    with undamaged(place, "save the model again"):
        for file in _files(place):
            with safe_open(file, framework="pt") as opened:
                names = [name for name in opened.keys() if name.startswith(prefix)]  # noqa: SIM118, not a mapping
                found |= {name.removeprefix(prefix): opened.get_tensor(name) for name in names}
    return found


def _files(place: Path) -> list[Path]:
    """The files of a checkpoint, which may have several parts."""
    if (place / PARTS).is_file():
        parts = json.loads((place / PARTS).read_text(encoding="utf-8"))["weight_map"].values()
        return [place / name for name in sorted(set(parts))]
    if (place / WHOLE).is_file():
        return [place / WHOLE]
    raise StoreError(f"there is no {WHOLE}; give the folder that save_pretrained wrote").at(str(place))


class HuggingFaceHost(Host):
    """A model of one of the ``FAMILIES``. Its attention implementation becomes ``structpe``."""

    takes = frozenset({"vectors", "inputs", "layer"})

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        register()
        self.families = places_of(model)
        self.places = tuple(self.families)
        if any(place.shared for place in self.families.values()):
            self.takes = self.takes - {"inputs"}  # the first layer is also the others

    def layers(self, where: Where) -> Layers:
        """All layers of a place, each with its attention."""
        place = self.families[where]
        try:
            lists = [getattr(*each) for each in found_at(self.model.base_model, place.layers)]
        except AttributeError:
            raise PositionError(
                f"{type(self.model).__name__} has no {where}; choose where= among those it has"
            ) from None
        return [(each, each.get_submodule(place.attention)) for found in lists for each in found]

    def dims(self, found: Layers) -> Dims:
        """The sizes of a position model for these layers."""
        return sizes(found[0][1], len(found))

    def width(self) -> int | None:
        """The width of the hidden vectors."""
        return int(self.model.config.hidden_size)

    def enter(self, injected: Injected, found: Layers) -> list[Any]:
        """Mark the attentions and hook the layers; return what was changed."""
        model, made, place = self.model, list[Any](), self.families[injected.where]
        if not injections(model).keys() - {injected.where}:
            made += self._begin()
        described = {"position": _described(injected.position), "layers": list(injected.layers)}
        described |= {each: getattr(injected, each) for each in ("start", "structures", "instead")}
        made.append(
            Altered(model.config, NAME, {**(getattr(model.config, NAME, None) or {}), injected.where: described})
        )
        for number, (layer, attending) in enumerate(found):
            seat = Seat(injected, number)
            made.append(Altered(attending, "_structpe", seat))  # not a module, and not registered as one
            made.append(Altered(attending, "_structpe_scaled", place.scaled))
            if injected.where != "cross":
                turning = PassRotation(injected.instead, place.halves)
                made.append(attending.register_forward_pre_hook(turning, with_kwargs=True))
            if injected.position.sites & {"inputs", "layer"}:
                made.append(layer.register_forward_pre_hook(ChangeInput(seat, attending), with_kwargs=True))
        return made

    def _begin(self) -> list[Any]:
        """Let passes of the model, and of its encoder alone, begin with the argument ``structpe``."""
        model, asked = self.model, [self.model]
        made: list[Any] = [_Attention(model)]
        if model.config.is_encoder_decoder and (encoder := model.get_encoder()) is not None:
            asked.append(encoder)
        for module in asked:
            made.append(module.register_forward_pre_hook(BeginPass(model, module, self.passes), with_kwargs=True))
        if callable(getattr(type(model), "generate", None)):
            made.append(Altered(model, "generate", Generate(model, self.passes)))
        return made

    def replaced(self, where: Where, found: Layers, every: bool) -> list[Any] | None:
        """Take learned positions out; rotations and T5's bias are left out by each layer. What is unused is frozen."""
        own, made = self.families[where].own, list[Any]()
        if not own:
            return None
        for holder, name in found_at(self.model.base_model, own):
            positions = getattr(holder, name)
            learned = isinstance(positions, nn.Embedding | nn.Parameter) and name != "relative_attention_bias"
            if learned and not every:
                raise PositionError(
                    f"the learned positions of {type(self.model).__name__} enter before all layers, and instead=True "
                    f"would take them from layers without the position model; leave out layers"
                )
            if isinstance(positions, nn.Parameter):
                made += [Altered(holder, name, torch.zeros_like(positions)), Frozen(positions)]
                made.append(holder.register_forward_pre_hook(Zeros(name)))
                continue
            if learned:
                made.append(positions.register_forward_hook(Without()))
            made += [Frozen(each) for each in positions.parameters()]
        return made

    def collator(self, tokenizer: Any, **options: Any) -> Collator:
        """A collator for all position models of the model; options as in :class:`Collator`."""
        config = self.model.config
        # RoBERTa counts tokens other than padding itself.
        places = not config.is_encoder_decoder and first_place(config) == 0
        return Collator(tokenizer, asked(self.model), bool(config.is_encoder_decoder), **{"places": places, **options})


class _Attention:
    """The attention implementation of a model, ``structpe`` until this is removed."""

    def __init__(self, model: Any) -> None:
        self.model, self.before = model, model.config._attn_implementation
        model.set_attn_implementation(NAME)

    def remove(self) -> None:
        """Set the implementation of before."""
        self.model.set_attn_implementation("sdpa" if self.before in (None, NAME) else self.before)


def asked(model: Any) -> tuple[Encoding, ...]:
    """The distinct encodings of all position models that read the structures of a batch."""
    parts = [each for each in injections(model).values() if each.structures == "given"]
    return tuple(dict.fromkeys(encoding for each in parts for encoding in each.position.encodings))


def load(
    cls: Any,
    folder: Any,
    positions: Mapping[str, PositionModel] | None = None,
    freeze: bool = False,
    **options: Any,
) -> Any:
    """Load a model that ``save_pretrained`` wrote, with its position models, which ``from_pretrained`` would drop.

    Args:
        cls: the class of the model, or an ``AutoModelFor...``.
        folder: the folder of ``save_pretrained``.
        positions: position models without a name in the registry, by their place.
        freeze: as in :func:`inject`.
        options: options of ``from_pretrained``.

    Raises:
        StoreError: the folder has no position model, or its parameters are missing or have other sizes.
    """
    register()
    numbers = _read_numbers(folder, f"{NAME}.")
    model = quietly(cls, folder, options)
    if not restore(model, positions, freeze):  # it may have no numbers, as rotations do not
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
    """Inject the position models of a model's configuration, with new parameters; return whether there are any.

    Args:
        model: a model without position models.
        positions, freeze: as in :func:`load`.

    Raises:
        StoreError: a position model has no name and is not given.
    """
    described = dict(model.config.__dict__.pop(NAME, None) or {})
    for where, each in described.items():
        own = (positions or {}).get(where) or each["position"]
        if own is None:
            raise StoreError(
                f"the position model of the {where} has no name in the registry; build it, and give it as "
                f"positions={{{where!r}: it}}"
            ).at(str(model.config._name_or_path))
        # The saved parameters, which replace the new ones, also say what started at zero.
        options = {key: value for key, value in each.items() if key != "position"}
        inject(model, own, where=where, **options, freeze=freeze)
    return bool(described)


def register() -> None:
    """Register the attention ``structpe`` and its mask function with Hugging Face; :func:`inject` calls this.

    Without a mask function, Hugging Face would pass no masks to the attention, which would attend to padding.

    Raises:
        MissingExtra: ``transformers`` is not installed.
        PositionError: ``transformers`` is older than version 5.
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
    """Attention as Hugging Face calls it, from queries (b, h, n, d) and keys (b, g, m, d) to (b, n, h, d).

    A head of keys may serve several heads of queries. The terms of an injected position model are added to the mask and
    to the model's own bias. With ``output_attentions`` the weights (b, h, n, m) are returned, too.

    Raises:
        PositionError: an argument is not supported, or the model and the position model change scores by a function.
    """
    check_known(module, others)
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (x.repeat_interleave(groups, dim=1) for x in (key, value))
    d, (n, keys) = query.shape[-1], (query.shape[2], key.shape[2])
    if scaling is not None and getattr(module, "_structpe_scaled", False):
        query, scaling = query * math.sqrt(d), scaling / math.sqrt(d)  # vectors of pairs are inside the scale
    terms = Terms() if scaling is None else Terms(scale=scaling * math.sqrt(d))
    terms += _own(module, query, keys, attention_mask, others)
    seat: Seat | None = getattr(module, "_structpe", None)
    if seat is not None:
        dropped = others.get(PAST, keys - n) + n - keys
        added = seat.terms(others.get(NAME, {}), query, keys, bool(module.training), dropped)
        if terms.act and added.act:
            raise PositionError(
                f"{type(module).__name__} caps its scores (softcap={others['softcap']}), and the position model "
                f"{seat.injected.position.name!r} changes them by a function, too; choose one with biases, vectors of "
                f"pairs or rotations"
            )
        terms += added
        if (turned := others.get(ROTATION)) is not None:
            query, key, terms = turned.rewritten(query, key, terms)
    kernel = "dense" if isinstance(terms.act, WithPairs) else "auto"  # which computes all scores at once
    mixed = attend(query, key, value, terms, kernel=kernel, dropout=dropout)
    asked = weights(query, key, terms) if others.get("output_attentions") else None
    if (sinks := others.get("s_aux")) is not None:  # a key without a value, the same for all queries of a head
        rest = torch.sigmoid(log_total(query, key, terms) - wide(sinks)[:, None])[..., None]
        mixed, asked = mixed * rest.to(mixed.dtype), None if asked is None else asked * rest.to(asked.dtype)
    return mixed.transpose(1, 2).contiguous(), asked


def _own(module: Any, query: Tensor, keys: int, mask: Tensor | None, others: Mapping[str, Any]) -> Terms:
    """The terms of the model itself: its mask, T5's bias and Gemma's softcap, which is before all biases."""
    terms = Terms()
    if mask is not None:
        mask = mask[..., :keys]
        terms += Terms(mask=(mask,)) if mask.dtype == torch.bool else Terms(bias=(mask,))
    elif query.shape[2] > 1:
        causal = others.get("is_causal")
        terms += Terms(causal=bool(getattr(module, "is_causal", False) if causal is None else causal))
    bias, seat = others.get("position_bias"), getattr(module, "_structpe", None)
    if bias is not None and not (seat is not None and seat.injected.instead):
        terms += Terms(bias=(bias,))
    cap = others.get("softcap")
    return terms if cap is None else terms + Terms(act=partial(_capped, cap))


def _capped(cap: float, score: Tensor) -> Tensor:
    """Scores between -cap and cap."""
    return torch.tanh(score / cap) * cap


def _described(position: PositionModel) -> Any:
    """Plain data of a position model; None without a name, when it must be given to :func:`load`."""
    try:
        return _plain(describe(position))
    except PositionError:
        return None


def _plain(given: Any) -> Any:
    """Plain data with lists for tuples, as in JSON: a configuration then equals its saved copy."""
    if isinstance(given, Mapping):
        return {key: _plain(value) for key, value in given.items()}
    return [_plain(each) for each in given] if isinstance(given, list | tuple) else given


def quietly(cls: Any, folder: Any, options: Mapping[str, Any]) -> Any:
    """Call ``from_pretrained`` without its report of unexpected keys, which would name those of position models.

    Raises:
        StoreError: other keys are unexpected, or keys are missing.
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
    lost = [key for key in found["unexpected_keys"] if not key.startswith(f"{NAME}.")] + [*found["missing_keys"]]
    if lost:
        raise StoreError(
            f"the folder and {type(model).__name__} have different numbers: {listed(sorted(lost))}; load it with the "
            f"class that it was saved from"
        ).at(str(folder))
    return model
