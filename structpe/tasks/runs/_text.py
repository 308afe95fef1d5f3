"""What all runs that learn to write texts for graphs share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch

from structpe.data.digests import digest, structures
from structpe.errors import ConfigError, StoreError
from structpe.formats import Item
from structpe.tasks.graph_to_text.config import TextConfig
from structpe.tasks.graph_to_text.generator import Generator
from structpe.tasks.graph_to_text.source import named, read_split
from structpe.tasks.graph_to_text.task import GraphToText
from structpe.tasks.graph_to_text.writer import Example, Writer
from structpe.tasks.reads import Reads
from structpe.tasks.runs.base import Run, Work, load_run
from structpe.tasks.training.progress import say
from structpe.tasks.training.result import Result
from structpe.tasks.training.weights import WEIGHTS

__all__ = ["Splits", "TextRun", "text_run"]

C = TypeVar("C", bound=TextConfig)
L = TypeVar("L")


class Splits(NamedTuple):
    """The items to train on, and to select by."""

    train: Sequence[Item]
    dev: Sequence[Item]


class TextRun(Run[C, Splits, L, Result], ABC):
    """A structure is read, a text is written."""

    result = Result
    free = ("out", "name", "data.test", *Run.free)
    extra = "train"
    keeps_checkpoints = True

    @abstractmethod
    def writer(self, learned: L) -> Writer:
        """The model as it is before training, with what makes its examples."""

    @abstractmethod
    def trained(self) -> Writer:
        """The best model so far, in evaluation mode, with what makes its examples.

        Raises:
            StoreError: a file is damaged.
        """

    @property
    def kept(self) -> C:
        return replace(self.config, data=named(self.config.data))

    def reads(self) -> Reads:
        data = named(self.config.data)
        return Reads(data.reader, data.options, data.on_error)

    @abstractmethod
    def digests(self, learned: L, writer: Writer) -> Mapping[str, str]:
        """Digests of what was learned or read before training, and on which training depends."""

    def read(self) -> Splits:
        data = self.config.data
        return Splits(_with_texts(read_split(data, "train")), _with_texts(read_split(data, "dev")) if data.dev else [])

    def work(self, data: Splits, learned: L) -> Work[Result]:
        writer, training = self.writer(learned), self.config.training
        content = dict(self.digests(learned, writer))
        examples = writer.examples(data.train, every_text=True, jobs=training.jobs)
        dev = writer.examples(data.dev, jobs=training.jobs)
        _tell(data.train, examples, dev, writer)
        _try(writer, [*examples, *dev])
        task = GraphToText(writer, dev, self.config)
        sizes = np.array([example.cost for example in examples])
        content |= {**_content("training", examples), **_content("validation", dev)}
        return Work(
            task, training, writer.drawn(examples, training.seed), sizes, task.collate, content, lambda result: result
        )

    def ready(self, device: torch.device) -> Generator:
        if not (self.folder / WEIGHTS).exists():
            raise StoreError(f"{self.folder} holds no model.safetensors; training writes it at the first validation")
        writer = self.trained()
        writer.model.to(device)
        return Generator(writer, self.kept, device)


def text_run(folder: str | Path) -> TextRun[Any, Any]:
    """The run in a folder, which must be one that writes texts.

    Raises:
        StoreError: it is of another kind, the folder holds none, or a file is damaged.
    """
    run = load_run(folder)
    if not isinstance(run, TextRun):
        raise StoreError(f"{folder} holds a run of {run.name}, which writes no texts; use it by structpe predict")
    return run


def _try(writer: Writer, examples: Sequence[Example]) -> None:
    """Write the longest text of all, and read the largest graph: what a position model cannot take is known at once.

    Raises:
        PositionError: a text or graph is larger than a table of positions, say.
    """
    graph = max(examples, key=lambda e: e.size)
    text = max(examples, key=lambda e: 0 if e.target is None else len(e.target))
    writer.model.eval()
    with torch.no_grad():
        for example in (graph, text):
            writer.loss(writer.collate([example]), 0.0)
    writer.model.train()


def _with_texts(items: list[Item]) -> list[Item]:
    for item in items:
        if not item.texts:
            raise ConfigError(f"item {item.id!r} has no text to learn from or to be scored against; leave it out")
    return items


def _content(what: str, examples: Sequence[Example]) -> dict[str, str]:
    return {
        **structures(f"{what} graphs", [example.structure for example in examples]),
        f"ids of units of the {what} graphs": digest(example.ids for example in examples),
        f"{what} texts": digest((example.texts, example.target) for example in examples),
    }


def _tell(items: Sequence[Item], examples: Sequence[Example], dev: Sequence[Example], writer: Writer) -> None:
    parameters = sum(p.numel() for p in writer.model.parameters())
    trained = sum(p.numel() for p in writer.model.parameters() if p.requires_grad)
    counted = f"{parameters:,} parameters" + (f", {trained:,} of them trained" if trained < parameters else "")
    say(f"{len(examples)} training texts of {len(items)} graphs, {len(dev)} for validation, {counted}")
    if left := sum(len(item.texts) for item in items) - len(examples):
        say(f"{left} texts longer than prepare.longest_target are left out of training")
    if not examples:
        raise ConfigError("all training texts are longer than prepare.longest_target; raise it")
