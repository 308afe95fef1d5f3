"""One graph whose nodes are predicted: all of it in every step, or samples of it; and what is scored."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from structpe.data.batch import Batch, Example, Grouping, collate
from structpe.data.partition import partition
from structpe.data.sampling import Sample, Sampler
from structpe.datasets import Benchmark, Split
from structpe.encodings.base import Encoded, Encoding
from structpe.errors import ConfigError
from structpe.nn.graph_model import GraphModel
from structpe.structure import Ids, Structure
from structpe.tasks.prediction.config import PredictionConfig
from structpe.tasks.prediction.encodings import encode
from structpe.tasks.prediction.sources.base import Data, Source
from structpe.tasks.prediction.task import Structures
from structpe.transforms import subgraph

__all__ = ["MOST", "Nodes", "check_pairs", "quadratic"]

MOST = 20_000
"""Nodes whose pairs may all be looked at, at most: a number for each pair takes 1.6 GB then, for each head."""


class Nodes(Source, name="node"):
    """One graph with a target of each node: all of it in every step, or samples of it, as ``config.sampling`` says.

    The model must not look at all pairs of too many nodes, and the target of a training node must be known.
    """

    @staticmethod
    def data(config: PredictionConfig, benchmark: Benchmark, split: Split, model: GraphModel, folder: Path) -> Data:
        check_pairs(config, benchmark, model)
        kind, by_parts = config.sampling.kind, config.sampling.kind == "partition" and quadratic(model)
        encodings, scored = model.position.encodings, Structures(model.grouping)
        computed = encode(benchmark.graphs, [e for e in encodings if e.arity == 1 or not by_parts], folder)
        whole = Example.of(benchmark.graphs[0], computed.of(0), benchmark.targets)
        valid, test = (_whole(whole, part) for part in (split.valid, split.test))
        if kind == "full":
            seen = _whole(whole, split.train)
            collated = Structures(model.grouping)  # its own, as it keeps the batch of the training nodes
            return Data(seen, np.array([whole.size]), collated, valid, test, scored, computed.seconds)
        seeds = _known(benchmark, split.train)
        cutter = Cutter(benchmark.graphs[0], whole, [e for e in encodings if e.arity == 2], model.grouping)
        if kind == "neighbours":
            most = MOST if quadratic(model) else whole.size
            draw = Neighbourhoods(cutter, config.sampling.fanouts, config.training.seed, most)
            return Data(seeds.tolist(), np.ones_like(seeds), draw, valid, test, scored, computed.seconds)
        parts = partition(benchmark.graphs[0], config.sampling.parts)
        if by_parts:
            valid, test = (cutter.pieces(parts, config.training.batch_size, part) for part in (split.valid, split.test))
        learned = [i for i, nodes in enumerate(parts) if np.isin(nodes, seeds).any()]
        sizes = np.ones(len(learned), dtype=np.int64)
        return Data(learned, sizes, Parts(cutter, parts, seeds), valid, test, scored, computed.seconds)


class Cutter:
    """Cuts samples out of a graph. Encodings of nodes are those of the whole graph, those of pairs the sample's own.

    Args:
        structure: the graph.
        whole: the same made ready.
        pairs: encodings of pairs.
        grouping: of batches.
    """

    def __init__(self, structure: Structure, whole: Example, pairs: Sequence[Encoding], grouping: Grouping) -> None:
        self.structure, self.whole, self.pairs, self.grouping = structure, whole, pairs, grouping
        self.sampler = Sampler(whole.edges, whole.size)

    def example(self, sample: Sample, targets: Ids, drawn: bool = False) -> Example:
        """A sample made ready.

        Args:
            sample: of the graph.
            targets: numbers of nodes whose targets count, if they are in it.
            drawn: whether its messages stand for others that were not drawn.
        """
        whole, nodes = self.whole, sample.nodes
        directions, edges = self.sampler.cut_out(sample, drawn)
        encoded = {e: Encoded(each.values[nodes]) for e, each in whole.encoded.items() if e.arity == 1}
        if self.pairs:
            cut = subgraph(self.structure, nodes, edges)
            encoded |= {encoding: encoding.many([cut])[0] for encoding in self.pairs}
        return Example(
            None if whole.x is None else whole.x[nodes],
            directions,
            None if whole.edge_x is None else whole.edge_x[sample.messages],
            encoded,
            None if whole.target is None else whole.target[nodes],
            len(nodes),
            np.isin(nodes, targets),
        )

    def pieces(self, parts: Sequence[Ids], together: int, targets: Ids) -> list[Example]:
        """The whole graph in pieces of some parts each, those with near numbers together, as far as a node counts."""
        groups = [np.concatenate(parts[i : i + together]) for i in range(0, len(parts), together)]
        groups = [nodes for nodes in groups if np.isin(nodes, targets).any()]
        return [self.example(self.sampler.among(nodes), targets) for nodes in groups]


class Neighbourhoods:
    """From numbers of nodes to a batch of them and of nodes around them, drawn by chance.

    What is drawn follows from the seed and the numbers, so that a training that was interrupted goes on as it would
    have.

    Args:
        cutter: of the graph.
        fanouts: messages drawn at each distance.
        seed: of the training.
        most: nodes that a batch may have.
    """

    def __init__(self, cutter: Cutter, fanouts: Sequence[int], seed: int, most: int) -> None:
        self.cutter, self.fanouts, self.seed, self.most = cutter, fanouts, seed, most

    def __call__(self, numbers: Sequence[int]) -> Batch:
        seeds = np.asarray(numbers, dtype=np.int64)
        drawn = hashlib.sha256(seeds.tobytes()).digest()
        generator = np.random.default_rng([self.seed, int.from_bytes(drawn, "little")])
        sample = self.cutter.sampler.neighbourhood(seeds, self.fanouts, generator)
        if len(sample.nodes) > self.most:
            raise ConfigError(
                f"{len(seeds)} nodes and those drawn around them are {len(sample.nodes)}, and the model looks at all "
                f"pairs of them, {self.most} nodes at most; lower training.batch_size or sampling.fanouts"
            )
        return collate([self.cutter.example(sample, seeds, drawn=True)], self.cutter.grouping)


class Parts:
    """From numbers of parts to a batch of their nodes, with all edges among them (Chiang et al. 2019, Cluster-GCN).

    Args:
        cutter: of the graph.
        parts: nodes of each.
        seeds: training nodes.
    """

    def __init__(self, cutter: Cutter, parts: Sequence[Ids], seeds: Ids) -> None:
        self.cutter, self.parts, self.seeds = cutter, parts, seeds

    def __call__(self, numbers: Sequence[int]) -> Batch:
        nodes = np.concatenate([self.parts[i] for i in numbers])
        return collate([self.cutter.example(self.cutter.sampler.among(nodes), self.seeds)], self.cutter.grouping)


def quadratic(model: GraphModel) -> bool:
    """Whether the model looks at all pairs of nodes: time and memory then grow with the square of their number."""
    return _attends_to_all(model) or any(e.arity == 2 and not e.sparse for e in model.position.encodings)


def _attends_to_all(model: GraphModel) -> bool:
    config, position = model.config, model.position
    if not config.attention:
        return False
    if position.own_attention or config.kernel not in ("auto", "edges", "linear"):
        return True
    return config.feature_map == "none" and not any(e.sparse for e in position.encodings)


def check_pairs(config: PredictionConfig, benchmark: Benchmark, model: GraphModel) -> None:
    """Check that no piece whose pairs are all looked at is too large, before anything is computed.

    Raises:
        ConfigError: the model looks at all pairs of too many nodes.
    """
    n, kind, parts = benchmark.graphs[0].size, config.sampling.kind, config.sampling.parts
    if n <= MOST or not quadratic(model):
        return
    who = "attention looks" if _attends_to_all(model) else "an encoding of the position model looks"
    if kind == "partition":
        together = -(-n // parts) * config.training.batch_size
        if together > MOST:
            raise benchmark.error(
                f"{config.training.batch_size} of {parts} parts are some {together} nodes, and {who} at all pairs of "
                f"them, {MOST} nodes at most; raise sampling.parts, or lower training.batch_size, the parts of a step"
            )
        return
    raise benchmark.error(
        f"the graph has {n} nodes, and {who} at all pairs of nodes, of {MOST} nodes at most. Set sampling.kind to "
        f"partition; or make attention linear (model.feature_map: elu), let a position model list the pairs that "
        f"attend (exphormer, dwivedi-neighbours), or leave attention out (model.attention: false)"
    )


def _known(benchmark: Benchmark, numbers: Ids) -> Ids:
    """Those nodes whose target is known, at least in part."""
    seeds: Ids = numbers[benchmark.objective.known(np.asarray(benchmark.targets)[numbers])]
    if not len(seeds):
        raise benchmark.error("the target of no training node is known; there is nothing to learn")
    return seeds


def _whole(example: Example, numbers: Ids) -> list[Example]:
    """The whole graph with the nodes that count; nothing where none does."""
    return [replace(example, target_mask=np.isin(np.arange(example.size), numbers))] if len(numbers) else []
