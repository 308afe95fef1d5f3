"""Knowledge graphs with held-out triples, such as UMLS, Nations and WN18RR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from structpe.data.features import Categories
from structpe.datasets.base import Benchmark, Split, benchmark
from structpe.datasets.files.arrays import needed
from structpe.errors import ConfigError
from structpe.formats import read
from structpe.formats.triples import triples
from structpe.objectives.link import Link
from structpe.structure import Ids

__all__ = ["knowledge_graph"]


@benchmark("knowledge-graph")
def knowledge_graph(folder: Path, columns: str = "hrt", metric: str = "mrr") -> Benchmark:
    """A knowledge graph, published or your own: which entity completes a triple; filtered ranks.

    The graph has the entities of all three files, and as edges the training triples. Each entity is a category, so that
    it has a learned vector. An entity without a training triple keeps its initial vector (WN18RR has such entities).

    Args:
        folder: where ``train.txt``, ``valid.txt`` and ``test.txt`` are, a triple per line, separated by tabs.
        columns: the order of head, relation and tail: ``hrt``, or ``rht`` as in Nations.
        metric: ``mrr``, ``hits@1``, ``hits@3`` or ``hits@10``; all four are reported.

    Raises:
        ConfigError: a triple is in two splits.
        ReadError: a file is missing, or a line is not a triple.
    """
    parts = [read(needed(folder / f"{part}.txt"), "triples", columns=columns)[0].structure for part in Split._fields]
    facts = [
        (part.nodes[head], relation, part.nodes[tail])
        for part in parts
        for (head, tail), relation in zip(part.edges.tolist(), part.relations, strict=True)
    ]
    whole = triples(facts, name=folder.resolve().name)
    names, relations = np.unique(whole.relations, return_inverse=True)
    found = np.column_stack([whole.edges[:, 0], relations, whole.edges[:, 1]])
    split = Split(*np.split(np.arange(len(facts)), np.cumsum([len(part.edges) for part in parts])[:-1]))
    _check(facts, found, split)
    learned = len(split.train)
    graph = replace(
        whole,
        edges=whole.edges[:learned],
        relations=whole.relations[:learned],
        features={"x": np.arange(whole.size)[:, None], "edge_x": relations[:learned, None]},
    )
    return Benchmark(
        name=whole.name,
        graphs=[graph],
        targets=found,
        splits=(split,),
        nodes=Categories((whole.size,)),
        edges=Categories((len(names),)),
        objective=Link(len(names), metric, whole.size),
        note="filtered ranks, both directions, the mean rank among equal scores",
    )


def _check(facts: Sequence[tuple[str, str, str]], found: Ids, split: Split) -> None:
    """Check that no triple is in two splits, as the test split would then be trained on."""
    _, first, number = np.unique(found, axis=0, return_index=True, return_inverse=True)
    parts = [np.unique(number.reshape(-1)[numbers]) for numbers in split]
    seen, times = np.unique(np.concatenate(parts), return_counts=True)
    if len(twice := seen[times > 1]):
        raise ConfigError(
            f"the triple {facts[first[twice[0]]]} is in two of the files, and {len(twice) - 1} others; keep each in one"
        )
