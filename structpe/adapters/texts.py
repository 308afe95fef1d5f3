"""Pretrained models of Hugging Face that write texts: their kinds, their checkpoints, and the tokens of graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from structpe.adapters._hf_models import FAMILIES
from structpe.adapters._passes import NAME
from structpe.adapters._tokens import IGNORED, NONE, TokenPositions, padded
from structpe.adapters.transformers import load, quietly, register, restore
from structpe.data.batch import as_one
from structpe.data.chunks import columns
from structpe.encodings.base import Encoded, Encoding
from structpe.errors import ConfigError, StoreError, StructPEError, StructureError, needing, reason_of
from structpe.formats import Item
from structpe.plain.options import UNITS, bounded
from structpe.positions.batch import join
from structpe.structure import Ids, Structure
from structpe.transforms.texts import Form, Written, with_readable_labels, written
from structpe.transforms.units import as_tokenizer

__all__ = [
    "ModelKind",
    "TextBatch",
    "TextExample",
    "Texts",
    "TextsConfig",
    "configuration",
    "empty",
    "filled",
    "kind_of",
    "made",
    "tokenizer",
]


class ModelKind(ABC):
    """How a model reads a source text and writes a target.

    Attributes:
        left: whether sources are padded on the left when texts are generated, as these follow them.
    """

    left: ClassVar[bool]

    @abstractmethod
    def check(self, config: Any, name: str) -> None:
        """Check that a model of the configuration can write texts.

        Raises:
            ConfigError: it cannot.
        """

    @abstractmethod
    def check_suffix(self, suffix: str) -> None:
        """Check the text after a graph.

        Raises:
            ConfigError: it is empty, and the model could not tell where its text begins.
        """

    @abstractmethod
    def model(self) -> Any:
        """The class of ``transformers`` that builds such models."""

    @abstractmethod
    def source(self, added: Sequence[bool]) -> int:
        """The number of tokens of a source that are read.

        Args:
            added: for each token, whether it is a special token that the tokenizer added.
        """

    @abstractmethod
    def target(self, tokenizer: Any, source: str, text: str) -> list[int]:
        """The ids of a target text, with the special tokens before it."""

    @abstractmethod
    def row(self, source: Sequence[int], target: Sequence[int]) -> tuple[list[int], list[int]]:
        """The input ids and the labels for training."""

    @abstractmethod
    def scores(self, model: Any, given: dict[str, Any], labels: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (b, m, v) and their labels (b, m); -100 is ignored."""

    @abstractmethod
    def written(self, generated: Tensor, read: int) -> Tensor:
        """(b, m) the new tokens in the output of ``generate``, for sources of ``read`` tokens."""


class _EncoderDecoder(ModelKind):
    """Models such as T5 and BART: the source is in the encoder, the target in the decoder."""

    left = False

    def check(self, config: Any, name: str) -> None:
        if config.decoder_start_token_id is None:
            raise ConfigError(f"the configuration of {name} has no decoder_start_token_id; add it to its config.json")

    def check_suffix(self, suffix: str) -> None:
        del suffix  # the decoder begins with the text

    def model(self) -> Any:
        from transformers import AutoModelForSeq2SeqLM

        return AutoModelForSeq2SeqLM

    def source(self, added: Sequence[bool]) -> int:
        return len(added)

    def target(self, tokenizer: Any, source: str, text: str) -> list[int]:
        return list(tokenizer.encode(text).ids)

    def row(self, source: Sequence[int], target: Sequence[int]) -> tuple[list[int], list[int]]:
        return list(source), list(target)

    def scores(self, model: Any, given: dict[str, Any], labels: Tensor) -> tuple[Tensor, Tensor]:
        shifted = model.prepare_decoder_input_ids_from_labels(labels=labels)
        return model(**given, decoder_input_ids=shifted, use_cache=False).logits, labels

    def written(self, generated: Tensor, read: int) -> Tensor:
        return generated[:, 1:]


class _Decoder(ModelKind):
    """Models such as Llama and GPT-2: the target follows the source."""

    left = True

    def check(self, config: Any, name: str) -> None:
        from transformers import AutoModelForCausalLM

        places = FAMILIES.get(config.model_type, {"decoder": None})
        if type(config) not in AutoModelForCausalLM._model_mapping or "decoder" not in places:
            raise ConfigError(
                f"{name} is a model of the type {config.model_type!r}, which does not write texts; give an "
                f"encoder-decoder, such as T5 or BART, or a decoder, such as Llama or GPT-2"
            )

    def check_suffix(self, suffix: str) -> None:
        if not suffix.strip():
            raise ConfigError(
                "prepare.suffix is empty; a model that is a decoder alone writes behind the graph, and needs a sign "
                "where its text begins, such as prepare.suffix=' Text:'"
            )

    def model(self) -> Any:
        from transformers import AutoModelForCausalLM

        return AutoModelForCausalLM

    def source(self, added: Sequence[bool]) -> int:
        return max((i + 1 for i, special in enumerate(added) if not special), default=len(added))

    def target(self, tokenizer: Any, source: str, text: str) -> list[int]:
        # Tokenized together, since a tokenizer may treat the beginning of a text unlike a word after a blank.
        whole = tokenizer.encode(f"{source} {text}", add_special_tokens=False)
        return [i for i, (start, _) in zip(whole.ids, whole.offsets, strict=True) if start >= len(source)]

    def row(self, source: Sequence[int], target: Sequence[int]) -> tuple[list[int], list[int]]:
        return [*source, *target], [IGNORED] * len(source) + list(target)

    def scores(self, model: Any, given: dict[str, Any], labels: Tensor) -> tuple[Tensor, Tensor]:
        return model(**given, use_cache=False).logits[:, :-1], labels[:, 1:]

    def written(self, generated: Tensor, read: int) -> Tensor:
        return generated[:, read:]


def kind_of(config: Any) -> ModelKind:
    """The kind of a configuration of Hugging Face."""
    return _EncoderDecoder() if config.is_encoder_decoder else _Decoder()


@dataclass(frozen=True)
class TextsConfig:
    """How items are prepared for a pretrained model.

    Args:
        tokenizer: folder or name of a fast tokenizer; null for that of the checkpoint.
        graph: the text that the model reads: ``linear``, the depth-first walk with brackets; ``levi``, each node and
            each relation once; ``plain``, the nodes only.
        labels: ``readable`` writes node labels as words (``want-01`` as "want"); ``raw`` keeps them.
        prompt: text before the graph, including the blank that separates it.
        suffix: text after the graph, including the blank that separates it. A decoder without an encoder needs one, as
            a sign where its text begins.
        lowercase: whether texts are lowercased.
        longest_source: largest number of tokens of a graph, including prompt and suffix; a longer one is an error.
        longest_target: largest number of tokens of a text for training; longer ones are left out and counted.
    """

    tokenizer: str | None = None
    graph: Form = "linear"
    labels: Literal["readable", "raw"] = "readable"
    prompt: str = ""
    suffix: str = ""
    lowercase: bool = False
    longest_source: int = 512
    longest_target: int = 256

    def __post_init__(self) -> None:
        bounded(self, "prepare.", longest_source=(1, UNITS), longest_target=(1, UNITS))


@dataclass(frozen=True, eq=False)
class TextExample:
    """A graph as tokens, encoded, and a text for it.

    Attributes:
        structure: the graph, with its units.
        ids: (s,) ids of the source.
        units: (s,) unit of each token; -1 for none.
        encoded: the values of each encoding.
        target: (t,) ids of the text, including the end token; None without a text.
        texts: all reference texts.
        id: id of the item.
    """

    structure: Structure
    ids: Ids
    units: Ids
    encoded: Mapping[Encoding, Encoded]
    target: NDArray[np.int64] | None
    texts: tuple[str, ...]
    id: str

    @property
    def size(self) -> int:
        """Number of tokens of the source."""
        return len(self.ids)

    @property
    def cost(self) -> int:
        """Number of tokens of the source and the text."""
        return self.size + (0 if self.target is None else len(self.target))


@dataclass(frozen=True, eq=False)
class TextBatch:
    """A batch for a model of Hugging Face.

    Attributes:
        given: the arguments ``input_ids``, ``attention_mask``, and ``structpe`` for position models.
        labels: the labels, -100 is ignored; None without texts.
    """

    given: Mapping[str, Any]
    labels: Tensor | None

    def to(self, device: torch.device | str, non_blocking: bool = False) -> TextBatch:
        """The batch on another device."""
        moved = {name: each.to(device, non_blocking=non_blocking) for name, each in self.given.items()}
        return TextBatch(moved, None if self.labels is None else self.labels.to(device, non_blocking=non_blocking))


as_one(TextBatch)


class Texts:
    """Prepares items for a pretrained model, in training and in use.

    Args:
        config: the form of graphs and texts.
        tokenizer: of the ``tokenizers`` library.
        padding: id of the padding token.
        last: id of the token that ends a text.
        kind: how the model reads and writes.
        encodings: encodings of its position models.
    """

    def __init__(
        self,
        config: TextsConfig,
        tokenizer: Any,
        padding: int,
        last: int,
        kind: ModelKind,
        encodings: Sequence[Encoding],
    ) -> None:
        self.config, self.padding, self.last, self.kind = config, padding, last, kind
        self.encodings = tuple(encodings)
        self.tokenizer = type(tokenizer).from_str(tokenizer.to_str())  # a copy that neither truncates nor pads
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()

    def structure(self, item: Item) -> Structure:
        """The graph of an item, with tokens as units."""
        return self._written(item).structure

    def examples(self, items: Iterable[Item], every_text: bool = False, jobs: int = 1) -> list[TextExample]:
        """Encode items.

        Args:
            items: from a reader.
            every_text: one example per reference text, for training; otherwise one per item, with the first text.
            jobs: number of processes that encode; the examples do not depend on it.

        Raises:
            StructureError: a graph has more tokens than ``longest_source``, or lacks something that its form needs.
        """
        each = [(item, self._written(item)) for item in items]
        encoded = columns([made.structure for _, made in each], self.encodings, jobs)
        examples = []
        for number, (item, made) in enumerate(each):
            mine = {encoding: column[number] for encoding, column in encoded.items()}
            base = TextExample(made.structure, made.ids, made.units, mine, None, item.texts, item.id)
            for text in (item.texts if every_text else item.texts[:1]) or (None,):
                target = None if text is None else self._target(made.text, text)
                if not every_text or target is None or len(target) <= self.config.longest_target:
                    examples.append(replace(base, target=target))
        return examples

    def collate(self, examples: Sequence[TextExample], writes: bool = False) -> TextBatch:
        """Make a batch.

        Args:
            examples: the examples, in order.
            writes: whether the batch is for generation, without targets.
        """
        left = writes and self.kind.left
        pairs = [(list(each.ids), None) if writes else self._row(each) for each in examples]
        rows, labels = [ids for ids, _ in pairs], [each for _, each in pairs if each is not None]
        given: dict[str, Any] = {
            "input_ids": padded(rows, self.padding, left),
            "attention_mask": padded([[1] * len(row) for row in rows], 0, left),
        }
        if self.encodings:
            positions = join({e: [each.encoded[e] for each in examples] for e in self.encodings})
            units = [[*each.units, *[NONE] * (len(row) - each.size)] for each, row in zip(examples, rows, strict=True)]
            structures = [each.structure for each in examples]
            given["structpe"] = TokenPositions.joined(structures, units, positions, left=left)
        return TextBatch(given, padded(labels, IGNORED, False) if labels else None)

    def _row(self, example: TextExample) -> tuple[list[int], list[int] | None]:
        """The input ids and the labels for training."""
        ids, target = example.ids.tolist(), example.target
        return (ids, None) if target is None else self.kind.row(ids, target.tolist())

    def text(self, ids: Sequence[int]) -> str:
        """Decode ids, up to the end of the text."""
        kept = list(ids)
        kept = kept[: kept.index(self.last)] if self.last in kept else kept
        return str(self.tokenizer.decode(kept)).strip()

    def _written(self, item: Item) -> Written:
        config = self.config
        graph = with_readable_labels(item.structure) if config.labels == "readable" else item.structure
        made = written(graph, self.tokenizer, config.graph, config.prompt, config.suffix)
        read = self.kind.source(made.added)
        if read > config.longest_source:
            raise StructureError(
                f"the graph has {read} tokens, longest_source is {config.longest_source}; raise "
                f"prepare.longest_source or leave this item out"
            ).at(graph.name or item.id)
        return replace(made, ids=made.ids[:read], units=made.units[:read])

    def _target(self, source: str, text: str) -> NDArray[np.int64]:
        ids = self.kind.target(self.tokenizer, source, text.lower() if self.config.lowercase else text)
        return np.array(ids if ids and ids[-1] == self.last else [*ids, self.last])


TOKENIZER = ("*token*", "vocab.*", "*.model")
"""Files of tokenizers; a folder with a tokenizer has at least one of them."""


def configuration(name: str, options: Mapping[str, Any]) -> Any:
    """Load the configuration of a checkpoint.

    Args:
        name: a folder that ``save_pretrained`` wrote, or a name on the hub of Hugging Face.
        options: keys of the configuration to change, such as ``dropout_rate``.

    Raises:
        StoreError: the checkpoint does not exist.
        ConfigError: a key does not exist, or the model cannot write texts.
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
    """Load a tokenizer; return it with the ids of its padding token and of the token that ends a text.

    Args:
        name: the folder or name.
        config: the configuration of the checkpoint.

    Raises:
        StoreError: the tokenizer does not exist.
        TokenizerError: it is not a fast tokenizer.
        ConfigError: it has more tokens than the model, no token that ends a text, or different languages for sources
            and targets.
    """
    with needing("transformers", "hf"):
        from transformers import AutoTokenizer
    with _found("tokenizer", name):
        if Path(name).is_dir() and not any(any(Path(name).glob(each)) for each in TOKENIZER):
            raise OSError(f"no file {' or '.join(TOKENIZER)}")  # transformers would make an empty tokenizer
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
    """Load a model with the weights of a checkpoint, in float32, and with its position models.

    Raises:
        StoreError: there are no safetensors weights, or they do not fit the configuration.
    """
    cls, options = kind_of(config).model(), {"config": config, "dtype": torch.float32}
    with _found("weights (model.safetensors)", name):
        if getattr(config, NAME, None):
            return load(cls, name, **options)
        return quietly(cls, name, {**options, "use_safetensors": True})


def empty(config: Any) -> Any:
    """Build a model without loading weights, in float32, and with the position models of its configuration."""
    register()
    model = kind_of(config).model().from_config(config, dtype=torch.float32)
    restore(model)
    return model


def made(described: Mapping[str, Any]) -> Any:
    """Build a configuration from its plain data, the inverse of ``to_dict``."""
    from transformers import AutoConfig

    return AutoConfig.for_model(**described)


@contextmanager
def _found(what: str, name: str) -> Iterator[None]:
    """A context for loading a part of a checkpoint.

    Raises:
        StoreError: loading fails, for which libraries raise many kinds of exceptions.
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
