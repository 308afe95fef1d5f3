"""Hooks of models of Hugging Face with position models, and the inversion of their rotations.

Llama, Qwen3, ModernBERT and others rotate the i-th query and key by an angle of i: R_i q_i, R_j k_j. Their product
depends only on j - i. The product of a rotated query with a vector of the pair would depend on i, the place in the row
including padding, and so would the result of a map M that does not commute with R. Therefore

    s_ij = scale/sqrt(d) [ (R_i M q_i).(R_j M k_j) + (M q_i).key_ij + query_ij.(M k_j) + product ] + ...

A function or gate of the whole score, such as Gemma 2's softcap, is of this sum.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from structpe.adapters._injection import Given, Pass, Seat
from structpe.adapters._passes import NAME, Passes
from structpe.attention.gather import added, without_lists
from structpe.attention.reference import vectors
from structpe.errors import PositionError
from structpe.positions import Positions
from structpe.terms import Terms

__all__ = [
    "PAST",
    "ROTATION",
    "BeginPass",
    "ChangeInput",
    "Generate",
    "PassRotation",
    "Rotation",
    "WithPairs",
    "check_known",
    "first_place",
]


ROTATION = "structpe_turned"
"""The argument of an attention with the rotation of its queries and keys."""
PAST = "structpe_past"
"""The argument of an attention with the number of earlier tokens, of which its sliding window keeps the last."""
_PAIRS = frozenset({"key", "query", "product"})


class PassRotation:
    """A hook of an attention that passes on the angles of its rotation, if it has one, and what its window has dropped.

    Args:
        instead: whether to rotate by no angle instead: of queries q the rotation makes q cos + q' sin.
        halves: whether each angle is given once, for both channels of its pair.
    """

    def __init__(self, instead: bool, halves: bool = False) -> None:
        self.instead, self.halves = instead, halves

    def __call__(self, attending: Any, given: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        angles, cache, number = named.get("position_embeddings"), _cache(given, named), _number(attending)
        past = _past_of_window(cache, number)
        if past is not None:
            named = {**named, PAST: past}
        if not isinstance(angles, tuple) or not getattr(attending, "use_rope", True):
            return given, named
        if self.instead:
            return given, {**named, "position_embeddings": (torch.ones_like(angles[0]), torch.zeros_like(angles[1]))}
        cos, sin = (torch.cat([x, x], dim=-1) for x in angles) if self.halves else angles
        return given, {**named, ROTATION: Rotation(cos, sin, cache, number, past)}


def _cache(given: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """The cache of keys among the arguments of a layer or an attention; None without one."""
    return next((each for each in (*given, *named.values()) if callable(getattr(each, "get_seq_length", None))), None)


def _number(attending: Any) -> int:
    """The number of a layer in the cache."""
    return getattr(attending, "layer_idx", None) or 0


def _past_of_window(cache: Any, number: int) -> int | None:
    """The number of earlier tokens, of which a layer with a sliding window keeps the last; None for other layers."""
    layers = getattr(cache, "layers", ())
    sliding = number < len(layers) and getattr(layers[number], "is_sliding", False)
    return int(cache.get_seq_length(number)) if sliding else None


class Rotation:
    """The rotation of the queries and keys of one call.

    Args:
        cos, sin: (b or 1, n, d) of the angles of the new tokens, the same in both halves of the channels.
        cache: the cache of keys, or None.
        layer: number of the layer in the cache.
        past: number of earlier tokens, if the cache keeps only the last keys; None if it keeps all.
    """

    def __init__(self, cos: Tensor, sin: Tensor, cache: Any, layer: int, past: int | None = None) -> None:
        self.cos, self.sin, self.cache, self.layer, self.past = cos, sin, cache, layer, past

    def rewritten(self, q: Tensor, k: Tensor, terms: Terms) -> tuple[Tensor, Tensor, Terms]:
        """Rewrite terms that use unrotated queries (b, h, n, d) and keys (b, h, m, d) as biases and rotated vectors.

        Raises:
            PositionError: terms need the angles of keys in a cache from before the position model was injected.
        """
        used = terms.used()
        if not used & {*_PAIRS, "maps"}:
            return q, k, terms
        of_queries = self.cos, self.sin
        of_keys = self._of_keys(k.shape[2]) if used & {"maps", "query", "product"} else None
        plain_q, plain_k = _turned(q, *of_queries, back=True), k if of_keys is None else _turned(k, *of_keys, back=True)
        for change in terms.maps:
            plain_q, plain_k = change(plain_q, plain_k)
        if terms.maps and of_keys is not None:
            q, k = _turned(plain_q, *of_queries), _turned(plain_k, *of_keys)
        met, terms = _met(plain_q, plain_k, terms), replace(terms, maps=(), key=(), query=(), product=())
        if met and used & {"act", "gate"}:
            return q, k, replace(terms, act=WithPairs(sum(met[1:], met[0]), terms.act))
        return q, k, replace(terms, bias=(*terms.bias, *met))

    def _of_keys(self, m: int) -> tuple[Tensor, Tensor]:
        """The angles (b or 1, m, d) of all keys; those of earlier tokens are stored in the cache."""
        if self.cache is None:
            return self.cos, self.sin
        n, kept = self.cos.shape[1], self.cache.__dict__.setdefault(f"_{ROTATION}", {})
        known, past = kept.get(self.layer), m - n if self.past is None else self.past
        if past and (known is None or known[0].shape[1] < past):
            raise PositionError(
                "the keys in the cache were computed before the position model entered; begin with an empty cache"
            )
        cos, sin = self.cos, self.sin
        if past:
            times = max(1, len(cos) // len(known[0]))
            before = [x[:, :past].repeat_interleave(times, dim=0)[: len(cos)] for x in known]
            cos, sin = torch.cat([before[0], cos], dim=1), torch.cat([before[1], sin], dim=1)
        kept[self.layer] = cos, sin
        return cos[:, -m:], sin[:, -m:]


class WithPairs:
    """A function of all scores (b, h, n, m) at once, to which those of vectors of pairs are added before.

    Args:
        added: (b, h, n, m) the scores of vectors of pairs.
        act: the function; None for none, where a gate follows.
    """

    def __init__(self, added: Tensor, act: Callable[[Tensor], Tensor] | None) -> None:
        self.added, self.act = added, act

    def __call__(self, score: Tensor) -> Tensor:
        return score + self.added if self.act is None else self.act(score + self.added)


def _turned(x: Tensor, cos: Tensor, sin: Tensor, back: bool = False) -> Tensor:
    """Rotate the first channels of (b, h, n, d), those that have angles, or undo the rotation."""
    x, rest = x[..., : cos.shape[-1]], x[..., cos.shape[-1] :]
    first, last = x.chunk(2, dim=-1)
    other = torch.cat([-last, first], dim=-1)
    c, s = cos[:, None].to(x.dtype), sin[:, None].to(x.dtype)
    made = (x * c - other * s) / (c * c + s * s) if back else x * c + other * s
    return torch.cat([made, rest], dim=-1) if rest.shape[-1] else made


def _met(q: Tensor, k: Tensor, terms: Terms) -> list[Tensor]:
    """(b, h, n, m) the scores of vectors of pairs."""
    b, h, n, d = q.shape
    scale = terms.scale / math.sqrt(d)
    pairs = without_lists(Terms(key=terms.key, query=terms.query), b, n, k.shape[2])
    parts = [each.expand(b, h, n, k.shape[2]) for each in added(q, k, pairs, scale)]
    for x in terms.product:
        parts.append((q[:, :, :, None] * k[:, :, None] * vectors(x, q, k.shape[2])).sum(-1) * scale)
    return parts


class BeginPass:
    """A hook that makes a :class:`Pass` of the argument ``structpe``.

    Args:
        model: the model with the position models.
        module: the model, or its encoder, with the hook.
        writing: the passes of ``generate``.
    """

    def __init__(self, model: Any, module: Any, writing: Passes[Pass]) -> None:
        self.model, self.writing = model, writing
        self.names = list(inspect.signature(type(module).forward).parameters)[1:]  # for positional arguments

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
                "the cache has a fixed size, and the places of queries are unknown; use the dynamic cache, which "
                "generate does without cache_implementation"
            )
        passing = named[NAME] if NAME in named else self.writing.known() or {}
        masks, ids = _masks(model, called, within=module is not model), _ids(model, called)
        again = any(getattr(each, "gradient_checkpointing", False) for each in model.modules())
        keeps = not (again and model.training)
        if isinstance(passing, Pass):
            passing.masks |= masks
            passing.ids |= ids
            passing.keeps = keeps
        else:
            check_given(model, passing)
            passing = Pass(passing, masks, keeps, ids)
        return given, {**named, NAME: passing}


def check_given(model: Any, given: Given) -> None:
    """Check that an encoder and a decoder with position models have separate positions.

    Raises:
        PositionError: one object is given for both.
    """
    own = dict(model.structpe.items()).get("decoder")
    if not model.config.is_encoder_decoder or own is None or own.structures == "path":
        return
    if given is not None and (isinstance(given, Positions) or not isinstance(given, Mapping)):
        raise PositionError(
            "structpe says which units the tokens of the encoder are, and the decoder has a position model, too, and "
            "other tokens; give structpe={'encoder': ..., 'decoder': ...}, each a TokenPositions, or inject into the "
            "decoder with structures='path'"
        )


def _masks(model: Any, named: Mapping[str, Any], within: bool) -> dict[str, Tensor | None]:
    """The given padding masks of the tokens."""
    if not model.config.is_encoder_decoder:
        return dict.fromkeys(("encoder", "decoder"), named.get("attention_mask"))
    own = {"encoder": named.get("attention_mask")}
    return own if within else {**own, "decoder": named.get("decoder_attention_mask")}


def _ids(model: Any, named: Mapping[str, Any]) -> dict[str, Tensor | None]:
    """The given ``position_ids``, as places from 0."""
    given = named.get("position_ids")
    if model.config.is_encoder_decoder or not isinstance(given, Tensor):
        return {}
    return dict.fromkeys(("encoder", "decoder"), given - first_place(model.config))


_AFTER_PADDING = frozenset({"roberta", "xlm-roberta", "camembert"})


def first_place(config: Any) -> int:
    """The first value of ``position_ids``; for RoBERTa and its like it follows the id of padding."""
    return int(config.pad_token_id) + 1 if config.model_type in _AFTER_PADDING else 0


class ChangeInput:
    """A hook that changes the hidden vectors before a layer.

    Args:
        seat: the place of the position model.
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
        """Number of tokens in the cache."""
        if self.seat.injected.where == "encoder":
            return 0
        cache = _cache(given, named)
        return 0 if cache is None else int(cache.get_seq_length(self.attending.layer_idx))


class Generate:
    """``model.generate``, with the positions of ``structpe`` in every step.

    Args:
        model: the model with the position models.
        writing: the passes of ``generate``.
    """

    def __init__(self, model: Any, writing: Passes[Pass]) -> None:
        self.model, self.writing = model, writing

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Generate; arguments as for Hugging Face's ``generate``, and ``structpe``."""
        model, positions = self.model, named.pop(NAME, {})
        check_given(model, positions)
        self.writing.begin(Pass(positions, {}, keeps=True))
        try:
            return type(model).generate(model, *given, **named)
        finally:
            self.writing.end()


KNOWN = frozenset(
    {NAME, ROTATION, PAST, "is_causal", "position_bias", "softcap", "s_aux", "output_attentions"}  # are read
    | {"sliding_window"}  # is in the mask already
    | {"position_ids", "position_embeddings", "cache_position", "past_key_values", "use_cache"}  # of queries and keys
    | {"output_hidden_states", "output_router_logits", "return_dict", "num_items_in_batch", "deterministic"}
)
"""Supported arguments of an attention of Hugging Face: those that are read, and those without effect on attention."""


def check_known(module: Any, others: Mapping[str, Any]) -> None:
    """Check the arguments of an attention besides queries, keys and values.

    Raises:
        PositionError: an argument is not supported.
    """
    if unknown := sorted(name for name, value in others.items() if value is not None and name not in KNOWN):
        raise PositionError(
            f"the attention of {type(module).__name__} is asked for {', '.join(unknown)}, which the attention of "
            f"structpe does not compute; choose a model without, or structpe.eject(model)"
        )
