"""The two kinds of pretrained models that write texts: an encoder and a decoder, or a decoder alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor

from structpe.adapters._collator import IGNORED
from structpe.adapters._families import FAMILIES
from structpe.errors import ConfigError

__all__ = ["Kind", "kind_of"]


class Kind(ABC):
    """How a model reads a source text and writes a target.

    Attributes:
        left: whether sources of a batch end together when texts are written, as these are written behind them.
    """

    left: ClassVar[bool]

    @abstractmethod
    def check(self, config: Any, name: str) -> None:
        """Check that a model of the configuration writes texts.

        Raises:
            ConfigError: it does not.
        """

    @abstractmethod
    def check_suffix(self, suffix: str) -> None:
        """Check what is read behind a graph.

        Raises:
            ConfigError: the model would not see where its text begins.
        """

    @abstractmethod
    def model(self) -> Any:
        """The class that builds such models."""

    @abstractmethod
    def source(self, added: Sequence[bool]) -> int:
        """How many tokens of a source are read, given of each whether it is a special one that the tokenizer added."""

    @abstractmethod
    def target(self, tokenizer: Any, source: str, text: str) -> list[int]:
        """The ids of a target text, with the special tokens before it."""

    @abstractmethod
    def row(self, source: Sequence[int], target: Sequence[int]) -> tuple[list[int], list[int]]:
        """What a model reads in training, and the labels that it is compared with."""

    @abstractmethod
    def scores(self, model: Any, given: dict[str, Any], labels: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (b, m, v) and the label (b, m) of each; -100 where nothing is compared."""

    @abstractmethod
    def written(self, generated: Tensor, read: int) -> Tensor:
        """(b, m) the new tokens, of what ``generate`` returned for sources of ``read`` tokens."""


class _EncoderDecoder(Kind):
    """T5, BART and kin: the source in the encoder, the target in the decoder."""

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


class _Decoder(Kind):
    """Llama, GPT-2 and kin: the target behind the source."""

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
        # Split together, as a tokenizer may treat the beginning of a text unlike a word behind a blank.
        whole = tokenizer.encode(f"{source} {text}", add_special_tokens=False)
        return [i for i, (start, _) in zip(whole.ids, whole.offsets, strict=True) if start >= len(source)]

    def row(self, source: Sequence[int], target: Sequence[int]) -> tuple[list[int], list[int]]:
        return [*source, *target], [IGNORED] * len(source) + list(target)

    def scores(self, model: Any, given: dict[str, Any], labels: Tensor) -> tuple[Tensor, Tensor]:
        return model(**given, use_cache=False).logits[:, :-1], labels[:, 1:]

    def written(self, generated: Tensor, read: int) -> Tensor:
        return generated[:, read:]


def kind_of(config: Any) -> Kind:
    """The kind of a configuration of Hugging Face."""
    return _EncoderDecoder() if config.is_encoder_decoder else _Decoder()
