"""What happens around a pass of a model of Hugging Face that has position models."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from structpe.adapters._injected import Given, Pass, Seat
from structpe.adapters._passes import NAME, Passes
from structpe.adapters._rotations import TURNED
from structpe.adapters._tokens import TokenPositions
from structpe.errors import PositionError

__all__ = ["Before", "Beginning", "Generating", "check_known", "first_place"]


class Beginning:
    """A hook: makes a pass of what a batch holds as ``structpe``.

    Args:
        model: with the position models.
        module: the model, or its encoder, whose passes begin.
        writing: what ``generate`` reads in all its passes.
    """

    def __init__(self, model: Any, module: Any, writing: Passes[Pass]) -> None:
        self.model, self.writing = model, writing
        self.names = list(inspect.signature(type(module).forward).parameters)[1:]  # of arguments without a name

    def __call__(self, module: Any, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        model = self.model
        if model.config._attn_implementation != NAME:
            raise PositionError(
                f"the attention is {model.config._attn_implementation!r}, which does not ask position models; call "
                f"model.set_attn_implementation({NAME!r})"
            )
        called = {**dict(zip(self.names, given, strict=False)), **named}
        cache = called.get("past_key_values")
        if getattr(cache, "is_compileable", False):
            raise PositionError(
                "the cache has a fixed size, so that queries do not tell where they are; use the dynamic cache, which "
                "generate does without cache_implementation"
            )
        passing = named[NAME] if NAME in named else self.writing.known() or {}
        masks, ids = _masks(model, called, within=module is not model), _ids(model, called)
        if isinstance(passing, Pass):
            passing.masks |= masks
            passing.ids |= ids
        else:
            check_given(model, passing)
            again = any(getattr(each, "gradient_checkpointing", False) for each in model.modules())
            keeps = not (again and model.training)
            passing = Pass(passing, masks, keeps, ids)
        return given, {**named, NAME: passing}


def check_given(model: Any, given: Given) -> None:
    """Check that the positions of the tokens of an encoder are not taken for those of its decoder's.

    Raises:
        PositionError: one object is given for both.
    """
    own = dict(model.structpe.items()).get("decoder")
    if not model.config.is_encoder_decoder or own is None or own.structures == "path":
        return
    if isinstance(given, TokenPositions):
        raise PositionError(
            "structpe says which units the tokens of the encoder are, and the decoder has a position model, too, and "
            "other tokens; give structpe={'encoder': ..., 'decoder': ...}, each a TokenPositions, or inject into the "
            "decoder with structures='path'"
        )


def _masks(model: Any, named: Mapping[str, Any], within: bool) -> dict[str, Tensor | None]:
    """The padding masks of the tokens, where they are given."""
    if not model.config.is_encoder_decoder:
        return dict.fromkeys(("encoder", "decoder"), named.get("attention_mask"))
    own = {"encoder": named.get("attention_mask")}
    return own if within else {**own, "decoder": named.get("decoder_attention_mask")}


def _ids(model: Any, named: Mapping[str, Any]) -> dict[str, Tensor | None]:
    """``position_ids`` as places from 0 on, where they are given."""
    given = named.get("position_ids")
    if model.config.is_encoder_decoder or not isinstance(given, Tensor):
        return {}
    return dict.fromkeys(("encoder", "decoder"), given - first_place(model.config))


def first_place(config: Any) -> int:
    """The first of ``position_ids``: RoBERTa's are counted behind the id of padding."""
    return int(config.pad_token_id) + 1 if config.model_type in ("roberta", "xlm-roberta") else 0


class Before:
    """A hook: changes the hidden vectors before a layer.

    Args:
        seat: of the layer.
        attending: the attention of the layer.
    """

    def __init__(self, seat: Seat, attending: Any) -> None:
        self.seat, self.attending = seat, attending

    def __call__(self, layer: Any, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        x: Tensor = given[0] if given else named["hidden_states"]
        changed = self.seat.change(named.get(NAME, {}), x, self._past(given, named), bool(layer.training))
        if given:
            return (changed, *given[1:]), named
        return given, {**named, "hidden_states": changed}

    def _past(self, given: tuple[Any, ...], named: dict[str, Any]) -> int:
        """How many tokens the cache holds."""
        if self.seat.injected.where == "encoder":
            return 0
        caches = (each for each in (*given, *named.values()) if callable(getattr(each, "get_seq_length", None)))
        cache = next(caches, None)
        return 0 if cache is None else int(cache.get_seq_length(self.attending.layer_idx))


class Generating:
    """``model.generate``, every step with the positions of ``structpe``.

    Args:
        model: with the position models.
        writing: is told what all passes read.
    """

    def __init__(self, model: Any, writing: Passes[Pass]) -> None:
        self.model, self.writing = model, writing

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Generate; arguments as of Hugging Face's ``generate``, and ``structpe``."""
        model, positions = self.model, named.pop(NAME, {})
        check_given(model, positions)
        self.writing.begin(Pass(positions, {}, keeps=True))
        try:
            return type(model).generate(model, *given, **named)
        finally:
            self.writing.end()


KNOWN = frozenset(
    {NAME, TURNED, "is_causal", "position_bias", "output_attentions"}  # are read
    | {"sliding_window"}  # is in the mask already
    | {"position_ids", "position_embeddings", "cache_position", "past_key_values", "use_cache"}  # of queries and keys
    | {"output_hidden_states", "output_router_logits", "return_dict", "num_items_in_batch", "deterministic"}
)
"""What a model of Hugging Face may hand to its attention: what is read, and what changes no attention."""


def check_known(module: Any, others: Mapping[str, Any]) -> None:
    """Check what a model of Hugging Face hands to its attention beside queries, keys and values.

    Raises:
        PositionError: it asks for something that is not computed.
    """
    if unknown := sorted(name for name, value in others.items() if value is not None and name not in KNOWN):
        raise PositionError(
            f"the attention of {type(module).__name__} is asked for {', '.join(unknown)}, which the attention of "
            f"structpe does not compute; choose a model without, or structpe.adapters.transformers.eject(model)"
        )
