"""The attention of models of Hugging Face: its place, sizes and own positions, and T5's table of biases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from structpe.adapters._injection import Where
from structpe.errors import PositionError, listed
from structpe.positions import Dims, PositionModel
from structpe.positions.buckets import Buckets
from structpe.positions.tables import Table

__all__ = ["FAMILIES", "Place", "found_at", "places_of", "sizes", "take_t5"]


@dataclass(frozen=True)
class Place:
    """Paths of modules.

    Attributes:
        layers: path of the list of layers, in the base model; ``*`` for each of a list of lists.
        attention: path of the attention, in a layer.
        own: path of what makes the model's own positions, in the base model: an embedding or a parameter of places,
            whose vectors enter the first layer, T5's tables, or a module of angles; none in cross-attention. Of several
            paths, with ``|`` between them, the first that the model has.
        shared: whether a layer is computed several times, one after the other; its position is that of one layer.
        halves: whether angles are given for one channel of each rotated pair, and not for both.
        scaled: whether queries are divided by the root of the width before they are rotated.
    """

    layers: str
    attention: str
    own: str = ""
    shared: bool = False
    halves: bool = False
    scaled: bool = False


_BERT: dict[Where, Place] = {"encoder": Place("encoder.layer", "attention.self", "embeddings.position_embeddings")}
_T5: dict[Where, Place] = {
    "encoder": Place(
        "encoder.block", "layer.0.SelfAttention", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias"
    ),
    "decoder": Place(
        "decoder.block", "layer.0.SelfAttention", "decoder.block.0.layer.0.SelfAttention.relative_attention_bias"
    ),
    "cross": Place("decoder.block", "layer.1.EncDecAttention"),
}
_BART: dict[Where, Place] = {
    "encoder": Place("encoder.layers", "self_attn", "encoder.embed_positions"),
    "decoder": Place("decoder.layers", "self_attn", "decoder.embed_positions"),
    "cross": Place("decoder.layers", "encoder_attn"),
}
_UMT5: dict[Where, Place] = {  # each layer has a table
    where: replace(place, own=place.own.replace("block.0", "block.*")) for where, place in _T5.items()
}
_LLAMA: dict[Where, Place] = {"decoder": Place("layers", "self_attn", "rotary_emb")}
_ROTARY_OR_NOT = "rotary_embeddings|embeddings.position_embeddings"

FAMILIES: dict[str, dict[Where, Place]] = {
    "bert": _BERT,
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "camembert": _BERT,
    "electra": _BERT,
    "distilbert": {"encoder": Place("transformer.layer", "attention", "embeddings.position_embeddings")},
    "albert": {
        "encoder": Place(
            "encoder.albert_layer_groups.*.albert_layers", "attention", "embeddings.position_embeddings", shared=True
        )
    },
    "esm": {"encoder": Place("encoder.layer", "attention.self", _ROTARY_OR_NOT, scaled=True)},
    "modernbert": {"encoder": Place("layers", "attn", "rotary_emb")},
    "vit": {"encoder": Place("layers", "attention", "embeddings.position_embeddings")},
    "t5": _T5,
    "mt5": _T5,
    "umt5": _UMT5,
    "bart": _BART,
    "mbart": _BART,
    "marian": _BART,
    "pegasus": _BART,
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
    "gemma2": _LLAMA,
    "gemma3_text": _LLAMA,
    "phi3": _LLAMA,
    "smollm3": _LLAMA,
    "gpt_oss": {"decoder": Place("layers", "self_attn", "rotary_emb", halves=True)},
    "gpt_neox": {"decoder": Place("layers", "attention", "rotary_emb")},
    "gpt2": {"decoder": Place("h", "attn", "wpe")},
    "opt": {"decoder": Place("decoder.layers", "self_attn", "decoder.embed_positions", scaled=True)},
}
"""The place of each attention, by ``config.model_type``. Other models of the same form can be added."""


def places_of(model: Any) -> dict[Where, Place]:
    """The places of a model, the usual one first.

    Raises:
        PositionError: the model is of an unknown family.
    """
    kind = str(model.config.model_type)
    if kind not in FAMILIES:
        raise PositionError(
            f"a model of the type {kind!r} is not known; known are {listed(FAMILIES, 40)}. If its attention is that of "
            f"one of these, add it: structpe.adapters.transformers.FAMILIES[{kind!r}] = FAMILIES[...]"
        )
    return FAMILIES[kind]


def found_at(model: Any, paths: str) -> list[tuple[Any, str]]:
    """What a path of :class:`Place` leads to, as holders and names; that of the first path that the model has.

    Raises:
        AttributeError: the model has none of them.
    """
    for path in paths.split("|"):
        *before, name = path.split(".")
        holders = [model]
        for part in before:
            holders = [inner for each in holders for inner in (each if part == "*" else [getattr(each, part)])]
        if all(getattr(each, name, None) is not None for each in holders):
            return [(each, name) for each in holders]
    raise AttributeError(paths)


def sizes(attention: Any, layers: int) -> Dims:
    """The sizes of a position model: the heads of the queries, and their total width."""
    config = attention.config
    heads = _first(attention, config, ("num_attention_heads", "n_heads", "num_heads"))
    width = _first(attention, config, ("attention_head_size", "key_value_proj_dim", "head_dim", "head_size"))
    return Dims(heads * width, heads, layers)


def _first(attention: Any, config: Any, names: Sequence[str]) -> int:
    """The first of these attributes of the attention, or of the configuration."""
    for holder in (attention, config):
        for name in names:
            if isinstance(found := getattr(holder, name, None), int):
                return found
    raise PositionError(f"{type(attention).__name__} does not say how many heads it has, or how wide; it needs {names}")


def take_t5(position: PositionModel, model: Any, stack: Literal["encoder", "decoder"] = "encoder") -> PositionModel:
    """Copy the bias of a T5 checkpoint into a position model with the same buckets, and return the position model.

    Such models are ``t5``, ``t5-unshared``, ``t5-causal`` (for the decoder), ``glm-local`` and ``glm-global``; with the
    last two a T5 becomes a graph language model (Plenz and Frank 2024). Rows that T5 lacks, for units without a path,
    are copies of the bucket of the farthest keys ahead, which T5 uses for +infinity. Inject the position model with
    ``start="own"`` and ``instead=True``.

    Args:
        position: a position model built for :func:`structpe.adapters.dims`.
        model: a T5 or mT5 of Hugging Face.
        stack: the stack whose table is copied; the decoder's is for one direction.

    Raises:
        PositionError: the model has no such table, or the position model has other buckets or heads.
    """
    rows, table = getattr(position, "rows", None), getattr(position, "table", None)
    buckets = getattr(rows, "rule", None)
    if not isinstance(buckets, Buckets) or not isinstance(table, Table) or table.weight.ndim != 3:
        raise PositionError(
            f"position model {position.name!r} has no table of T5's buckets; those with one are t5, t5-unshared, "
            f"t5-causal, glm-local and glm-global"
        )
    try:
        theirs = (model.config.relative_attention_num_buckets, model.config.relative_attention_max_distance)
        held = found_at(model.base_model, places_of(model)[stack].own)
        own = torch.stack([getattr(each, name).weight for each, name in held])
    except (AttributeError, KeyError):
        raise PositionError(f"{type(model).__name__} has no table of relative biases in its {stack}") from None
    if (buckets.count, buckets.max_distance, buckets.bidirectional) != (*theirs, stack == "encoder"):
        raise PositionError(
            f"T5's {stack} has {theirs[0]} buckets and max_distance {theirs[1]}, "
            f"{'two' if stack == 'encoder' else 'one'}-way; position model {position.name!r} has {buckets.count} and "
            f"{buckets.max_distance}; build it with these"
        )
    if table.weight.shape[-1] != own.shape[2]:
        raise PositionError(f"T5 has {own.shape[2]} heads, the table of the position model {table.weight.shape[-1]}")
    if len(own) not in (1, len(table.weight)):
        raise PositionError(
            f"{type(model).__name__} has {len(own)} layers with a table each, and position model {position.name!r} has "
            f"one for {len(table.weight)}; choose t5-unshared, built for all layers"
        )
    if own.is_meta:  # a model without weights, for checking the form
        return position
    with torch.no_grad():
        table.weight[:, : buckets.count] = own.to(table.weight)
        table.weight[:, buckets.count :] = table.weight[:, buckets.count - 1 : buckets.count]
    return position
