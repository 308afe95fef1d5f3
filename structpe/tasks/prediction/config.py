"""The configuration of one training on a benchmark."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from structpe.errors import ConfigError
from structpe.nn.graph_model import GraphModelConfig
from structpe.plain.options import OPTION, bounded
from structpe.tasks import config as configurations
from structpe.tasks.training.config import OptimiserConfig, TrainingConfig, ValidationConfig

__all__ = [
    "BenchmarkConfig",
    "PredictionConfig",
    "PredictionOptimiser",
    "PredictionTraining",
    "PredictionValidation",
    "SamplingConfig",
]


@dataclass(frozen=True)
class BenchmarkConfig:
    """The benchmark.

    Args:
        name: name of the benchmark; ``graphs`` for graphs of one's own, in a file or in Python,
            ``structpe.train(config, data=items)``.
        folder: folder of its files.
        options: options of the benchmark.
    """

    name: str = "graphs"
    folder: str = "."
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SamplingConfig:
    """How a graph is sampled for training, if its nodes are predicted: by one of two options, or not at all.

    With neither, every step takes the whole graph; ``training.batch_size`` has no effect.

    With ``fanouts``, a step takes ``training.batch_size`` training nodes, and samples messages to them and to their
    neighbours (Hamilton et al. 2017). ``gcn`` uses the weights of the whole graph, and sampled messages also represent
    the others; ``sage`` takes the mean of the sampled messages; ``gin`` and ``gine`` take their sum, which is smaller
    than on the whole graph.

    With ``parts``, the graph is cut into these, and a step takes ``training.batch_size`` of them, with all edges among
    their nodes (Chiang et al. 2019). Parts without a training node are not used. If a part has nearly a single class,
    use many small parts per step and ``norm: layer``: a model may not learn from few large ones with statistics over
    them.

    In each case every training node occurs once an epoch. Encodings of nodes are computed on the whole graph, those of
    pairs on the nodes of a step; attention is among these nodes. Validation and test use the whole graph, unless the
    model uses all pairs of nodes and was trained on parts: then it is scored on ``training.batch_size`` adjacent parts
    at a time, each node once. A model uses all pairs if it has encodings of all pairs, or attention that is neither
    restricted to listed pairs by a position model nor made linear by a feature map; at most 20,000 nodes at a time are
    allowed.

    Args:
        fanouts: number of messages sampled to each node at each distance, beginning with the training nodes, such as
            ``[10, 10]``; as many as the model has layers.
        parts: number of parts, of similar size and with few edges between them, such as 64.
    """

    fanouts: list[int] | None = None
    parts: int | None = None

    def __post_init__(self) -> None:
        if self.fanouts is not None and self.parts is not None:
            raise ConfigError("sampling has fanouts and parts, which are two ways to sample a graph; leave one out")
        if self.parts is not None:
            bounded(self, "sampling.", parts=(1, OPTION))
        if self.fanouts is not None and (not self.fanouts or min(self.fanouts) < 1):
            raise ConfigError(f"sampling.fanouts is {self.fanouts}; give a number, 1 or more, for each distance")
        if max(self.fanouts or [0]) > OPTION:
            raise ConfigError(
                f"sampling.fanouts has {max(self.fanouts or [])}; at most {OPTION} is allowed, give fewer"
            )

    @property
    def whole(self) -> bool:
        """Whether every step takes the whole graph."""
        return self.fanouts is None and self.parts is None


@dataclass(frozen=True)
class PredictionOptimiser(OptimiserConfig):
    """An optimiser, as in :class:`OptimiserConfig`, with defaults for benchmarks."""

    learning_rate: float = 1e-3
    warmup: int = 100
    schedule: Literal["inverse-sqrt", "cosine", "constant"] = "cosine"
    weight_decay: float = 1e-5


@dataclass(frozen=True)
class PredictionValidation(ValidationConfig):
    """Validations, as in :class:`ValidationConfig`; the best model has the best official metric."""

    metric: str = "official"
    patience: int = 0


@dataclass(frozen=True)
class PredictionTraining(TrainingConfig):
    """The training of a model of graphs, as in :class:`TrainingConfig`, with defaults for benchmarks.

    Several ``hardware.devices`` share each batch. The result is that of one device, with two exceptions: dropout draws
    other numbers, and batch normalisation (``model.norm: batch``, or in a position model such as ``rwse``) normalises
    over the part of the batch on a device.
    """

    steps: int = 10_000
    batch_size: int = 32
    optimiser: PredictionOptimiser = field(default_factory=PredictionOptimiser)
    validation: PredictionValidation = field(default_factory=PredictionValidation)


@dataclass(frozen=True)
class PredictionConfig:
    """The configuration of a training on a benchmark.

    Args:
        task: the kind of the run, always ``prediction``.
        data: the benchmark.
        split: number of the official split, from 0; null for the seed, modulo the number of splits.
        model: sizes and options of the model.
        position: the position model: a name, a mapping with ``name`` and options, or a list of these, which is a sum;
            an empty list for no position information.
        sampling: how a large graph is sampled for training.
        training: how the model is trained.
        out: folder of the run.
        name: name of the run in tables.
        imports: modules or Python files of one's own; see :func:`~structpe.registry.import_code`.
    """

    task: Literal["prediction"] = field(default="prediction", kw_only=True)
    data: BenchmarkConfig = field(default_factory=BenchmarkConfig)
    split: int | None = None
    model: GraphModelConfig = field(default_factory=GraphModelConfig)
    position: Any = field(default_factory=list)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    training: PredictionTraining = field(default_factory=PredictionTraining)
    out: str = "runs/prediction"
    name: str = ""
    imports: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        configurations.check_folder("out", self.out)
