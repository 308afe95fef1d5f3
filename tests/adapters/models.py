"""Small random models of Hugging Face, made from configurations, and a tokenizer: nothing is downloaded."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import transformers as hf
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from structpe.structure import Structure

HEADS, LAYERS, WORDS = 4, 2, 60

_SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 37,
}
_BOTH: dict[str, Any] = {"encoder_layers": LAYERS, "decoder_layers": LAYERS, "encoder_attention_heads": HEADS}
_MARKS: dict[str, Any] = {"vocab_size": WORDS, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_T5: dict[str, Any] = {
    "d_model": 32,
    "d_kv": 16,
    "d_ff": 37,
    "num_layers": LAYERS,
    "num_heads": HEADS,
    "decoder_start_token_id": 0,
}
_T5 |= {"vocab_size": WORDS, "pad_token_id": 0, "eos_token_id": 2}

CONFIGS: dict[str, Callable[[], Any]] = {
    "bert": lambda: hf.BertConfig(**_SIZES, vocab_size=WORDS, pad_token_id=0, max_position_embeddings=64),
    "roberta": lambda: hf.RobertaConfig(**_SIZES, **_MARKS, max_position_embeddings=66),
    "modernbert": lambda: hf.ModernBertConfig(**_SIZES, **_MARKS, cls_token_id=1, sep_token_id=2, local_attention=4),
    "t5": lambda: hf.T5Config(**_T5),
    "bart": lambda: hf.BartConfig(
        **_BOTH, **_MARKS, d_model=32, decoder_attention_heads=HEADS, encoder_ffn_dim=37, decoder_ffn_dim=37,
        decoder_start_token_id=2, forced_eos_token_id=None, max_position_embeddings=64,
    ),
    "llama": lambda: hf.LlamaConfig(**_SIZES, **_MARKS, num_key_value_heads=2),
    "gpt2": lambda: hf.GPT2Config(
        n_embd=32, n_layer=LAYERS, n_head=HEADS, n_positions=64, vocab_size=WORDS, bos_token_id=1, eos_token_id=2
    ),
}  # fmt: skip
HEADED: dict[str, Any] = {
    "bert": hf.BertForMaskedLM,
    "roberta": hf.RobertaForMaskedLM,
    "modernbert": hf.ModernBertForMaskedLM,
    "t5": hf.T5ForConditionalGeneration,
    "bart": hf.BartForConditionalGeneration,
    "llama": hf.LlamaForCausalLM,
    "gpt2": hf.GPT2LMHeadModel,
}
"""The class of each, with the head of a language model."""
ENCODERS, WRITERS = ("bert", "roberta", "modernbert", "t5", "bart"), ("t5", "bart", "llama", "gpt2")

GRAPH = Structure(("a", "b", "c", "d"), [(0, 1), (0, 2), (2, 3)], root=0)  # type: ignore[arg-type]
SMALL = Structure(("a", "b"), [(0, 1)], root=0)  # type: ignore[arg-type]
UNITS = ([-1, 0, 1, 2, -1, 3], [-1, 0, 1, -1, -1])
"""Which unit each token of two texts is; between and around them are tokens of a prompt and special ones."""


def small(name: str, seed: int = 0) -> Any:
    """A random model; its weights are larger than usual, if those of T5 are not, so that attention is not uniform."""
    model = copy.deepcopy(_small(name, seed))
    torch.manual_seed(seed)
    return model


@cache
def _small(name: str, seed: int) -> Any:
    torch.manual_seed(seed)
    model = HEADED[name](CONFIGS[name]()).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4 if parameter.ndim == 2 and name != "t5" else 1)
    return model


def without_dropout(model: Any) -> Any:
    """The model, which then computes in training what it computes otherwise."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if isinstance(getattr(module, "dropout", None), float):
            module.dropout = 0.0
    return model


def texts(model: Any, length: int = 8) -> dict[str, Any]:
    """Two texts, the second with padding at its end."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(3, WORDS, (2, length), generator=generator)
    mask = torch.ones(2, length, dtype=torch.int64)
    mask[1, 5:] = 0
    batch = {"input_ids": ids, "attention_mask": mask}
    if model.config.is_encoder_decoder:
        batch["labels"] = torch.randint(3, WORDS, (2, 5), generator=generator)
    return batch


def logits(model: Any, **batch: Any) -> torch.Tensor:
    """The scores at the tokens that are no padding."""
    with torch.no_grad():
        found: torch.Tensor = model(**batch).logits
    return found if model.config.is_encoder_decoder else found[batch["attention_mask"].bool()]


def tokenizer(**options: Any) -> Any:
    """Words, with [CLS] and [SEP] around a text."""
    words = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "a", "b", "c", "d", "the", "graph", ":", "##b", "says"]
    fast = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fast.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, [("[CLS]", 1), ("[SEP]", 2)])
    marks = {"pad_token": "[PAD]", "unk_token": "[UNK]", "eos_token": "[SEP]", "cls_token": "[CLS]"}
    made: Any = hf.PreTrainedTokenizerFast
    return made(tokenizer_object=fast, **{**marks, **options})
