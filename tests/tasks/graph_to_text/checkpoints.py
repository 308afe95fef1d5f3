"""Small random checkpoints on disk, with a tokenizer that is made here, and configurations that train them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers as hf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from structpe.tasks.config import make, merged
from structpe.tasks.graph_to_text.config import PretrainedTextConfig, PretrainedTraining
from tests.adapters.models import CONFIGS, HEADED
from tests.tasks.graph_to_text.tiny import AMR, split

UNITS = 320
POSITION = {"name": "shaw", "encoding": "undirected-distance"}
LONG = {"gpt2": {"n_positions": 256}, "bart": {"max_position_embeddings": 256}}


def tokenizer() -> Any:
    """Pieces of bytes, as those of GPT-2 and Llama 3; special tokens around a text as the kind of model has them."""
    fast = Tokenizer(models.BPE())
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    marks, letters = ["<pad>", "<s>", "</s>"], pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=UNITS, special_tokens=marks, initial_alphabet=letters, show_progress=False)
    fast.train_from_iterator([(AMR / "train.txt").read_text(encoding="utf-8")], trainer)
    return fast


def checkpoint(folder: Path, name: str) -> Path:
    """What ``save_pretrained`` writes of a small random model and its tokenizer."""
    writes = name in ("t5", "bart")
    fast, form = tokenizer(), "$A </s>" if writes else "<s> $A"
    fast.post_processor = processors.TemplateProcessing(form, None, [("<s>", 1), ("</s>", 2)])
    made: Any = hf.PreTrainedTokenizerFast
    made(tokenizer_object=fast, pad_token="<pad>", bos_token="<s>", eos_token="</s>").save_pretrained(folder)
    torch.manual_seed(0)
    config = CONFIGS[name]()
    config.vocab_size = UNITS
    for key, value in LONG.get(name, {}).items():
        setattr(config, key, value)
    HEADED[name](config).save_pretrained(folder)
    return folder


def tuned(folder: Path, given: Path, **keys: Any) -> PretrainedTextConfig:
    """A configuration whose data and run lie in the folder; the position model enters where the model first has one."""
    training = {
        "steps": 4,
        "batch_size": 4,
        "optimiser": {"learning_rate": 0.01, "warmup": 1},
        "validation": {"every": 2},
        "checkpoint_every": 2,
        "logs": {"every": 1},
        "hardware": {"accelerator": "cpu"},
    }
    plain = {
        "data": {"train": split(folder, "train", 10), "dev": split(folder, "dev", 3), "reader": "amr"},
        "prepare": {"prompt": "graph: ", "suffix": " Text:"},
        "model": {"pretrained": str(given)},
        "inject": [{"position": POSITION}],
        "search": {"beam": 2, "longest": 8},
        "out": str(folder / "run"),
    }
    plain |= {key: {**plain.get(key, {}), **value} if isinstance(value, dict) else value for key, value in keys.items()}  # type: ignore[dict-item]
    training = merged(PretrainedTraining, training, keys.get("training", {}))
    return make(PretrainedTextConfig, {**plain, "training": training})
