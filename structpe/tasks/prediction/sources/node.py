"""One graph whose nodes are predicted: all of it in every step, or samples of it; and what is scored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from structpe.data.batch import Example
from structpe.data.sampling import partition
from structpe.datasets import Benchmark, Split
from structpe.nn.graph_model import GraphModel
from structpe.plain.inert import Inert, refuse_inert
from structpe.structure import Ids
from structpe.tasks.prediction.config import PredictionConfig
from structpe.tasks.prediction.encodings import encode
from structpe.tasks.prediction.quadratic import check_pairs, most_nodes, quadratic
from structpe.tasks.prediction.sources._cutting import Cutter, Neighbourhoods, Parts
from structpe.tasks.prediction.sources.base import Data, Source
from structpe.tasks.prediction.task import Structures

__all__ = ["Nodes"]

_WHOLE = Inert(("batch_size", "order"), "sampling.kind is full, so that every step takes the whole graph")


class Nodes(Source, name="node"):
    """One graph with a target of each node: all of it in every step, or samples of it, as ``config.sampling`` says.

    The model must not look at all pairs of too many nodes, and the target of a training node must be known.
    """

    @staticmethod
    def data(config: PredictionConfig, benchmark: Benchmark, split: Split, model: GraphModel, folder: Path) -> Data:
        check_pairs(config, benchmark, model)
        if config.sampling.kind == "full":
            refuse_inert(config.training, "training.", [_WHOLE])
        kind, by_parts = config.sampling.kind, config.sampling.kind == "partition" and quadratic(model)
        encodings, scored = model.position.encodings, Structures(model.grouping)
        asked = [e for e in encodings if e.arity == 1 or not by_parts]
        computed = encode(benchmark.graphs, asked, folder, config.training.jobs)
        whole = Example.of(benchmark.graphs[0], computed.of(0), benchmark.targets)
        valid, test = (_whole(whole, part) for part in (split.valid, split.test))
        if kind == "full":
            seen = _whole(whole, split.train)
            collated = Structures(model.grouping)  # its own, as it keeps the batch of the training nodes
            return Data(seen, np.array([whole.size]), collated, valid, test, scored, computed.seconds)
        seeds = _known(benchmark, split.train)
        cutter = Cutter(benchmark.graphs[0], whole, [e for e in encodings if e.arity == 2], model.grouping)
        if kind == "neighbours":
            most = most_nodes(model, whole.size)
            draw = Neighbourhoods(cutter, config.sampling.fanouts, config.training.seed, most)
            return Data(seeds.tolist(), np.ones_like(seeds), draw, valid, test, scored, computed.seconds)
        parts = partition(benchmark.graphs[0], config.sampling.parts)
        if by_parts:
            valid, test = (cutter.pieces(parts, config.training.batch_size, part) for part in (split.valid, split.test))
        learned = [i for i, nodes in enumerate(parts) if np.isin(nodes, seeds).any()]
        sizes = np.ones(len(learned), dtype=np.int64)
        return Data(learned, sizes, Parts(cutter, parts, seeds), valid, test, scored, computed.seconds)


def _known(benchmark: Benchmark, numbers: Ids) -> Ids:
    """Those nodes whose target is known, at least in part."""
    seeds: Ids = numbers[benchmark.objective.known(np.asarray(benchmark.targets)[numbers])]
    if not len(seeds):
        raise benchmark.error("the target of no training node is known; there is nothing to learn")
    return seeds


def _whole(example: Example, numbers: Ids) -> list[Example]:
    """The whole graph with a mask of these nodes; an empty list if there are none."""
    return [replace(example, target_mask=np.isin(np.arange(example.size), numbers))] if len(numbers) else []
