"""The configuration of one training on a benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from structpe.errors import ConfigError
from structpe.nn.graph_model import GraphModelConfig
from structpe.plain.bounds import OPTION, bounded
from structpe.plain.inert import Inert, refuse_inert
from structpe.tasks import config as configurations
from structpe.tasks.training.config import TrainingConfig

__all__ = ["BenchmarkConfig", "PredictionConfig", "PredictionTraining", "SamplingConfig", "load_config"]


@dataclass(frozen=True)
class BenchmarkConfig:
    """What is learned.

    Args:
        name: of the benchmark.
        folder: where its files are.
        options: of the benchmark.
    """

    name: str
    folder: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SamplingConfig:
    """How a graph whose nodes are predicted is trained on.

    ``full``: all of it in every step; ``training.batch_size`` says nothing then.

    ``neighbours``: as many training nodes as ``training.batch_size``, and of the messages to them and to their
    neighbours those that are drawn (Hamilton et al. 2017). Give as many fanouts as the model has layers. The weights of
    ``gcn`` are those of the whole graph, and messages represent those that were not drawn; ``sage`` takes the mean of
    what was drawn; ``gin``, ``gine`` take sums, which are smaller than on the whole graph.

    ``partition``: the graph is cut into ``parts``, and a step takes as many as ``training.batch_size``, with all edges
    among their nodes (Chiang et al. 2019). Parts without a training node are not trained on. Where a part is nearly one
    class, many small ones in a step and ``norm: layer`` learn what few large ones and statistics over them do not.

    In all three every training node comes once an epoch. Encodings of nodes are computed on the whole graph, those of
    pairs on what a step takes; attention is among its nodes. Validation and test are on the whole graph, unless the
    model looks at all pairs of nodes and was trained on parts: it is then scored as it was trained, on
    ``training.batch_size`` parts at a time, those next to one another, each node once. What looks at all pairs is
    attention that no position model confines to listed pairs and no feature map makes linear, and encodings of all
    pairs; beyond 20,000 nodes at a time they are refused.

    Args:
        kind: one of the three.
        fanouts: messages drawn to each node at each distance, the training nodes first.
        parts: how many there are, of like size and with few edges between them.
    """

    kind: Literal["full", "neighbours", "partition"] = "full"
    fanouts: list[int] = field(default_factory=lambda: [10, 10])
    parts: int = 64

    inert: ClassVar[tuple[Inert, ...]] = (
        Inert(("fanouts",), "sampling.kind is not neighbours", lambda c: c.kind != "neighbours"),
        Inert(("parts",), "sampling.kind is not partition", lambda c: c.kind != "partition"),
    )

    def __post_init__(self) -> None:
        if not self.fanouts or min(self.fanouts) < 1:
            raise ConfigError(f"sampling.fanouts is {self.fanouts}; give a number, 1 or more, for each distance")
        if self.parts < 1:
            raise ConfigError(f"sampling.parts is {self.parts}; it must be 1 or more")
        bounded(self, "sampling.", parts=OPTION)
        if max(self.fanouts) > OPTION:
            raise ConfigError(f"sampling.fanouts has {max(self.fanouts)}; at most {OPTION} is allowed, give fewer")
        refuse_inert(self, "sampling.")


@dataclass(frozen=True)
class PredictionTraining(TrainingConfig):
    """How a model of graphs is trained; as :class:`TrainingConfig`, with defaults for benchmarks.

    The best model is the one whose official metric is best on the validation split.

    Several ``devices`` share each batch out, and do what one does with all of it, but for two things: dropout draws
    other numbers, and batch normalisation (``model.norm: batch``, and that of position models which have one, such as
    ``rwse``) normalises over the part that a device has.
    """

    steps: int = 10_000
    batch_size: int = 32
    learning_rate: float = 1e-3
    warmup: int = 100
    schedule: Literal["inverse-sqrt", "cosine", "constant"] = "cosine"
    weight_decay: float = 1e-5
    smoothing: float = 0.0
    metric: str = "official"
    patience: int = 0
    accelerator: Literal["auto", "cpu", "gpu"] = "auto"

    inert: ClassVar[tuple[Inert, ...]] = (Inert(("smoothing",), "no loss of a prediction has label smoothing"),)


@dataclass(frozen=True)
class PredictionConfig:
    """Everything that a training on a benchmark follows from.

    Args:
        data: the benchmark.
        split: number of the official split, from 0; null for the number of the seed, modulo the number of splits.
        model: sizes and options.
        position: a name, a mapping with ``name`` and options, or a list of these, whose sum is taken; an empty list for
            no position information.
        sampling: how a large graph is trained on.
        training: how the model is trained.
        out: folder of the run.
        name: what the run is called in tables.
    """

    data: BenchmarkConfig
    split: int | None = None
    model: GraphModelConfig = field(default_factory=GraphModelConfig)
    position: Any = field(default_factory=list)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    training: PredictionTraining = field(default_factory=PredictionTraining)
    out: str = "runs/prediction"
    name: str = ""

    def __post_init__(self) -> None:
        configurations.check_folder("out", self.out)


def load_config(path: str | Path | None, overrides: Sequence[str] = ()) -> PredictionConfig:
    """The configuration of a YAML file, with overrides such as ``training.steps=100``.

    Raises:
        ConfigError: the file is missing or no YAML, a key is unknown or missing, a value is of another type.
    """
    return configurations.load(PredictionConfig, path, overrides)
