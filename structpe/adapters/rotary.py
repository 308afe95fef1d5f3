"""Rotary positions of a Hugging Face configuration, as plain data for :func:`structpe.build`."""

from __future__ import annotations

import importlib
from typing import Any, Literal

import torch

from structpe.errors import ConfigError, listed

__all__ = ["rotary_from"]


def rotary_from(
    config: Any,
    *,
    length: int | None = None,
    layer_type: str | None = None,
    layout: Literal["pairs", "halves"] | None = None,
) -> dict[str, Any]:
    """The rotary positions of a model of Hugging Face, for :func:`structpe.build`: the same cosines and sines, exactly.

    Frequencies are those of ``transformers`` itself, in single precision, for every ``rope_type``: with the scaling,
    the share of channels and the factor of attention that the configuration says. DINOv3 and V-JEPA 2, which have the
    coordinates of an image or video in place of the order of a text, are read too. Add ``encoding`` or ``axes`` for
    other places; ``structpe.build(rotary_from(config), dims)`` needs ``dims`` with heads of
    the same width.

    Args:
        config: of a model, or the model; of a model of texts and images, that of its text part.
        length: number of units of the text: with "dynamic" and "longrope" frequencies depend on it, and are here those
            of one length; None for those of training.
        layer_type: the kind of layers, for models in which some differ, such as "full_attention" in Gemma 3.
        layout: which channels are a pair; None to ask the code of the model.

    Raises:
        ConfigError: it has no rotary positions, several kinds of them, or none of which the code says the layout.
    """
    config = getattr(config, "config", config)  # of a model
    if of_images := _IMAGES.get(getattr(config, "model_type", "")):
        return of_images(config)
    given = getattr(config, "rope_parameters", None)
    if not given:
        raise ConfigError(f"{type(config).__name__} has no rope_parameters; give the configuration of a rotary model")
    parameters = given
    if "rope_type" not in given:
        kinds = [name for name, each in given.items() if isinstance(each, dict)]
        if layer_type not in kinds:
            wrong = f"{type(config).__name__} has rotary positions for each type of layer; layer_type is {layer_type!r}"
            raise ConfigError(f"{wrong}, give one of {listed(map(repr, kinds))}")
        parameters = given[layer_type]
    elif layer_type is not None:
        raise ConfigError(f"{type(config).__name__} has one kind of rotary positions; leave layer_type out")
    frequencies, factor = _frequencies(config, parameters, length, layer_type)
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    sections = parameters.get("mrope_section")
    return {
        "name": "rotary",
        "layout": layout or _layout(config),
        "fraction": 2 * len(frequencies) / width,
        "frequencies": frequencies.tolist(),
        "attention_factor": float(factor),
        "precision": "single",
        **({} if sections is None else {"sections": list(sections)}),
        **({"order": "interleaved"} if parameters.get("mrope_interleaved") else {}),
    }


def _dinov3(config: Any) -> dict[str, Any]:
    if config.pos_embed_shift:
        raise ConfigError(
            f"{type(config).__name__} shifts coordinates in training, pos_embed_shift={config.pos_embed_shift}, which "
            f"'dinov3-rotary' does not; set it to None"
        )
    stretched = {"jitter": config.pos_embed_jitter or 1.0, "rescale": config.pos_embed_rescale or 1.0}
    return {"name": "dinov3-rotary", "base": float(config.rope_theta), **stretched}


def _vjepa2(config: Any) -> dict[str, Any]:
    width = config.hidden_size // config.num_attention_heads
    pairs = width // 3 // 2
    # In the order of operations of transformers, whose last bits follow from it.
    frequencies = 1.0 / 10000 ** (torch.arange(pairs, dtype=torch.float32) / pairs)
    return {
        "name": "rotary",
        "layout": "tiled",
        "fraction": 6 * pairs / width,
        "axes": [{"name": "coordinates", "axes": 3}],
        "frequencies": frequencies.tolist() * 3,
        "precision": "single",
    }


_IMAGES = {"dinov3_vit": _dinov3, "vjepa2": _vjepa2}
"""Kinds of models whose positions are those of images and videos."""


def _frequencies(config: Any, parameters: Any, length: int | None, layer_type: str | None) -> tuple[Any, float]:
    """Inverse frequencies, float32, and the factor of cosines and sines."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    if (kind := parameters["rope_type"]) in ROPE_INIT_FUNCTIONS:
        found: tuple[Any, float] = ROPE_INIT_FUNCTIONS[kind](config, "cpu", seq_len=length, layer_type=layer_type)
        return found
    if kind != "default":
        known = listed(map(repr, ["default", *ROPE_INIT_FUNCTIONS]))
        raise ConfigError(f"the rope_type of {type(config).__name__} is {kind!r}; known are {known}")
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    turned = int(width * parameters.get("partial_rotary_factor", 1.0))
    # In the order of operations of transformers, whose last bits follow from it.
    return 1.0 / parameters["rope_theta"] ** (torch.arange(0, turned, 2).float() / turned), 1.0


def _layout(config: Any) -> Literal["pairs", "halves"]:
    """What the function ``rotate_half`` of a model's code does."""
    name = type(config).__module__.replace("configuration_", "modeling_")
    turn = getattr(importlib.import_module(name), "rotate_half", None)
    if turn is not None:
        turned = turn(torch.arange(4.0)).tolist()
        if turned == [-2.0, -3.0, 0.0, 1.0]:
            return "halves"
        if turned == [-1.0, 0.0, -3.0, 2.0]:
            return "pairs"
    raise ConfigError(f"the code of {type(config).__name__} does not say which channels are a pair; give layout=...")
