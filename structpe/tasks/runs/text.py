"""Runs that train models that write texts, from scratch or from a checkpoint of Hugging Face.

Files with what a run learns before training:

=====================  ==================================================================================
tokenizer.json         the subword vocabulary
prepare.json           the form of the graph, numbers of edge labels
positions.json         the position models, with what their encodings learned from the training data
pretrained.json        the configuration of the checkpoint, its position models, with what their encodings
                       learned from the training data, and the special tokens
subwords.json          the tokenizer, in the form of the ``tokenizers`` library
=====================  ==================================================================================

A trained model needs these files and its weights, but not the checkpoint. Training needs the checkpoint, also when it
resumes.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch

from structpe.adapters import texts as texts_module
from structpe.adapters.hosts import dims, inject
from structpe.adapters.texts import Texts, kind_of
from structpe.adapters.transformers import asked, take_t5
from structpe.data.digests import digest, structures
from structpe.data.prepare import TRAIN_AFRESH, Preparer
from structpe.errors import ConfigError, StoreError, located, undamaged
from structpe.formats import Item, as_items
from structpe.nn.seq2seq import EncoderDecoder
from structpe.plain.options import recorded
from structpe.positions.build import build, fitted
from structpe.system.files import atomic_text, atomic_write
from structpe.system.printing import say
from structpe.tasks.config import Reads, differences, split_given
from structpe.tasks.graph_to_text.config import GraphToTextConfig, PretrainedTextConfig, TextConfig
from structpe.tasks.graph_to_text.generator import (
    NAME_TEXTS,
    Generator,
    GraphTextExample,
    TextModel,
    UnitTextModel,
    read_split,
    with_reader,
    with_texts,
)
from structpe.tasks.graph_to_text.pretrained import Pretrained, PretrainedTextModel
from structpe.tasks.graph_to_text.task import GraphToText
from structpe.tasks.runs.base import Run, TrainingSetup, load_run
from structpe.tasks.training.folder import check_devices, device_of
from structpe.tasks.training.result import WEIGHTS, Result
from structpe.tasks.training.result import digest as digest_of_weights

__all__ = ["GraphToTextRun", "PretrainedTextRun", "Splits", "TextRun", "text_run"]


C = TypeVar("C", bound=TextConfig)
L = TypeVar("L")


class Splits(NamedTuple):
    """The items of the training and validation splits."""

    train: Sequence[Item]
    dev: Sequence[Item]


class TextRun(Run[C, Splits, L, Result], ABC):
    """Base class of runs from structures to texts."""

    result_class = Result
    free = ("out", "name", "data.test", *Run.free)
    extra = "train"
    keeps_checkpoints = True

    @abstractmethod
    def untrained(self, learned: L) -> TextModel:
        """The model before training."""

    @abstractmethod
    def trained(self) -> TextModel:
        """The best model so far, in evaluation mode.

        Raises:
            StoreError: a file is damaged.
        """

    @property
    def kept(self) -> C:
        return replace(self.config, data=with_reader(self.config.data))

    def reads(self) -> Reads:
        data = with_reader(self.config.data)
        return Reads(data.reader, data.options, data.on_error)

    @abstractmethod
    def digests(self, learned: L, text_model: TextModel) -> Mapping[str, str]:
        """Digests of everything learned or read before training that training depends on."""

    def check_data(self) -> None:
        """Check that there are data, in one way, and that a validation that they allow is asked for.

        Raises:
            ConfigError: there are none, or two ways, or a key of the validation has no effect.
        """
        named, given = self.config.data.train is not None, self.given is not None
        if not named and not given:
            raise ConfigError(
                "data.train is null, and no items are given; name a file or folder (data.train), or give items in "
                "Python: structpe.train(config, data=items)"
            )
        paths: Any = self.config.data.train  # in Python a list may hold anything
        if not isinstance(paths, str) and (odd := [each for each in paths or () if not isinstance(each, str)]):
            raise ConfigError(
                f"data.train names files, and {repr(odd[0])[:80]} is no path; give items as data: "
                f"structpe.train(config, data=items)"
            )
        if named and given:
            raise ConfigError("data.train names files, and items are given as data; leave one of the two out")
        self.config.check_validation(bool(self._source("dev")))

    def read(self) -> Splits:
        return Splits(self._split("train"), self._split("dev") if self._source("dev") else [])

    def _source(self, part: Literal["train", "dev"]) -> Any:
        """The items of a split, or files with them; None if there is no such split."""
        found = split_given(self.given, part)
        return getattr(self.config.data, part) if found is None else found

    def _split(self, part: Literal["train", "dev"]) -> list[Item]:
        source = self._source(part)
        if isinstance(source, (str, Path)):
            files: dict[str, Any] = {part: str(source)}
            return read_split(replace(self.config.data, **files), part, NAME_TEXTS)
        if source is getattr(self.config.data, part):
            return read_split(self.config.data, part, NAME_TEXTS)
        with located(f"data, {part}"):
            return with_texts(as_items(source), self.config.data.on_error)

    def setup(self, data: Splits, learned: L) -> TrainingSetup[Result]:
        text_model, training = self.untrained(learned), self.config.training
        content = dict(self.digests(learned, text_model))
        with located("training"):
            examples = text_model.encoded(data.train, every_text=True, jobs=training.hardware.jobs)
        with located("validation"):
            dev = text_model.encoded(data.dev, jobs=training.hardware.jobs)
        _tell(data.train, examples, dev, text_model)
        _try(text_model, [*examples, *dev])
        task = GraphToText(text_model, dev, self.config)
        sizes = np.array([example.cost for example in examples])
        content |= {**_content("training", examples), **_content("validation", dev)}
        drawn = text_model.drawn(examples, training.seed)
        return TrainingSetup(task, training, drawn, sizes, text_model.collate, content, lambda result: result)

    def ready(self, device: torch.device) -> Generator:
        if not (self.folder / WEIGHTS).exists():
            raise StoreError(f"{self.folder} holds no model.safetensors; training writes it at the first validation")
        text_model = self.trained()
        text_model.model.to(device)
        return Generator(text_model, self.kept, device)


def text_run(folder: str | Path) -> TextRun[Any, Any]:
    """The run in a folder, which must be one that writes texts.

    Raises:
        StoreError: the folder holds no run, or a run of another kind, or a file is damaged.
    """
    run = load_run(folder)
    if not isinstance(run, TextRun):
        raise StoreError(f"{folder} holds a run of {run.name}, which writes no texts; use it by structpe predict")
    return run


def _try(text_model: TextModel, examples: Sequence[GraphTextExample]) -> None:
    """Compute the loss of the longest text and of the largest graph, to find errors of position models at once.

    Raises:
        PositionError: for example, a text or graph is larger than a table of positions.
    """
    graph = max(examples, key=lambda e: e.size)
    text = max(examples, key=lambda e: 0 if e.target is None else len(e.target))
    text_model.model.eval()
    with torch.no_grad():
        for example in (graph, text):
            text_model.loss(text_model.collate([example]), 0.0)
    text_model.model.train()


def _content(what: str, examples: Sequence[GraphTextExample]) -> dict[str, str]:
    return {
        **structures(f"{what} graphs", [example.structure for example in examples]),
        f"ids of units of the {what} graphs": digest(example.ids for example in examples),
        f"{what} texts": digest((example.texts, example.target) for example in examples),
    }


def _tell(
    items: Sequence[Item], examples: Sequence[GraphTextExample], dev: Sequence[GraphTextExample], text_model: TextModel
) -> None:
    parameters = sum(p.numel() for p in text_model.model.parameters())
    trained = sum(p.numel() for p in text_model.model.parameters() if p.requires_grad)
    counted = f"{parameters:,} parameters" + (f", {trained:,} of them trained" if trained < parameters else "")
    say(f"{len(examples)} training texts of {len(items)} graphs, {len(dev)} for validation, {counted}")
    if left := sum(len(item.texts) for item in items) - len(examples):
        say(f"{left} texts longer than prepare.longest_target are left out of training")
    if not examples:
        raise ConfigError("all training texts are longer than prepare.longest_target; raise it")


LearnedUnits: TypeAlias = tuple[Preparer, dict[str, Any]]
"""The preparer, and the descriptions of the position models of ``encoder`` and ``decoder``."""


class GraphToTextRun(TextRun[GraphToTextConfig, LearnedUnits], name="graph-to-text"):
    """An encoder-decoder from structures to texts, trained from scratch."""

    config_class = GraphToTextConfig
    learned_files = ("tokenizer.json", "prepare.json", "positions.json")

    def check(self) -> None:
        """Build a small model, to find errors of the configuration before data are read."""
        self.check_data()
        config = self.config
        with located("position"):
            encoder = build(config.position, config.model.dims("encoder"))
        with located("decoder_position"):
            decoder = build(config.decoder_position, config.model.dims("decoder"))
        EncoderDecoder(config.model, 8, encoder, decoder)
        self._earlier()
        check_devices(config.training.hardware)

    def learn(self, data: Splits) -> LearnedUnits:
        if (earlier := self._earlier()) is not None:
            known, positions = earlier.restore()
            return Preparer(self.config.prepare, known.tokenizer, known.edge_types), positions
        config, preparer = self.config, Preparer.fit(data.train, self.config.prepare)
        return preparer, {
            "encoder": fitted(
                config.position,
                config.model.dims("encoder"),
                lambda: [preparer.structure(item) for item in data.train],
            ),
            "decoder": fitted(config.decoder_position, config.model.dims("decoder"), lambda: []),
        }

    def write(self, learned: LearnedUnits) -> None:
        preparer, positions = learned
        preparer.save(self.folder)
        atomic_text(self.folder / "positions.json", json.dumps(positions, indent=2, ensure_ascii=False))

    def restore(self) -> LearnedUnits:
        preparer, file = Preparer.load(self.folder), self.folder / "positions.json"
        with undamaged(file, TRAIN_AFRESH):
            positions = json.loads(file.read_text(encoding="utf-8"))
            return preparer, {side: positions[side] for side in ("encoder", "decoder")}

    def model(self, learned: LearnedUnits) -> EncoderDecoder:
        """The model before training."""
        preparer, positions = learned
        torch.manual_seed(self.config.training.seed)
        encoder, decoder = (build(positions[side], self.config.model.dims(side)) for side in ("encoder", "decoder"))
        return EncoderDecoder(self.config.model, preparer.vocabulary_size, encoder, decoder, preparer.edge_types.size)

    def untrained(self, learned: LearnedUnits) -> TextModel:
        model = self.model(learned)
        if (earlier := self._earlier()) is not None:
            earlier.best(model)
            model.train()
        return UnitTextModel(model, learned[0], device_of(self.config.training.hardware).type)

    def digests(self, learned: LearnedUnits, text_model: TextModel) -> Mapping[str, str]:
        preparer, positions = learned
        assert isinstance(text_model.model, EncoderDecoder)
        started = self.config.start is not None
        return ({"weights to start from": digest_of_weights(text_model.model.state_dict())} if started else {}) | {
            "vocabulary": digest([preparer.tokenizer.to_str()]),
            "numbers of relation labels": digest([preparer.edge_types.relations]),
            "position models": digest([json.dumps(positions, sort_keys=True)]),
            "versions of encodings": digest(each.versions() for each in text_model.model.encoder.position.encodings),
        }

    def load(self) -> tuple[EncoderDecoder, Preparer]:
        """The best model so far, in evaluation mode, and its preparer."""
        if not (self.folder / WEIGHTS).exists():
            raise StoreError(f"{self.folder} holds no model.safetensors; training writes it at the first validation")
        learned = self.restore()
        with recorded():
            return self.filled(lambda: self.model(learned)), learned[0]

    def trained(self) -> TextModel:
        return UnitTextModel(*self.load())

    def _earlier(self) -> GraphToTextRun | None:
        """The run whose weights this one starts from; None if it starts from new ones.

        Raises:
            ConfigError: that run is of another kind or model, is not finished, or is this run itself.
            StoreError: its folder holds no run, or a file is damaged.
        """
        if self.config.start is None:
            return None
        with located("start"):
            run = load_run(self.config.start)
            if not isinstance(run, GraphToTextRun):
                raise ConfigError(f"{run.folder} holds a run of {run.name}; give one of {self.name}")
            if run.folder.resolve() == self.folder.resolve():
                raise ConfigError(f"{run.folder} is the folder of this run itself; choose another one (out)")
            if not run.finished():
                raise ConfigError(f"the run in {run.folder} is not finished; finish it first")
            if other := [key for key in differences(run.config, self.config) if _shapes(key)]:
                raise ConfigError(
                    f"the run in {run.folder} has another model; they differ in {', '.join(other)}. Give these the "
                    f"values of that run, or null for start"
                )
            return run


def _shapes(key: str) -> bool:
    """Whether a key of the configuration changes the shapes or the meaning of weights."""
    return key.split(".")[0] in ("prepare", "model", "position", "decoder_position") and key not in (
        *("prepare.bpe_dropout", "prepare.longest_source", "prepare.longest_target", "model.kernel"),
        *("model.dropout", "model.attention_dropout", "model.input_dropout"),
    )


DESCRIBED, SUBWORDS = "pretrained.json", "subwords.json"


class LearnedPretrained(NamedTuple):
    """The state of a run before training.

    Attributes:
        model: the configuration of the checkpoint, as plain data.
        positions: the description of each position model.
        padding: id of the padding token.
        last: id of the token that ends a text.
        tokenizer: of the ``tokenizers`` library.
    """

    model: dict[str, Any]
    positions: list[Any]
    padding: int
    last: int
    tokenizer: Any


class PretrainedTextRun(TextRun[PretrainedTextConfig, LearnedPretrained], name="pretrained-text"):
    """A pretrained model from structures to texts, with position models in its attention."""

    config_class = PretrainedTextConfig
    learned_files = (DESCRIBED, SUBWORDS)

    @classmethod
    def means(cls, data: Mapping[str, Any]) -> bool:
        return isinstance(model := data.get("model"), Mapping) and "pretrained" in model

    def check(self) -> None:
        """Build the model without memory for its weights, to find errors before data are read.

        Raises:
            StoreError: there is no such checkpoint or tokenizer.
            PositionError: a position model does not fit the checkpoint.
            ConfigError: another key is wrong, or the tokenizer belongs to another checkpoint.
        """
        self.check_data()
        described = self._read()
        kind_of(described).check_suffix(self.config.prepare.suffix)
        with torch.device("meta"):
            model = texts_module.empty(described)
        self._inject(model, [each.position for each in self.config.inject])
        self._tokenizer(model.config)
        check_devices(self.config.training.hardware)

    def learn(self, data: Splits) -> LearnedPretrained:
        described = self._read()
        with torch.device("meta"):
            model = texts_module.empty(described)
        tokenizer, padding, last = self._tokenizer(described)
        texts = Texts(self.config.prepare, tokenizer, padding, last, kind_of(described), ())
        positions = [
            fitted(
                each.position, dims(model, each.where, each.layers), lambda: [texts.structure(i) for i in data.train]
            )
            for each in self.config.inject
        ]
        return LearnedPretrained(
            json.loads(described.to_json_string(use_diff=False)), positions, padding, last, texts.tokenizer
        )

    def write(self, learned: LearnedPretrained) -> None:
        plain = {key: value for key, value in learned._asdict().items() if key != "tokenizer"}
        atomic_text(self.folder / DESCRIBED, json.dumps(plain, indent=2, ensure_ascii=False))
        atomic_write(self.folder / SUBWORDS, lambda hidden: learned.tokenizer.save(str(hidden)))

    def restore(self) -> LearnedPretrained:
        from tokenizers import Tokenizer

        for name in self.learned_files:
            if not (self.folder / name).exists():
                raise StoreError(f"{self.folder} holds no {name}; give the folder of a finished or running training")
        with undamaged(self.folder / SUBWORDS, TRAIN_AFRESH):
            tokenizer = Tokenizer.from_file(str(self.folder / SUBWORDS))
        with undamaged(self.folder / DESCRIBED, TRAIN_AFRESH):
            plain = json.loads((self.folder / DESCRIBED).read_text(encoding="utf-8"))
            return LearnedPretrained(**plain, tokenizer=tokenizer)

    def untrained(self, learned: LearnedPretrained) -> PretrainedTextModel:
        described = self._read()
        torch.manual_seed(self.config.training.seed)
        model = texts_module.filled(self.config.model.pretrained, described)
        self._inject(model, learned.positions)
        return self._text_model(Pretrained(model.train()), learned)

    def trained(self) -> PretrainedTextModel:
        learned = self.restore()

        def made() -> Pretrained:
            model = texts_module.empty(texts_module.made(learned.model))
            self._inject(model, learned.positions)
            return Pretrained(model)

        return self._text_model(self.filled(made), learned)

    def load(self) -> tuple[Any, Texts]:
        """The best model so far, in evaluation mode, and the preparation of its texts."""
        text_model = self.trained()
        return text_model.model.model, text_model.preparer

    def digests(self, learned: LearnedPretrained, text_model: TextModel) -> Mapping[str, str]:
        model = text_model.model
        assert isinstance(model, Pretrained)
        return {
            "tokenizer": digest([learned.tokenizer.to_str()]),
            "configuration of the checkpoint": digest([json.dumps(learned.model, sort_keys=True, default=str)]),
            "weights of the checkpoint": digest_of_weights(model.state_dict()),
            "position models": digest([json.dumps(learned.positions, sort_keys=True)]),
            "versions of encodings": digest(each.versions() for each in asked(model.model)),
        }

    def _read(self) -> Any:
        """The configuration of the checkpoint."""
        with located("model.pretrained"):
            return texts_module.configuration(self.config.model.pretrained, self.config.model.options)

    def _tokenizer(self, described: Any) -> tuple[Any, int, int]:
        """The tokenizer, and the ids of its padding token and of the token that ends a text."""
        name = self.config.prepare.tokenizer or self.config.model.pretrained
        with located("prepare.tokenizer"):
            return texts_module.tokenizer(name, described)

    def _inject(self, model: Any, positions: Sequence[Any]) -> None:
        freeze = self.config.model.freeze
        for number, (each, described) in enumerate(zip(self.config.inject, positions, strict=True)):
            with located(f"inject[{number}]"):
                if (each.where, each.structures) == ("decoder", "given") and model.config.is_encoder_decoder:
                    raise ConfigError(
                        "structures is given and where is decoder, whose tokens belong to the text and are not units "
                        "of the graph; give structures: path, or where: encoder or cross"
                    )
                position = build(described, dims(model, each.where, each.layers))
                instead = each.start == "checkpoint"
                if instead:
                    take_t5(position, model, "encoder" if each.where in (None, "encoder") else "decoder")
                start: Literal["zero", "own"] = "own" if each.start == "checkpoint" else each.start
                options: dict[str, Any] = {"where": each.where, "layers": each.layers, "structures": each.structures}
                inject(model, position, start=start, instead=instead, freeze=freeze, **options)

    def _text_model(self, model: Pretrained, learned: LearnedPretrained) -> PretrainedTextModel:
        kind, config = kind_of(model.model.config), self.config
        texts = Texts(config.prepare, learned.tokenizer, learned.padding, learned.last, kind, asked(model.model))
        return PretrainedTextModel(model, texts, config.model.position_rate)
