"""Samples of one graph: drawn neighbourhoods and parts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from structpe.data.batch import Batch, Example, Grouping, collate
from structpe.data.sampling import Sample, Sampler
from structpe.encodings.base import Encoded, Encoding
from structpe.errors import ConfigError
from structpe.structure import Ids, Structure
from structpe.transforms import subgraph

__all__ = ["Cutter", "Neighbourhoods", "Parts"]


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
            drawn: whether its messages represent others that were not drawn.
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
