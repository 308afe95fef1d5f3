"""Checkpoints of Hugging Face that write texts, from a folder or by name: configuration, tokenizer, weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from structpe.adapters._kinds import kind_of
from structpe.adapters._passes import NAME
from structpe.adapters.transformers import load, quietly, register, restore
from structpe.errors import ConfigError, StoreError, StructPEError, needing, reason_of
from structpe.transforms.units import as_tokenizer

__all__ = ["configuration", "empty", "filled", "made", "tokenizer"]

TOKENIZER = ("*token*", "vocab.*", "*.model")
"""The files of tokenizers, one of which at least a folder has."""


def configuration(name: str, options: Mapping[str, Any]) -> Any:
    """The configuration of a checkpoint.

    Args:
        name: a folder that ``save_pretrained`` wrote, or a name on the hub of Hugging Face.
        options: keys of the configuration to change, such as ``dropout_rate``.

    Raises:
        StoreError: there is no such checkpoint.
        ConfigError: the configuration has no such key, or the model does not write texts.
    """
    with needing("transformers", "hf"):
        from transformers import AutoConfig
    with _found("checkpoint", name):
        config = AutoConfig.from_pretrained(name)
    for key, value in options.items():
        if getattr(config, key, None) is None:
            raise ConfigError(f"a model of the type {config.model_type!r} has no option {key!r} to change")
        setattr(config, key, value)
    kind_of(config).check(config, name)
    return config


def tokenizer(name: str, config: Any) -> tuple[Any, int, int]:
    """The tokenizer in a folder, or of a name, and the ids of the tokens that pad and that end a text.

    Args:
        name: the folder or name.
        config: of the checkpoint.

    Raises:
        StoreError: there is none.
        TokenizerError: it is a slow one.
        ConfigError: it has more tokens than the model, none that ends a text, or writes another language than it
            reads.
    """
    with needing("transformers", "hf"):
        from transformers import AutoTokenizer
    with _found("tokenizer", name):
        if Path(name).is_dir() and not any(any(Path(name).glob(each)) for each in TOKENIZER):
            raise OSError(f"no file {' or '.join(TOKENIZER)}")  # transformers would make up one without words
        found = AutoTokenizer.from_pretrained(name)
    if getattr(found, "tgt_lang", None) not in (None, getattr(found, "src_lang", None)):
        raise ConfigError(
            f"the tokenizer {name} writes {found.tgt_lang} and reads {found.src_lang}, and here one form is for both; "
            f"inject into the model, whose collator knows the target language, and train with the Trainer"
        )
    fast, last = as_tokenizer(found), found.eos_token_id
    if last is None:
        raise ConfigError(f"the tokenizer {name} has no token that ends a text; set its eos_token, and save it again")
    if (size := fast.get_vocab_size()) > config.vocab_size:
        raise ConfigError(
            f"the tokenizer {name} has {size} tokens, the model {config.vocab_size}; give that of the checkpoint"
        )
    return fast, last if found.pad_token_id is None else found.pad_token_id, last


def filled(name: str, config: Any) -> Any:
    """The model with the weights of a checkpoint, in float32; with its position models, if it has some.

    Raises:
        StoreError: there are no weights in the form of safetensors, or they do not fit the configuration.
    """
    cls, options = kind_of(config).model(), {"config": config, **_single()}
    with _found("weights (model.safetensors)", name):
        if getattr(config, NAME, None):
            return load(cls, name, **options)
        return quietly(cls, name, {**options, "use_safetensors": True})


def empty(config: Any) -> Any:
    """The model before any weights are read, in float32; with its position models, if its configuration has some."""
    register()
    model = kind_of(config).model().from_config(config, **_single())
    restore(model)
    return model


def made(described: Mapping[str, Any]) -> Any:
    """The configuration that ``to_dict`` described."""
    from transformers import AutoConfig

    return AutoConfig.for_model(**described)


def _single() -> dict[str, Any]:
    import torch

    return {"dtype": torch.float32}


@contextmanager
def _found(what: str, name: str) -> Iterator[None]:
    """A context in which something of a checkpoint is read.

    Raises:
        StoreError: reading fails. Libraries raise many kinds of exceptions for this.
    """
    try:
        yield
    except (StructPEError, MemoryError):
        raise
    except Exception as error:
        reason = reason_of(error)
        if Path(name).is_dir():
            raise StoreError(
                f"the folder {name} has no {what} that can be read ({reason}); give a folder to which save_pretrained "
                f"of transformers wrote it"
            ) from None
        raise StoreError(
            f"there is no folder {name}, and no {what} of this name could be fetched ({reason}); check the name. "
            f"Without a network, fetch it on a machine with one (hf download {name} --local-dir FOLDER), and give the "
            f"folder"
        ) from None
