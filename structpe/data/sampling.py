"""Samples of a graph that is too large to train on as a whole: random neighbourhoods, or parts of it.

Shapes: n nodes, c clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from structpe.data.batch import EdgeIndex
from structpe.errors import ConfigError
from structpe.structure import Ids, Structure

__all__ = ["Sample", "Sampler", "partition"]


Floats = NDArray[np.floating]

ROUNDS = 12
"""Maximum number of rounds of moves, on each level and at the end."""
FEW = 0.01
"""Stop when a smaller share of nodes moves in a round."""
SLACK = 0.1
"""Allowed deviation of the size of a part from the mean, as a share of the mean."""


def partition(structure: Structure, parts: int) -> list[Ids]:
    """Assign each node to one part. Parts are of similar size, with few edges between them.

    Nodes are gathered into clusters no larger than a part, clusters into larger ones, and so on (size-constrained label
    propagation, Meyerhenke, Sanders and Schulz 2014): a node moves to the cluster with which most of its edges join it,
    where there is room. The clusters, neighbours next to one another (reverse Cuthill-McKee), make a row of all nodes;
    it is cut near equal lengths, where the fewest edges lead across; last, nodes at the borders move once more. The
    same graph gives the same parts. Parts keep the order of the row: consecutive parts are neighbours.

    Args:
        structure: the graph. Directions are ignored; parallel edges count separately.
        parts: number of parts.

    Returns:
        The nodes of each part, sorted.

    Raises:
        ConfigError: there are fewer nodes than parts.
    """
    n = structure.size
    if not 1 <= parts <= n:
        raise ConfigError(f"a graph of {n} nodes cannot be cut into {parts} parts; give 1 to {n} parts")
    if parts == 1:
        return [np.arange(n)]
    generator = np.random.default_rng(0)
    graph, sizes = _weights(structure), np.ones(n, dtype=np.int64)
    label = _cut(graph, _row(graph, n / parts, generator), parts)
    label = _moved(graph, sizes, label, ((1 - SLACK) * n / parts, (1 + SLACK) * n / parts), generator)
    order = np.argsort(label, kind="stable")
    return np.split(order, np.cumsum(np.bincount(label, minlength=parts))[:-1])


def _weights(structure: Structure) -> csr_array:
    """(n, n) number of edges between different nodes; symmetric."""
    edges = structure.edges[structure.edges[:, 0] != structure.edges[:, 1]]
    both = np.concatenate([edges, edges[:, ::-1]]).T
    graph = csr_array((np.ones(both.shape[1]), (both[0], both[1])), shape=(structure.size, structure.size))
    graph.sum_duplicates()
    return graph


def _row(graph: csr_array, most: float, generator: np.random.Generator) -> Ids:
    """All nodes in a row: those of a cluster next to one another, on every level, and clusters next to their like."""
    keys = [reverse_cuthill_mckee(graph, symmetric_mode=True).argsort()]
    of_node = np.arange(graph.shape[0])
    sizes = np.ones(len(of_node), dtype=np.int64)
    while True:
        label = np.unique(_moved(graph, sizes, np.arange(len(sizes)), (0, most), generator), return_inverse=True)[1]
        count = int(label.max()) + 1
        if count > 0.9 * len(sizes):
            break
        of_node, sizes = label[of_node], np.bincount(label, weights=sizes).astype(np.int64)
        keys.append(of_node)
        graph = _contracted(graph, label, count)
    if len(keys) > 1:
        keys.append(reverse_cuthill_mckee(graph, symmetric_mode=True).argsort()[of_node])
    return np.lexsort(keys)


def _contracted(graph: csr_array, label: Ids, count: int) -> csr_array:
    """(c, c) the sums of weights between clusters."""
    ends = graph.tocoo()
    source, target = label[ends.row], label[ends.col]
    between = source != target
    result = csr_array((ends.data[between], (source[between], target[between])), shape=(count, count))
    result.sum_duplicates()
    return result


def _cut(graph: csr_array, row: Ids, parts: int) -> Ids:
    """(n,) the part of each node: the row is cut near equal lengths, each time where the fewest edges lead across."""
    n = len(row)
    place = np.argsort(row)
    ends = graph.tocoo()
    first, last = place[ends.row], place[ends.col]
    ahead = first < last
    change = np.bincount(first[ahead], ends.data[ahead], n + 1) - np.bincount(last[ahead], ends.data[ahead], n + 1)
    across = np.concatenate([[0.0], np.cumsum(change)])  # of a cut before each place
    reach = int(SLACK * n / parts / 2)
    cuts = [0, *(round(i * n / parts) for i in range(1, parts)), n]
    for i in range(1, parts):
        cuts[i] += int(across[cuts[i] - reach : cuts[i] + reach + 1].argmin()) - reach
    label = np.empty(n, dtype=np.int64)
    for part, (start, end) in enumerate(pairwise(cuts)):
        label[row[start:end]] = part
    return label


def _moved(
    graph: csr_array, sizes: Ids, label: Ids, bounds: tuple[float, float], generator: np.random.Generator
) -> Ids:
    """The clusters after some rounds; in each, a random half of the nodes may move.

    Args:
        graph: weights of edges.
        sizes: (n,) number of original nodes in each node.
        label: (n,) the initial cluster of each node.
        bounds: minimum and maximum size of a cluster.
        generator: breaks ties and chooses the nodes that may move.
    """
    label, (least, most) = label.copy(), bounds
    held = np.bincount(label, weights=sizes)
    for _ in range(ROUNDS):
        nodes = np.flatnonzero(generator.random(len(label)) < 0.5)
        best, gain = _best(graph[nodes], sizes[nodes], label[nodes], label, most - held, generator)
        order = np.argsort(-gain, kind="stable")[: int((gain > 0).sum())]
        order = order[_fitting(best[order], sizes[nodes[order]], most - held)]
        order = order[_fitting(label[nodes[order]], sizes[nodes[order]], held - least)] if least else order
        movers, to = nodes[order], best[order]
        np.subtract.at(held, label[movers], sizes[movers])
        np.add.at(held, to, sizes[movers])
        label[movers] = to
        if len(movers) < FEW * len(nodes):
            break
    return label


def _best(
    rows: csr_array, sizes: Ids, own: Ids, label: Ids, room: Floats, generator: np.random.Generator
) -> tuple[Ids, Floats]:
    """(m,) the cluster with room to which each node has most weight, and its gain over the node's own cluster.

    Args:
        rows: (m, n) weights of the nodes' edges, integral.
        sizes: (m,) of the nodes.
        own: (m,) their clusters.
        label: (n,) the cluster of each node of the graph.
        room: (c,) left in each cluster.
        generator: breaks ties.
    """
    rows.indices = label[rows.indices].astype(rows.indices.dtype)
    rows.has_sorted_indices = rows.has_canonical_format = False
    rows.sum_duplicates()
    node, cluster, weight = np.repeat(np.arange(len(own)), np.diff(rows.indptr)), rows.indices, rows.data
    mine = cluster == own[node]
    gain = -np.bincount(node[mine], weight[mine], len(own)).astype(np.float64)
    open_ = np.flatnonzero(~mine & (room[cluster] >= sizes[node]))
    if not len(open_):
        return own, gain
    node, cluster = node[open_], cluster[open_]
    score = weight[open_] + generator.random(len(open_)) / 2
    starts = np.flatnonzero(np.diff(node, prepend=-1))
    most = np.repeat(np.maximum.reduceat(score, starts), np.diff(np.append(starts, len(node))))
    first = np.flatnonzero(score == most)
    best = own.copy()
    best[node[first]] = cluster[first]
    gain[node[first]] += np.floor(score[first])
    return best, gain


def _fitting(cluster: Ids, sizes: Ids, room: Floats) -> Ids:
    """Which moves fit in their clusters, first come, first served."""
    order = np.argsort(cluster, kind="stable")
    sums = np.cumsum(sizes[order])
    starts = np.flatnonzero(np.diff(cluster[order], prepend=-1))
    before = np.repeat(sums[starts] - sizes[order[starts]], np.diff(np.append(starts, len(order))))
    return np.sort(order[sums - before <= room[cluster[order]]])


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
    """Take samples of one graph. The cost of a sample depends on its size, not on the size of the graph.

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
        degrees = self.starts[nodes + 1] - self.starts[nodes] if drawn else None
        return EdgeIndex.grouped(source, target, edge, whole.rows[messages, 3], degrees), edges

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
