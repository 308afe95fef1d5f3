"""Samples of a graph that is too large to train on as a whole: random neighbourhoods, or induced subgraphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structpe.data.adjacency import EdgeIndex
from structpe.structure import Ids

__all__ = ["Sample", "Sampler"]


@dataclass(frozen=True, eq=False)
class Sample:
    """Some nodes of a graph, and messages among them.

    Attributes:
        nodes: (m,) indices of the nodes, sorted.
        messages: (k,) indices of the messages, sorted.
    """

    nodes: Ids
    messages: Ids


class Sampler:
    """Take samples of one graph. The cost of a sample depends on its size, not on that of the graph.

    Args:
        directions: all messages of the graph.
        size: n, the number of its nodes.
    """

    def __init__(self, directions: EdgeIndex, size: int) -> None:
        self.directions, self.size = directions, size
        self.starts = np.searchsorted(directions.target, np.arange(size + 1))

    def neighbourhood(self, seeds: Ids, fanouts: Sequence[int], generator: np.random.Generator) -> Sample:
        """Sample neighbours of seeds, neighbours of these, and so on (Hamilton et al. 2017).

        A node at distance t from the seeds receives ``fanouts[t]`` of its messages, uniformly without replacement, or
        all if it has no more. The messages lead towards the seeds, as in the paper, and nodes at the greatest distance
        receive none. With as many fanouts as a model has layers, each large enough, the predictions for the seeds equal
        those on the whole graph.

        Args:
            seeds: numbers of nodes.
            fanouts: number of messages per node at each distance.
            generator: of random numbers.
        """
        known = np.zeros(self.size, dtype=np.bool_)
        nodes = np.unique(seeds)
        known[nodes] = True
        drawn = []
        for fanout in fanouts:
            drawn.append(self._draw(nodes, fanout, generator))
            reached = np.unique(self.directions.source[drawn[-1]])
            nodes = reached[~known[reached]]
            known[nodes] = True
        return Sample(np.flatnonzero(known), np.sort(np.concatenate(drawn)))

    def among(self, nodes: Ids) -> Sample:
        """All messages among some nodes.

        Args:
            nodes: their numbers, each once.
        """
        kept = np.zeros(self.size, dtype=np.bool_)
        kept[nodes] = True
        nodes = np.flatnonzero(kept)
        messages = _ranges(self.starts[nodes], self.starts[nodes + 1])
        return Sample(nodes, messages[kept[self.directions.source[messages]]])

    def cut_out(self, sample: Sample, drawn: bool = False) -> tuple[EdgeIndex, Ids]:
        """The messages of a sample, its nodes and edges numbered from 0.

        Args:
            sample: a sample of this graph.
            drawn: whether messages are a random sample, to be weighted for those left out.

        Returns:
            The messages, and (e,) the numbers that their edges have in the whole graph.
        """
        whole, nodes, messages = self.directions, sample.nodes, sample.messages
        source, target = (np.searchsorted(nodes, ends[messages]) for ends in (whole.source, whole.target))
        edges, edge = np.unique(whole.edge[messages], return_inverse=True)
        by_source = np.argsort(source, kind="stable")
        degrees = self.starts[nodes + 1] - self.starts[nodes] if drawn else None
        return EdgeIndex(source, target, edge, whole.reverse[messages], by_source, degrees), edges

    def _draw(self, nodes: Ids, fanout: int, generator: np.random.Generator) -> Ids:
        """Indices of the sampled messages to each node."""
        first, end = self.starts[nodes], self.starts[nodes + 1]
        many = end - first > fanout
        chosen = first[many, None] + _distinct((end - first)[many], fanout, generator)
        return np.concatenate([_ranges(first[~many], end[~many]), chosen.reshape(-1)])


def _ranges(first: Ids, end: Ids) -> Ids:
    """first[0], ..., end[0] - 1, first[1], ..., one after the other."""
    counts = end - first
    before = np.cumsum(counts) - counts
    result: Ids = np.repeat(first - before, counts) + np.arange(counts.sum())
    return result


def _distinct(counts: Ids, few: int, generator: np.random.Generator) -> Ids:
    """(m, few) different numbers below each of (m,) counts, all of which are larger than ``few``.

    Uniform over all choices (Floyd's algorithm, Bentley & Floyd 1987); the time does not depend on the counts.
    """
    chosen = np.empty((len(counts), few), dtype=np.int64)
    for column in range(few):
        last = counts - few + column
        number = generator.integers(0, last + 1)
        taken = (chosen[:, :column] == number[:, None]).any(axis=1)
        chosen[:, column] = np.where(taken, last, number)
    return chosen
