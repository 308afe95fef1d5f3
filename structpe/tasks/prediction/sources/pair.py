"""One knowledge graph whose missing triples are predicted: all of it in every step, with queries of some triples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from structpe.data.batch import Batch, Example, collate
from structpe.datasets import Benchmark, Split
from structpe.nn.graph_model import GraphModel
from structpe.structure import Ids
from structpe.tasks.prediction.config import PredictionConfig
from structpe.tasks.prediction.encodings import encode
from structpe.tasks.prediction.quadratic import check_pairs
from structpe.tasks.prediction.sources.base import Data, Source, check_whole
from structpe.tasks.prediction.task import Collate

__all__ = ["Pairs", "Queries"]


class Pairs(Source, name="pair"):
    """Triples (head, relation, tail) of one graph, each of which asks for its tail and for its head."""

    @staticmethod
    def data(config: PredictionConfig, benchmark: Benchmark, split: Split, model: GraphModel, folder: Path) -> Data:
        check_whole(config, benchmark, "pairs of nodes are, some of them in each step")
        check_pairs(config, benchmark, model)
        computed = encode(benchmark.graphs, model.position.encodings, folder, config.training.jobs)
        triples = np.asarray(benchmark.targets)
        batch = collate([Example.of(benchmark.graphs[0], computed.of(0))], model.grouping)
        train, valid, test = (part.tolist() for part in split)
        asked = Queries(batch, triples, np.concatenate([split.valid, split.test]))
        sizes = np.ones(len(train), dtype=np.int64)
        return Data(train, sizes, Queries(batch, triples), valid, test, asked, computed.seconds)


class Queries(Collate):
    """From numbers of triples to the graph with two queries each: (h, r, ?), then (?, r, t).

    Args:
        batch: the graph.
        triples: (t, 3) head, relation, tail of all splits.
        filtered: numbers of the triples whose queries get as targets also all other entities that complete them; None
            for training, whose loss needs none.
    """

    room = 2**23  # scores

    def __init__(self, batch: Batch, triples: Ids, filtered: Ids | None = None) -> None:
        (h, r, t), forth = triples.T, np.zeros(len(triples), dtype=np.int64)
        self.batch = batch
        self.queries = np.stack([np.stack([h, r, forth], 1), np.stack([t, r, forth + 1], 1)], axis=1)
        self.targets = np.stack([t, h], axis=1)[..., None]
        self.known = None if filtered is None else _known(self.queries, self.targets, filtered)

    def __call__(self, examples: Sequence[int]) -> Batch:
        numbers = np.asarray(examples, dtype=np.int64)
        queries, targets = self.queries[numbers].reshape(-1, 3), self.targets[numbers].reshape(-1, 1)
        if self.known is not None:
            table, rows = self.known
            targets = np.concatenate([targets, table[rows[numbers].reshape(-1)]], axis=1)
        return self.batch.replaced(queries=torch.from_numpy(queries), target=torch.from_numpy(targets))

    def size(self, example: int) -> int:
        return 2 * len(self.batch.graph)

    def owners(self, batch: Batch) -> Int[Tensor, "c"]:
        assert batch.queries is not None
        return torch.arange(len(batch.queries)) // 2


def _known(queries: Ids, targets: Ids, filtered: Ids) -> tuple[Ids, Ids]:
    """The entities that complete each different query, padded with -1; and of each triple the rows of its two queries.

    Only queries of the triples ``filtered`` have rows that may be read.
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
