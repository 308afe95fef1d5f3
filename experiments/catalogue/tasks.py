"""The tasks: their examples, what a model makes of them, and how it is scored. One budget for every model of a task."""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import data
import numpy as np
import torch
from data import IGNORED, Example
from torch import Tensor, nn
from torch.nn import functional

from structpe.nn.language_model import LanguageModel
from structpe.nn.layer import StackConfig
from structpe.nn.stack import Stack
from structpe.positions import Dims, PositionModel, Positions

__all__ = ["DIMS", "TASKS", "Task"]

DIMS = Dims(width=64, heads=4, layers=2)
LAYERS = StackConfig.transformer(DIMS, feedforward=128)
Padded = tuple[Tensor, Tensor]


class Task(ABC):
    """Examples to train on and to be scored on.

    Args:
        corpora: folder of the corpora.
    """

    name: ClassVar[str]
    steps: ClassVar[int]
    batch: ClassVar[int]
    longest: ClassVar[int] = 60
    """Seconds of CPU time: a model whose training would take longer, by its first steps, has no score."""
    causal: ClassVar[bool] = False
    """Whether a unit is asked for the next one: what a model says of it must then not depend on later ones."""
    length: ClassVar[int] = 0
    """Of the longest text to train on, where it is texts."""
    ordered: ClassVar[bool] = True
    """Whether the units have a reading order."""
    better: ClassVar[dict[str, str]]
    """Each score, and whether more or less of it is better."""

    def __init__(self, corpora: Path) -> None:
        self.corpora = corpora

    @cached_property
    @abstractmethod
    def train(self) -> Sequence[Example]:
        """What is trained on."""

    @abstractmethod
    def net(self, position: PositionModel) -> nn.Module:
        """A model with random weights: (units, present, positions) to what is asked for."""

    @abstractmethod
    def loss(self, out: Tensor, target: Tensor) -> Tensor:
        """What training makes small."""

    @abstractmethod
    def tests(self) -> dict[str, Sequence[Example]]:
        """What each score is made on."""

    @abstractmethod
    def score(self, outs: Sequence[Tensor], examples: Sequence[Example]) -> float:
        """The score of all outputs, one per example."""


class CausalNet(nn.Module):
    """A language model over padded texts; padding comes last, so that nothing sees it."""

    def __init__(self, vocabulary: int, position: PositionModel) -> None:
        super().__init__()
        self.model = LanguageModel(LAYERS, vocabulary, position)

    def forward(self, units: Tensor, present: Tensor, positions: Positions) -> Tensor:
        del present
        log_probabilities, _ = self.model(units, positions)
        return log_probabilities


class PooledNet(nn.Module):
    """An encoder, its units as one vector, numbers. Units pool to their mean, their sum, or that of the root."""

    def __init__(self, vocabulary: int, out: int, pool: str, position: PositionModel) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, DIMS.width)
        self.encoder = Stack(LAYERS, position)
        self.pool, self.out = pool, nn.Linear(DIMS.width, out)

    def forward(self, units: Tensor, present: Tensor, positions: Positions) -> Tensor:
        hidden = self.encoder.padded(self.embedding(units), positions, present) * present[..., None]
        if self.pool == "root":
            return self.out(hidden[:, 0])
        if self.pool == "sum":
            return self.out(hidden).mul(present[..., None]).sum(1)
        return self.out(hidden.sum(1) / present.sum(1, keepdim=True))


class Shakespeare(Task):
    """Next characters; trained on texts of 64, tested on longer ones (Press et al. 2022): bits per character."""

    name, steps, batch, causal = "shakespeare", 500, 16, True
    length = 64
    lengths = (64, 128, 256, 512)
    better: ClassVar = {f"bits {length}": "less" for length in lengths}

    @cached_property
    def _text(self) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
        return data.shakespeare(self.corpora)

    @cached_property
    def train(self) -> Sequence[Example]:
        ids, _, characters = self._text
        starts = random.Random(0).sample(range(len(ids) - self.length), self.steps * self.batch)
        return data.windows(ids, characters, self.length, starts)

    def net(self, position: PositionModel) -> nn.Module:
        return CausalNet(len(self._text[2]), position)

    def loss(self, out: Tensor, target: Tensor) -> Tensor:
        return functional.nll_loss(out.flatten(0, 1), target.flatten(), ignore_index=IGNORED)

    def tests(self) -> dict[str, Sequence[Example]]:
        """The same 16,384 characters, cut into pieces of each length."""
        _, ids, characters = self._text
        return {f"bits {n}": data.windows(ids, characters, n, range(0, 16_384, n)) for n in self.lengths}

    def score(self, outs: Sequence[Tensor], examples: Sequence[Example]) -> float:
        losses = [self.loss(out[None], torch.from_numpy(e.target)[None]) for out, e in zip(outs, examples, strict=True)]
        return float(torch.stack(losses).mean()) / math.log(2)


class Scan(Shakespeare):
    """SCAN's length split as text: actions after a command, all of them right, for short and for long ones."""

    name, steps, batch, length = "scan", 300, 32, 33
    better: ClassVar = {"exact, up to 22 actions": "more", "exact, 24 to 48": "more"}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        texts = data.scan(self.corpora, "train")
        words = sorted({word for command, actions in texts for word in (*command, *actions)})
        return {word: i for i, word in enumerate(["=", ".", *words])}

    @cached_property
    def _known(self) -> list[Example]:
        texts = list(data.scan(self.corpora, "train"))
        random.Random(0).shuffle(texts)
        return [data.as_text(*text, self._numbers) for text in texts]

    @cached_property
    def train(self) -> Sequence[Example]:
        return self._known[500:]

    def net(self, position: PositionModel) -> nn.Module:
        return CausalNet(len(self._numbers), position)

    def tests(self) -> dict[str, Sequence[Example]]:
        texts = list(data.scan(self.corpora, "test"))
        random.Random(0).shuffle(texts)
        short, long, *_ = self.better
        return {short: self._known[:500], long: [data.as_text(*text, self._numbers) for text in texts[:500]]}

    def score(self, outs: Sequence[Tensor], examples: Sequence[Example]) -> float:
        """Percent; the likeliest word at each place being right is what greedy writing would give."""
        right = 0
        for out, example in zip(outs, examples, strict=True):
            asked = example.target != IGNORED
            right += bool((out.argmax(-1).numpy()[asked] == example.target[asked]).all())
        return 100 * right / len(examples)


class ListOps(Task):
    """The value of a tree of operators and digits, 0 to 9 (Nangia and Bowman 2018), in trees of up to 100 nodes."""

    name, steps, batch = "listops", 200, 32
    better: ClassVar = {"accuracy": "more"}

    @cached_property
    def train(self) -> Sequence[Example]:
        return data.listops(self.corpora, "train", 20_000, 100)

    def net(self, position: PositionModel) -> nn.Module:
        return PooledNet(len(data.SYMBOLS), 10, "root", position)

    def loss(self, out: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(out, target.long())

    def tests(self) -> dict[str, Sequence[Example]]:
        return {"accuracy": data.listops(self.corpora, "test", 1_000, 100)}

    def score(self, outs: Sequence[Tensor], examples: Sequence[Example]) -> float:
        """Percent."""
        right = [int(out.argmax()) == e.target for out, e in zip(outs, examples, strict=True)]
        return 100 * sum(right) / len(right)


class CSL(ListOps):
    """Which of ten graphs it is that no 1-WL test tells apart (Murphy et al. 2019)."""

    name, steps, batch, ordered = "csl", 400, 30, False

    @cached_property
    def train(self) -> Sequence[Example]:
        return data.csl()["train"]

    def net(self, position: PositionModel) -> nn.Module:
        return PooledNet(1, 10, "mean", position)

    def tests(self) -> dict[str, Sequence[Example]]:
        return {"accuracy": data.csl()["test"]}


class Zinc(Task):
    """Penalised logP of molecules: mean absolute error on the official test set; trained on a stand-in."""

    name, steps, batch, ordered = "zinc", 200, 64, False
    better: ClassVar = {"MAE": "less"}

    @cached_property
    def train(self) -> Sequence[Example]:
        return data.zinc(self.corpora, "train", 10_000)

    def net(self, position: PositionModel) -> nn.Module:
        return PooledNet(28, 1, "sum", position)

    def loss(self, out: Tensor, target: Tensor) -> Tensor:
        return functional.l1_loss(out[:, 0], target)

    def tests(self) -> dict[str, Sequence[Example]]:
        return {"MAE": data.zinc(self.corpora, "test", 1_000)}

    def score(self, outs: Sequence[Tensor], examples: Sequence[Example]) -> float:
        return float(np.mean([abs(float(out) - e.target) for out, e in zip(outs, examples, strict=True)]))


TASKS: dict[str, type[Task]] = {task.name: task for task in (Shakespeare, Scan, ListOps, CSL, Zinc)}
