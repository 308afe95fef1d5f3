"""Makes the examples of a benchmark, for each level of its objective: graphs, nodes, or pairs."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from structpe.data.batch import Batch, Example, Grouping, collate
from structpe.data.sampling import Sample, Sampler, partition
from structpe.datasets import Benchmark, Split
from structpe.encodings.base import Encoded, Encoding
from structpe.errors import ConfigError
from structpe.nn.graph_model import GraphModel
from structpe.plain.options import Inert, refuse_inert
from structpe.registry import Registered, Registry
from structpe.structure import Ids, Structure
from structpe.tasks.prediction.config import PredictionConfig
from structpe.tasks.prediction.encodings import check_pairs, encode, most_nodes, quadratic
from structpe.tasks.prediction.task import Collate, Structures
from structpe.tasks.training.folder import device_of
from structpe.transforms import subgraph

__all__ = [
    "SOURCES",
    "Cutter",
    "Data",
    "ExampleSource",
    "GraphExamples",
    "Neighbourhoods",
    "NodeExamples",
    "PairExamples",
    "Parts",
    "Queries",
]


SOURCES: Registry[type[ExampleSource]] = Registry(
    "structpe.tasks.prediction.sources", "level of examples", ConfigError, own=False
)
"""All sources of examples by the name of their level."""


@dataclass(frozen=True, eq=False)
class Data:
    """The examples for training and scoring.

    Attributes:
        train: training examples: graphs, or numbers of nodes, of parts of a graph, or of triples.
        sizes: cost of each training example, such as its number of nodes.
        collate: makes a batch of training examples.
        valid: examples of the validation split.
        test: examples of the test split.
        scored: makes a batch of validation or test examples, and finds the example of each of its rows.
        encoding_seconds: seconds to encode all graphs; 0 without encodings.
    """

    train: Sequence[Any]
    sizes: Ids
    collate: Callable[[Sequence[Any]], Batch]
    valid: Sequence[Any]
    test: Sequence[Any]
    scored: Collate
    encoding_seconds: float


class ExampleSource(Registered, ABC):
    """Base class of sources of examples, one per level."""

    registry = SOURCES

    @staticmethod
    @abstractmethod
    def data(config: PredictionConfig, benchmark: Benchmark, split: Split, model: GraphModel, folder: Path) -> Data:
        """Encode the three parts of a split.

        Args:
            config: the configuration of the run.
            benchmark: a benchmark whose objective has this level.
            split: a split of its items.
            model: the model to train.
            folder: folder of the stores of encodings.

        Raises:
            ConfigError: the configuration does not fit the level, or the graph is too large for the model.
            EncodingError: a graph lacks what an encoding needs.
        """


def _check_whole(config: PredictionConfig, benchmark: Benchmark, here: str) -> None:
    """Check that sampling is off, at a level that has none.

    Args:
        config: the configuration of the run.
        benchmark: the benchmark, for the error.
        here: what the level predicts, and in which steps, for the error.

    Raises:
        ConfigError: sampling is on.
    """
    if not config.sampling.whole:
        raise benchmark.error(f"sampling is for one graph whose nodes are predicted; here {here}: leave sampling out")


class Cutter:
    """Makes examples of samples of a graph. Node encodings are those of the graph, pair encodings those of the sample.

    Args:
        structure: the graph.
        whole: its example.
        pairs: encodings of pairs.
        grouping: how the model groups graphs.
    """

    def __init__(self, structure: Structure, whole: Example, pairs: Sequence[Encoding], grouping: Grouping) -> None:
        self.structure, self.whole, self.pairs, self.grouping = structure, whole, pairs, grouping
        self.sampler = Sampler(whole.edges, whole.size)

    def example(self, sample: Sample, targets: Ids, drawn: bool = False) -> Example:
        """The example of a sample.

        Args:
            sample: a sample of the graph.
            targets: numbers of the nodes whose targets count.
            drawn: whether sampled messages represent others that were not sampled.
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
        """Examples of ``together`` adjacent parts each, without those that have no target."""
        groups = [np.concatenate(parts[i : i + together]) for i in range(0, len(parts), together)]
        groups = [nodes for nodes in groups if np.isin(nodes, targets).any()]
        return [self.example(self.sampler.among(nodes), targets) for nodes in groups]


class Neighbourhoods:
    """Makes a batch of nodes and of a random sample of their neighbours.

    The sample depends only on the seed and the numbers of the nodes: a resumed training draws the same.

    Args:
        cutter: makes examples of samples.
        fanouts: number of messages sampled at each distance.
        seed: seed of the training.
        most: largest number of nodes in a batch.
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
    """Makes a batch of parts of a graph, with all edges among their nodes (Chiang et al. 2019, Cluster-GCN).

    Args:
        cutter: makes examples of samples.
        parts: nodes of each part.
        seeds: training nodes.
    """

    def __init__(self, cutter: Cutter, parts: Sequence[Ids], seeds: Ids) -> None:
        self.cutter, self.parts, self.seeds = cutter, parts, seeds

    def __call__(self, numbers: Sequence[int]) -> Batch:
        nodes = np.concatenate([self.parts[i] for i in numbers])
        return collate([self.cutter.example(self.cutter.sampler.among(nodes), self.seeds)], self.cutter.grouping)


class GraphExamples(ExampleSource, name="graph"):
    """Graphs, each with a target."""

    @staticmethod
    def data(config: PredictionConfig, benchmark: Benchmark, split: Split, model: GraphModel, folder: Path) -> Data:
        _check_whole(config, benchmark, "whole graphs are, some of them in each step")
        encodings = encode(benchmark.graphs, model.position.encodings, folder, config.training.hardware.jobs)
        collate = Structures(model.grouping, device_of(config.training.hardware).type)
        targets = np.asarray(benchmark.targets)
        train, valid, test = (
            [Example.of(benchmark.graphs[i], encodings.of(i), targets[i]) for i in part.tolist()] for part in split
        )
        sizes = np.array([example.size for example in train])
        return Data(train, sizes, collate, valid, test, collate, encodings.seconds)


_WHOLE = Inert(("batch_size", "order"), "nothing is sampled, and every step takes the whole graph")


class NodeExamples(ExampleSource, name="node"):
    """One graph with a target for each node. Each step takes the whole graph, or a sample, by ``config.sampling``."""

    @staticmethod
    def data(config: PredictionConfig, benchmark: Benchmark, split: Split, model: GraphModel, folder: Path) -> Data:
        check_pairs(config, benchmark, model)
        sampling = config.sampling
        if sampling.whole:
            refuse_inert(config.training, "training.", [_WHOLE])
        by_parts = sampling.parts is not None and quadratic(model)
        encodings, scored = model.position.encodings, Structures(model.grouping)
        asked = [e for e in encodings if e.arity == 1 or not by_parts]
        computed = encode(benchmark.graphs, asked, folder, config.training.hardware.jobs)
        whole = Example.of(benchmark.graphs[0], computed.of(0), benchmark.targets)
        valid, test = (_whole(whole, part) for part in (split.valid, split.test))
        if sampling.whole:
            seen = _whole(whole, split.train)
            collated = Structures(model.grouping)  # a separate one, which keeps the batch of the training nodes
            return Data(seen, np.array([whole.size]), collated, valid, test, scored, computed.seconds)
        seeds = _known_targets(benchmark, split.train)
        cutter = Cutter(benchmark.graphs[0], whole, [e for e in encodings if e.arity == 2], model.grouping)
        if sampling.fanouts is not None:
            most = most_nodes(model, whole.size)
            draw = Neighbourhoods(cutter, sampling.fanouts, config.training.seed, most)
            return Data(seeds.tolist(), np.ones_like(seeds), draw, valid, test, scored, computed.seconds)
        assert sampling.parts is not None
        parts = partition(benchmark.graphs[0], sampling.parts)
        if by_parts:
            valid, test = (cutter.pieces(parts, config.training.batch_size, part) for part in (split.valid, split.test))
        learned = [i for i, nodes in enumerate(parts) if np.isin(nodes, seeds).any()]
        sizes = np.ones(len(learned), dtype=np.int64)
        return Data(learned, sizes, Parts(cutter, parts, seeds), valid, test, scored, computed.seconds)


def _known_targets(benchmark: Benchmark, numbers: Ids) -> Ids:
    """The nodes whose target is known, at least in part."""
    seeds: Ids = numbers[benchmark.objective.known(np.asarray(benchmark.targets)[numbers])]
    if not len(seeds):
        raise benchmark.error("the target of no training node is known; there is nothing to learn")
    return seeds


def _whole(example: Example, numbers: Ids) -> list[Example]:
    """The whole graph with a mask of some nodes; an empty list without nodes."""
    return [replace(example, target_mask=np.isin(np.arange(example.size), numbers))] if len(numbers) else []


class PairExamples(ExampleSource, name="pair"):
    """Triples (head, relation, tail) of one graph, each with two queries: for its tail and for its head."""

    @staticmethod
    def data(config: PredictionConfig, benchmark: Benchmark, split: Split, model: GraphModel, folder: Path) -> Data:
        _check_whole(config, benchmark, "pairs of nodes are, some of them in each step")
        check_pairs(config, benchmark, model)
        computed = encode(benchmark.graphs, model.position.encodings, folder, config.training.hardware.jobs)
        triples = np.asarray(benchmark.targets)
        batch = collate([Example.of(benchmark.graphs[0], computed.of(0))], model.grouping)
        train, valid, test = (part.tolist() for part in split)
        asked = Queries(batch, triples, np.concatenate([split.valid, split.test]))
        sizes = np.ones(len(train), dtype=np.int64)
        return Data(train, sizes, Queries(batch, triples), valid, test, asked, computed.seconds)


class Queries(Collate):
    """Makes a batch of the graph with two queries for each triple: (h, r, ?), then (?, r, t).

    Args:
        batch: the graph.
        triples: (t, 3) head, relation, tail of all splits.
        filtered: numbers of the triples whose queries also have all other correct entities as targets; None for
            training, whose loss does not need them.
    """

    room = 2**23  # scores

    def __init__(self, batch: Batch, triples: Ids, filtered: Ids | None = None) -> None:
        (h, r, t), forth = triples.T, np.zeros(len(triples), dtype=np.int64)
        self.batch = batch
        self.queries = np.stack([np.stack([h, r, forth], 1), np.stack([t, r, forth + 1], 1)], axis=1)
        self.targets = np.stack([t, h], axis=1)[..., None]
        self.known = None if filtered is None else _known_answers(self.queries, self.targets, filtered)

    def __call__(self, examples: Sequence[int]) -> Batch:
        numbers = np.asarray(examples, dtype=np.int64)
        queries, targets = self.queries[numbers].reshape(-1, 3), self.targets[numbers].reshape(-1, 1)
        if self.known is not None:
            table, rows = self.known
            targets = np.concatenate([targets, table[rows[numbers].reshape(-1)]], axis=1)
        return self.batch.replaced(queries=torch.from_numpy(queries), target=torch.from_numpy(targets))

    def size(self, example: int) -> int:
        return 2 * len(self.batch.graph)

    def owners(self, batch: Batch) -> Int[Tensor, " c"]:
        assert batch.queries is not None
        return torch.arange(len(batch.queries)) // 2


def _known_answers(queries: Ids, targets: Ids, filtered: Ids) -> tuple[Ids, Ids]:
    """The correct entities of each distinct query, padded with -1; and the rows of the two queries of each triple.

    Only the queries of the triples ``filtered`` have valid rows.
    """
    _, number = np.unique(queries.reshape(-1, 3), axis=0, return_inverse=True)
    number = number.reshape(-1)
    needed = np.unique(number.reshape(-1, 2)[filtered])
    row = np.full(number.max() + 1, -1)
    row[needed] = np.arange(len(needed))
    rows, answers = row[number], targets.reshape(-1)
    rows, answers = rows[rows >= 0], answers[rows >= 0]
    order = np.argsort(rows, kind="stable")
    counts = np.bincount(rows, minlength=len(needed))
    column = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.full((len(needed), counts.max(initial=0)), -1)
    table[rows[order], column] = answers[order]
    return table, row[number].reshape(-1, 2)
