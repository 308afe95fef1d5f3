"""A run of graph to text.

Files with what it learns before training:

=====================  ==================================================================================
tokenizer.json         the subword vocabulary
prepare.json           the form of the graph, numbers of edge labels
positions.json         the position models, with what their encodings learned of the training data
=====================  ==================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from structpe.data.digests import digest, structures
from structpe.data.prepare import AFRESH, Example, Preparer
from structpe.errors import ConfigError, StoreError, located, undamaged
from structpe.files import atomic_text
from structpe.nn.seq2seq import EncoderDecoder
from structpe.positions import Dims, PositionModel
from structpe.positions.build import build
from structpe.readers import Item
from structpe.tasks.graph_to_text.config import GraphToTextConfig
from structpe.tasks.graph_to_text.generator import Generator
from structpe.tasks.graph_to_text.source import read_split
from structpe.tasks.graph_to_text.task import GraphToText
from structpe.tasks.positions import fitted
from structpe.tasks.runs.base import Run, Work
from structpe.tasks.training.folder import check_devices
from structpe.tasks.training.progress import say
from structpe.tasks.training.result import Result
from structpe.tasks.training.weights import WEIGHTS

__all__ = ["GraphToTextRun", "Splits"]

Learned: TypeAlias = tuple[Preparer, dict[str, Any]]
"""The preparer, and the descriptions of the position models by side."""


class Splits(NamedTuple):
    """The items to train on, and to select by."""

    train: Sequence[Item]
    dev: Sequence[Item]


class GraphToTextRun(Run[GraphToTextConfig, Splits, Learned, Result], name="graph-to-text"):
    """A structure is encoded, a text is written."""

    configured, result = GraphToTextConfig, Result
    learns = ("tokenizer.json", "prepare.json", "positions.json")
    free = ("out", "name", "data.test", "training.workers", "training.jobs")
    extra = "train"
    keeps_checkpoints = True

    def check(self) -> None:
        """Build a small model of the configuration, so that errors in it are found before data are read."""
        config = self.config
        encoder, decoder = (
            _built(position, config.model.dims(side), f"{side}_position")
            for side, position in (("encoder", config.encoder_position), ("decoder", config.decoder_position))
        )
        EncoderDecoder(config.model, 8, encoder, decoder)
        check_devices(config.training)

    def read(self) -> Splits:
        data = self.config.data
        return Splits(_with_texts(read_split(data, "train")), _with_texts(read_split(data, "dev")) if data.dev else [])

    def learn(self, data: Splits) -> Learned:
        config, preparer = self.config, Preparer.fit(data.train, self.config.prepare)
        return preparer, {
            "encoder": fitted(
                config.encoder_position,
                config.model.dims("encoder"),
                lambda: [preparer.structure(item) for item in data.train],
            ),
            "decoder": fitted(config.decoder_position, config.model.dims("decoder"), lambda: []),
        }

    def write(self, learned: Learned) -> None:
        preparer, positions = learned
        preparer.save(self.folder)
        atomic_text(self.folder / "positions.json", json.dumps(positions, indent=2, ensure_ascii=False))

    def restore(self) -> Learned:
        preparer, file = Preparer.load(self.folder), self.folder / "positions.json"
        with undamaged(file, AFRESH):
            positions = json.loads(file.read_text(encoding="utf-8"))
            return preparer, {side: positions[side] for side in ("encoder", "decoder")}

    def model(self, learned: Learned) -> EncoderDecoder:
        """The model as it is before training."""
        preparer, positions = learned
        torch.manual_seed(self.config.training.seed)
        encoder, decoder = (build(positions[side], self.config.model.dims(side)) for side in ("encoder", "decoder"))
        return EncoderDecoder(self.config.model, preparer.vocabulary_size, encoder, decoder, preparer.edge_types.size)

    def work(self, data: Splits, learned: Learned) -> Work[Result]:
        (preparer, positions), model = learned, self.model(learned)
        encodings, jobs = model.encoder.position.encodings, self.config.training.jobs
        examples = preparer.examples(data.train, encodings, every_text=True, jobs=jobs)
        dev = preparer.examples(data.dev, encodings, jobs=jobs)
        _tell(data.train, examples, dev, model)
        _try(model, preparer, [*examples, *dev])
        task = GraphToText(model, preparer, dev, self.config)
        sizes, content = np.array([example.cost for example in examples]), _content(task, examples, positions)
        return Work(task, self.config.training, examples, sizes, task.collate, content, lambda result: result)

    def load(self) -> tuple[EncoderDecoder, Preparer]:
        """The best model so far, ready for use, and its preparer."""
        if not (self.folder / WEIGHTS).exists():
            raise StoreError(f"{self.folder} holds no model.safetensors; training writes it at the first validation")
        learned = self.restore()
        model = self.model(learned)
        self.best(model)
        return model, learned[0]

    def ready(self, device: torch.device) -> Generator:
        model, preparer = self.load()
        return Generator(model.to(device), preparer, self.config, device)


def _built(position: Any, dims: Dims, key: str) -> PositionModel:
    with located(key):
        return build(position, dims)


def _try(model: EncoderDecoder, preparer: Preparer, examples: Sequence[Example]) -> None:
    """Write the longest text of all, and read the largest graph: what a position model cannot take is known at once.

    Raises:
        PositionError: a text or graph is larger than a table of positions, say.
    """
    graph = max(examples, key=lambda e: e.graph.size)
    text = max(examples, key=lambda e: 0 if e.graph.target is None else len(e.graph.target))
    model.eval()
    with torch.no_grad():
        for example in (graph, text):
            model(preparer.collate([example], grouping=model.encoder.grouping))
    model.train()


def _with_texts(items: list[Item]) -> list[Item]:
    for item in items:
        if not item.texts:
            raise ConfigError(f"item {item.id!r} has no text to learn from or to be scored against; leave it out")
    return items


def _content(task: GraphToText, examples: Sequence[Example], positions: Mapping[str, Any]) -> dict[str, str]:
    """Digests of everything that a run depends on, except its configuration."""
    preparer = task.preparer
    found = {
        "vocabulary": digest([preparer.tokenizer.to_str()]),
        "numbers of relation labels": digest([preparer.edge_types.relations]),
        "position models": digest([json.dumps(positions, sort_keys=True)]),
        "versions of encodings": digest(each.versions() for each in task.model.encoder.position.encodings),
    }
    for what, each in (("training", examples), ("validation", task.dev)):
        found |= structures(f"{what} graphs", [example.structure for example in each])
        found[f"ids of units of the {what} graphs"] = digest(example.graph.x for example in each)
        found[f"{what} texts"] = digest((example.texts, example.graph.target) for example in each)
    return found


def _tell(items: Sequence[Item], examples: Sequence[Example], dev: Sequence[Example], model: EncoderDecoder) -> None:
    parameters = sum(p.numel() for p in model.parameters())
    say(f"{len(examples)} training texts of {len(items)} graphs, {len(dev)} for validation, {parameters:,} parameters")
    if left := sum(len(item.texts) for item in items) - len(examples):
        say(f"{left} texts longer than prepare.longest_target are left out of training")
    if not examples:
        raise ConfigError("all training texts are longer than prepare.longest_target; raise it")
