"""Many graphs, each of which is an example."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from structpe.data.batch import Example
from structpe.datasets import Benchmark, Split
from structpe.nn.graph_model import GraphModel
from structpe.tasks.prediction.config import PredictionConfig
from structpe.tasks.prediction.encodings import encode
from structpe.tasks.prediction.sources.base import Data, Source, check_whole
from structpe.tasks.prediction.task import Structures
from structpe.tasks.training.folder import device_of

__all__ = ["Graphs"]


class Graphs(Source, name="graph"):
    """Graphs with a target each."""

    @staticmethod
    def data(config: PredictionConfig, benchmark: Benchmark, split: Split, model: GraphModel, folder: Path) -> Data:
        check_whole(config, benchmark, "whole graphs are, some of them in each step")
        encodings = encode(benchmark.graphs, model.position.encodings, folder, config.training.jobs)
        collate = Structures(model.grouping, device_of(config.training).type)
        targets = np.asarray(benchmark.targets)
        train, valid, test = (
            [Example.of(benchmark.graphs[i], encodings.of(i), targets[i]) for i in part.tolist()] for part in split
        )
        sizes = np.array([example.size for example in train])
        return Data(train, sizes, collate, valid, test, collate, encodings.seconds)
