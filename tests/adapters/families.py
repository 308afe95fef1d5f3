"""Small random models of further families of Hugging Face, made from configurations; a row for each."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import transformers as hf

from tests.adapters.models import HEADS, LAYERS, WORDS

_SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 37,
    "vocab_size": WORDS,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_GROUPED = _SIZES | {"num_key_value_heads": 2, "head_dim": 8}
_BOTH: dict[str, Any] = {
    "d_model": 32, "encoder_layers": LAYERS, "decoder_layers": LAYERS, "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS, "encoder_ffn_dim": 37, "decoder_ffn_dim": 37, "vocab_size": WORDS,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": None,
    "max_position_embeddings": 64,
}  # fmt: skip
_T5: dict[str, Any] = {
    "d_model": 32, "d_kv": 8, "d_ff": 37, "num_layers": LAYERS, "num_heads": HEADS, "decoder_start_token_id": 0,
    "vocab_size": WORDS, "pad_token_id": 0, "eos_token_id": 2,
}  # fmt: skip
_WINDOW: dict[str, Any] = {"sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}

Row = tuple[Any, Callable[[], Any]]
ENCODERS: dict[str, Row] = {
    "xlm-roberta": (hf.XLMRobertaForMaskedLM, lambda: hf.XLMRobertaConfig(**_SIZES)),
    "camembert": (hf.CamembertForMaskedLM, lambda: hf.CamembertConfig(**_SIZES)),
    "electra": (hf.ElectraForMaskedLM, lambda: hf.ElectraConfig(**_SIZES, embedding_size=16)),
    "distilbert": (
        hf.DistilBertForMaskedLM,
        lambda: hf.DistilBertConfig(dim=32, n_heads=HEADS, n_layers=LAYERS, hidden_dim=37, vocab_size=WORDS),
    ),
    "albert": (hf.AlbertForMaskedLM, lambda: hf.AlbertConfig(**_SIZES, embedding_size=16)),
    "esm": (
        hf.EsmForMaskedLM,
        lambda: hf.EsmConfig(**_SIZES, mask_token_id=3, position_embedding_type="rotary", max_position_embeddings=64),
    ),
    "vit": (
        hf.ViTForImageClassification,
        lambda: hf.ViTConfig(**_SIZES, image_size=6, patch_size=2, num_channels=1, num_labels=5),
    ),
}
BOTH: dict[str, Row] = {
    "mt5": (hf.MT5ForConditionalGeneration, lambda: hf.MT5Config(**_T5)),
    "umt5": (hf.UMT5ForConditionalGeneration, lambda: hf.UMT5Config(**_T5)),
    "mbart": (hf.MBartForConditionalGeneration, lambda: hf.MBartConfig(**_BOTH)),
    "marian": (hf.MarianMTModel, lambda: hf.MarianConfig(**_BOTH)),
    "pegasus": (hf.PegasusForConditionalGeneration, lambda: hf.PegasusConfig(**_BOTH)),
}
DECODERS: dict[str, Row] = {
    "mistral": (hf.MistralForCausalLM, lambda: hf.MistralConfig(**_GROUPED, sliding_window=4)),
    "qwen2": (
        hf.Qwen2ForCausalLM,
        lambda: hf.Qwen2Config(**_SIZES, num_key_value_heads=2, use_sliding_window=True, **_WINDOW),
    ),
    "qwen3": (hf.Qwen3ForCausalLM, lambda: hf.Qwen3Config(**_GROUPED)),
    "gemma2": (
        hf.Gemma2ForCausalLM,
        lambda: hf.Gemma2Config(**_GROUPED, **_WINDOW, attn_logit_softcapping=2.0, query_pre_attn_scalar=4),
    ),
    "gemma3_text": (
        hf.Gemma3ForCausalLM,
        lambda: hf.Gemma3TextConfig(**_GROUPED, **_WINDOW, query_pre_attn_scalar=4),
    ),
    "phi3": (
        hf.Phi3ForCausalLM,
        lambda: hf.Phi3Config(
            **_SIZES, num_key_value_heads=2,
            rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5},
        ),
    ),
    "smollm3": (hf.SmolLM3ForCausalLM, lambda: hf.SmolLM3Config(**_GROUPED, no_rope_layers=[1, 0])),
    "gpt_oss": (
        hf.GptOssForCausalLM,
        lambda: hf.GptOssConfig(
            **_GROUPED | {"intermediate_size": 40}, **_WINDOW, num_local_experts=2, num_experts_per_tok=1,
            rope_parameters={"rope_type": "default", "rope_theta": 1e4},
        ),
    ),
    "gpt_neox": (hf.GPTNeoXForCausalLM, lambda: hf.GPTNeoXConfig(**_SIZES)),
    "opt": (
        hf.OPTForCausalLM,
        lambda: hf.OPTConfig(
            hidden_size=32, word_embed_proj_dim=32, num_hidden_layers=LAYERS, num_attention_heads=HEADS, ffn_dim=37,
            vocab_size=WORDS, pad_token_id=0, bos_token_id=1, eos_token_id=2, max_position_embeddings=64,
        ),
    ),
}  # fmt: skip
ROWS: dict[str, Row] = {**ENCODERS, **BOTH, **DECODERS}

SINGLE = frozenset({"gemma2", "gpt_oss"})
"""Those whose own attention answers NaN to padding in float64, or whose experts are not computed in it."""


def small(name: str) -> Any:
    """A random model, whose attention is not uniform."""
    return copy.deepcopy(_small(name))


@cache
def _small(name: str) -> Any:
    cls, config = ROWS[name]
    model = cls(config()).eval()
    model = model if name in SINGLE else model.double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim > 1:
                parameter.copy_(noise * 1.5 / parameter.shape[-1] ** 0.5)
            else:
                parameter.add_(noise * 0.1)
    return model
