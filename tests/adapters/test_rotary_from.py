"""Rotary positions of Hugging Face's configurations: cosines and sines are theirs, to the bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import (
    BertConfig,
    CohereConfig,
    DINOv3ViTConfig,
    Gemma3TextConfig,
    GPTNeoXConfig,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen3VLTextConfig,
    VJEPA2Config,
)
from transformers.models.cohere.modeling_cohere import CohereRotaryEmbedding
from transformers.models.cohere.modeling_cohere import apply_rotary_pos_emb as apply_to_pairs
from transformers.models.dinov3_vit.modeling_dinov3_vit import DINOv3ViTRopePositionEmbedding
from transformers.models.gemma3.modeling_gemma3 import Gemma3RotaryEmbedding
from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding
from transformers.models.gpt_neox.modeling_gpt_neox import apply_rotary_pos_emb as apply_to_part
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextRotaryEmbedding
from transformers.models.vjepa2.modeling_vjepa2 import VJEPA2RopeAttention

from structpe.adapters.rotary import rotary_from
from structpe.errors import ConfigError
from structpe.positions import Dims, Site
from structpe.positions.batch import encode
from structpe.positions.build import build
from structpe.structure import path
from structpe.transforms import grid

SIZES: dict[str, Any] = {"hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": 128}
DIMS = Dims(64, 4, 1)
SHORT, LONG = [1 + i / 10 for i in range(8)], [1.0 + i for i in range(8)]
TYPES: dict[str, dict[str, Any]] = {
    "default": {},
    "linear": {"factor": 4.0},
    "dynamic": {"factor": 2.0},
    "yarn": {"factor": 8.0, "original_max_position_embeddings": 64},
    "llama3": {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    },
    "longrope": {
        "factor": 4.0,
        "short_factor": SHORT,
        "long_factor": LONG,
        "original_max_position_embeddings": 64,
    },
    "proportional": {"partial_rotary_factor": 0.4, "factor": 2.0},
}


def cos_sin(config: dict[str, Any], n: int) -> list[Any]:
    model = build(config, DIMS)
    found = model.cos_sin(encode([path(["w"] * n)], model.encodings))  # type: ignore[operator]
    return [torch.cat([each, each], -1) for each in found]


def test_the_types_of_rotary_positions_are_those_of_today() -> None:
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    assert {"default", *ROPE_INIT_FUNCTIONS} == set(TYPES)


@pytest.mark.parametrize("length", [50, 150])
@pytest.mark.parametrize("kind", TYPES)
def test_every_type_to_the_bit(kind: str, length: int) -> None:
    config = LlamaConfig(**SIZES, rope_parameters={"rope_type": kind, "rope_theta": 5e5, **TYPES[kind]})
    theirs = LlamaRotaryEmbedding(config)(torch.zeros(1), torch.arange(length)[None])
    for mine, table in zip(cos_sin(rotary_from(config, length=length), length), theirs, strict=True):
        assert mine.dtype == table.dtype
        assert torch.equal(mine, table)


@pytest.mark.parametrize("length", [50, 64, 65, 150])
def test_longrope2_has_the_frequencies_of_longrope_with_short_factors_of_1(length: int) -> None:
    parameters = {"rope_type": "longrope", "rope_theta": 1e4, **TYPES["longrope"], "short_factor": [1.0] * 8}
    theirs = rotary_from(LlamaConfig(**SIZES, rope_parameters=parameters), length=length)
    mine = {"name": "longrope2", "factors": LONG, "original_length": 64, "scale": 4.0, "attention_factor": 2.0}
    factor = 2.0 if length > 64 else 1.0
    for found, table in zip(
        cos_sin(mine, length), cos_sin({**theirs, "attention_factor": factor}, length), strict=True
    ):
        torch.testing.assert_close(found.float(), table, rtol=0, atol=2e-5)


def test_a_share_of_channels() -> None:
    parameters = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25}
    config = GPTNeoXConfig(**SIZES, rope_parameters=parameters)
    x = torch.randn(1, 4, 9, 16)
    cos, sin = GPTNeoXRotaryEmbedding(config)(x, torch.arange(9)[None])
    theirs, _ = apply_to_part(x, x, cos, sin)  # type: ignore[no-untyped-call]
    assert torch.equal(through(rotary_from(config), x), theirs)


def test_the_layout_is_that_of_the_code() -> None:
    config = CohereConfig(**SIZES, rope_parameters={"rope_type": "default", "rope_theta": 1e4})
    x = torch.randn(1, 4, 9, 16)
    cos, sin = CohereRotaryEmbedding(config)(x, torch.arange(9)[None])
    theirs, _ = apply_to_pairs(x, x, cos, sin)  # type: ignore[no-untyped-call]
    assert rotary_from(config)["layout"] == "pairs"
    torch.testing.assert_close(through(rotary_from(config), x), theirs, rtol=0, atol=1e-6)
    assert rotary_from(Qwen2Config())["layout"] == "halves"
    assert rotary_from(LlamaForCausalLM(LlamaConfig(**SIZES, num_hidden_layers=1)))["layout"] == "halves"


def test_layers_of_two_types() -> None:
    each = {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6}}
    each["sliding_attention"] = {"rope_type": "default", "rope_theta": 1e4}
    config = Gemma3TextConfig(**SIZES, head_dim=16, rope_parameters=each)
    for kind in each:
        theirs = Gemma3RotaryEmbedding(config)(torch.zeros(1), torch.arange(9)[None], kind)
        for mine, table in zip(cos_sin(rotary_from(config, layer_type=kind), 9), theirs, strict=True):
            assert torch.equal(mine, table)
    with pytest.raises(ConfigError, match=r"layer_type is None, give one of 'full_attention', 'sliding_attention'"):
        rotary_from(config)


def test_several_axes() -> None:
    """Time, row and column of Qwen3-VL, whose pairs are interleaved."""
    parameters = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [4, 2, 2], "mrope_interleaved": True}
    config = Qwen3VLTextConfig(**SIZES, head_dim=16, rope_parameters=parameters)
    places = torch.randint(0, 30, (3, 1, 9))
    theirs = Qwen3VLTextRotaryEmbedding(config)(torch.zeros(1), places)
    axes = [{"name": "feature", "key": key} for key in "thw"]
    image = replace(path(["w"] * 9), features={key: row[0].numpy() for key, row in zip("thw", places, strict=True)})
    model = build({**rotary_from(config), "axes": axes}, DIMS)
    for mine, table in zip(model.cos_sin(encode([image], model.encodings)), theirs, strict=True):  # type: ignore[operator]
        assert torch.equal(torch.cat([mine, mine], -1), table)


def test_what_has_no_rotary_positions_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"BertConfig has no rope_parameters; give the configuration of a rotary"):
        rotary_from(BertConfig())
    with pytest.raises(ConfigError, match=r"LlamaConfig has one kind of rotary positions; leave layer_type out"):
        rotary_from(LlamaConfig(**SIZES), layer_type="full_attention")


def through(config: dict[str, Any], x: Any) -> Any:
    model = build(config, DIMS)
    (turn,) = model.terms(model.prepare(encode([path(["w"] * 9)], model.encodings)), Site(0)).maps
    return turn(x, x)[0]


def test_the_coordinates_of_dinov3_are_those_of_transformers() -> None:
    config = DINOv3ViTConfig(hidden_size=64, num_attention_heads=2, patch_size=4, image_size=32)
    theirs = DINOv3ViTRopePositionEmbedding(config).eval()(torch.zeros(1, 3, 20, 12))
    model = build(rotary_from(config), Dims(64, 2, 1)).eval()
    mine = model.cos_sin(encode([grid((5, 3))], model.encodings))  # type: ignore[operator]
    for found, table in zip(mine, theirs, strict=True):
        torch.testing.assert_close(torch.cat([found[0]] * 2, dim=-1).float(), table, rtol=0, atol=2e-6)
    config.pos_embed_shift = 0.5
    with pytest.raises(ConfigError, match=r"pos_embed_shift=0.5, which 'dinov3-rotary' does not; set it to None"):
        rotary_from(config)


def test_v_jepa_2_turns_as_transformers_do() -> None:
    """To the bit, with their channels of a pair at two angles."""
    config = VJEPA2Config(hidden_size=64, num_attention_heads=2, crop_size=16, patch_size=4, frames_per_clip=4)
    block = VJEPA2RopeAttention(config, 64, 2)
    q, k = torch.randn(2, 1, 2, 32, 32)
    places = block.get_position_ids(torch.zeros(1, 32, 64))
    model = build(rotary_from(config), Dims(64, 2, 1))
    (turn,) = model.terms(model.prepare(encode([grid((2, 4, 4))], model.encodings)), Site(0)).maps
    for mine, given in zip(turn(q, k), (q, k), strict=True):
        assert torch.equal(mine, block.apply_rotary_embeddings(given, places))
