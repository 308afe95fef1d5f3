"""A run of graph to text with a pretrained model of Hugging Face.

Files with what it learns before training:

=====================  ==================================================================================
pretrained.json        the configuration of the checkpoint, the position models that enter it, with what their
                       encodings learned of the training data, and the special tokens
subwords.json          the tokenizer, in the form of the ``tokenizers`` library
=====================  ==================================================================================

So a trained model can be used without its checkpoint. Training, also when it goes on, reads the checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from structpe.adapters import _checkpoints as checkpoints
from structpe.adapters._kinds import kind_of
from structpe.adapters._texts import Texts
from structpe.adapters.transformers import asked, dims, inject, take_t5
from structpe.data.digests import digest
from structpe.data.prepare import AFRESH
from structpe.errors import ConfigError, StoreError, located, undamaged
from structpe.files import atomic_text, atomic_write
from structpe.positions.build import build
from structpe.tasks.graph_to_text.config import PretrainedTextConfig
from structpe.tasks.graph_to_text.pretrained import Pretrained, PretrainedWriter
from structpe.tasks.graph_to_text.writer import Writer
from structpe.tasks.positions import fitted
from structpe.tasks.runs._text import Splits, TextRun
from structpe.tasks.training.folder import check_devices
from structpe.tasks.training.weights import digest as digest_of_weights

__all__ = ["PretrainedTextRun"]

DESCRIBED, SUBWORDS = "pretrained.json", "subwords.json"


class Learned(NamedTuple):
    """What is known before training.

    Attributes:
        model: the configuration of the checkpoint, as plain data.
        positions: the description of each position model that enters it.
        padding: id of a token that pads.
        last: id of the token that ends a text.
        tokenizer: of the ``tokenizers`` library.
    """

    model: dict[str, Any]
    positions: list[Any]
    padding: int
    last: int
    tokenizer: Any


class PretrainedTextRun(TextRun[PretrainedTextConfig, Learned], name="pretrained-text"):
    """A structure is read, a text is written, by a pretrained model with position models in its attention."""

    configured = PretrainedTextConfig
    learns = (DESCRIBED, SUBWORDS)

    def check(self) -> None:
        """Build the model without memory for its numbers, so that errors are found before data are read.

        Raises:
            StoreError: there is no such checkpoint or tokenizer.
            PositionError: a position model does not fit the checkpoint.
            ConfigError: another key is wrong, or the tokenizer is that of another checkpoint.
        """
        described, _ = self._read()
        kind_of(described).check_suffix(self.config.prepare.suffix)
        model = self._without_numbers(described)
        self._inject(model, [each.position for each in self.config.inject])
        self._tokenizer(model.config)
        check_devices(self.config.training)

    def learn(self, data: Splits) -> Learned:
        described, _ = self._read()
        model = self._without_numbers(described)
        tokenizer, padding, last = self._tokenizer(described)
        texts = Texts(self.config.prepare, tokenizer, padding, last, kind_of(described), ())
        positions = [
            fitted(
                each.position, dims(model, each.where, each.layers), lambda: [texts.structure(i) for i in data.train]
            )
            for each in self.config.inject
        ]
        return Learned(json.loads(described.to_json_string(use_diff=False)), positions, padding, last, texts.tokenizer)

    def write(self, learned: Learned) -> None:
        plain = {key: value for key, value in learned._asdict().items() if key != "tokenizer"}
        atomic_text(self.folder / DESCRIBED, json.dumps(plain, indent=2, ensure_ascii=False))
        atomic_write(self.folder / SUBWORDS, lambda hidden: learned.tokenizer.save(str(hidden)))

    def restore(self) -> Learned:
        from tokenizers import Tokenizer

        for name in self.learns:
            if not (self.folder / name).exists():
                raise StoreError(f"{self.folder} holds no {name}; give the folder of a finished or running training")
        with undamaged(self.folder / SUBWORDS, AFRESH):
            tokenizer = Tokenizer.from_file(str(self.folder / SUBWORDS))
        with undamaged(self.folder / DESCRIBED, AFRESH):
            plain = json.loads((self.folder / DESCRIBED).read_text(encoding="utf-8"))
            return Learned(**plain, tokenizer=tokenizer)

    def writer(self, learned: Learned) -> PretrainedWriter:
        described, name = self._read()
        torch.manual_seed(self.config.training.seed)
        model = checkpoints.filled(name, described)
        self._inject(model, learned.positions)
        return self._writer(Pretrained(model.train()), learned)

    def trained(self) -> PretrainedWriter:
        learned = self.restore()

        def made() -> Pretrained:
            model = checkpoints.empty(checkpoints.made(learned.model))
            self._inject(model, learned.positions)
            return Pretrained(model)

        return self._writer(self.filled(made), learned)

    def load(self) -> tuple[Any, Texts]:
        """The best model so far, ready for use, and what prepares texts for it."""
        writer = self.trained()
        return writer.model.model, writer.preparer

    def digests(self, learned: Learned, writer: Writer) -> Mapping[str, str]:
        model = writer.model
        assert isinstance(model, Pretrained)
        return {
            "tokenizer": digest([learned.tokenizer.to_str()]),
            "configuration of the checkpoint": digest([json.dumps(learned.model, sort_keys=True, default=str)]),
            "weights of the checkpoint": digest_of_weights(model.state_dict()),
            "position models": digest([json.dumps(learned.positions, sort_keys=True)]),
            "versions of encodings": digest(each.versions() for each in asked(model.model)),
        }

    def _read(self) -> tuple[Any, str]:
        """The configuration of the checkpoint, and its name."""
        name = self.config.model.pretrained
        with located("model.pretrained"):
            return checkpoints.configuration(name, self.config.model.options), name

    def _tokenizer(self, described: Any) -> tuple[Any, int, int]:
        """The tokenizer, and the ids of the tokens that pad and that end a text."""
        name = self.config.prepare.tokenizer or self.config.model.pretrained
        with located("prepare.tokenizer"):
            return checkpoints.tokenizer(name, described)

    def _without_numbers(self, described: Any) -> Any:
        with torch.device("meta"):
            return checkpoints.empty(described)

    def _inject(self, model: Any, positions: Sequence[Any]) -> None:
        freeze = self.config.model.freeze
        for number, (each, described) in enumerate(zip(self.config.inject, positions, strict=True)):
            with located(f"inject[{number}]"):
                if (each.where, each.structures) == ("decoder", "given") and model.config.is_encoder_decoder:
                    raise ConfigError(
                        "structures is given and where is decoder, whose tokens are those of the text: they are no "
                        "units of the graph; give structures: path, or where: encoder or cross"
                    )
                position = build(described, dims(model, each.where, each.layers))
                if each.start == "checkpoint":
                    take_t5(position, model, "encoder" if each.where in (None, "encoder") else "decoder")
                    inject(model, position, each.where, each.layers, "own", each.structures, True, freeze)
                else:
                    inject(model, position, each.where, each.layers, each.start, each.structures, False, freeze)

    def _writer(self, model: Pretrained, learned: Learned) -> PretrainedWriter:
        kind, config = kind_of(model.model.config), self.config
        texts = Texts(config.prepare, learned.tokenizer, learned.padding, learned.last, kind, asked(model.model))
        return PretrainedWriter(model, texts, config.model.position_rate)
