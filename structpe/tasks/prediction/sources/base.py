"""A source makes the examples of a benchmark whose items are of one level."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from structpe.data.batch import Batch
from structpe.datasets import Benchmark, Split
from structpe.errors import ConfigError
from structpe.nn.graph_model import GraphModel
from structpe.registry import Registered, Registry
from structpe.structure import Ids
from structpe.tasks.prediction.config import PredictionConfig
from structpe.tasks.prediction.task import Collate

__all__ = ["SOURCES", "Data", "Source", "check_whole"]

SOURCES: Registry[type[Source]] = Registry("structpe.tasks.prediction.sources", "level of examples", ConfigError)
"""Every source, by the name of its level."""


@dataclass(frozen=True, eq=False)
class Data:
    """What a model is trained and scored on.

    Attributes:
        train: training examples: graphs, or numbers of nodes, of parts of a graph, or of triples.
        sizes: cost of each training example, such as its number of nodes.
        collate: makes a batch of some of them.
        valid: examples of the validation split.
        test: examples of the test split.
        scored: makes a batch of some of these, and finds the example of each of its rows.
        encoding_seconds: seconds to encode all graphs; 0 if there are no encodings.
    """

    train: Sequence[Any]
    sizes: Ids
    collate: Callable[[Sequence[Any]], Batch]
    valid: Sequence[Any]
    test: Sequence[Any]
    scored: Collate
    encoding_seconds: float


class Source(Registered, ABC):
    """Base class: one per level."""

    registry = SOURCES

    @staticmethod
    @abstractmethod
    def data(config: PredictionConfig, benchmark: Benchmark, split: Split, model: GraphModel, folder: Path) -> Data:
        """The three parts of a split, ready for the model.

        Args:
            config: of the run.
            benchmark: one whose objective has this level.
            split: of its items.
            model: what is trained.
            folder: where encodings are kept.

        Raises:
            ConfigError: the configuration does not suit the level, or the model the size of the graph.
            EncodingError: a graph lacks what an encoding needs.
        """


def check_whole(config: PredictionConfig, benchmark: Benchmark, here: str) -> None:
    """Check that the configuration does not ask for sampling, at a level without it.

    Args:
        config: of the run.
        benchmark: named by the error.
        here: what is predicted at the level, and in which steps.

    Raises:
        ConfigError: it is.
    """
    if config.sampling.kind != "full":
        raise benchmark.error(
            f"sampling.kind is {config.sampling.kind!r}, which is for one graph whose nodes are predicted; here "
            f"{here}: set sampling.kind to full"
        )
