"""ogbg-code2 of the Open Graph Benchmark (Hu et al. 2020): names of functions from their syntax trees."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.data.features import Categories
from structpe.datasets.base import Benchmark, benchmark
from structpe.datasets.files.arrays import needed
from structpe.datasets.ogb._official import Raw, official
from structpe.datasets.ogb._structures import structures
from structpe.errors import ConfigError, ReadError, reason_of
from structpe.objectives.metrics import END, UNKNOWN
from structpe.objectives.sequence import Sequences
from structpe.structure import Structure

__all__ = ["ogbg_code2"]

LENGTH, DEEPEST = 5, 20
RELATIONS = ("child", "next")


@benchmark("ogbg-code2")
def ogbg_code2(folder: Path, words: int = 5000, next_tokens: bool = False, download: bool = False) -> Benchmark:
    """ogbg-code2: the words of a function's name, up to 5, from its syntax tree; split by project.

    Node features are type, attribute and depth (20 means 20 or more). The vocabulary has the most frequent ``words`` of
    the names of training functions, an end of the name and an unknown word. The metric is F1 against the whole name;
    words outside the vocabulary count as missed.

    ``next_tokens`` adds an edge from each node with a token to the next one, as OGB's baselines do. The graphs are then
    not trees, and ``edge_x`` distinguishes the two kinds of edges.

    Files: ``ogbg_code2/raw``, ``split`` and ``mapping`` as OGB provides them; ``download`` lets ``ogb`` fetch them.
    """
    if words < 1:
        raise ConfigError(f"the vocabulary has {words} words; give one at least")
    raw = official("graph", "ogbg-code2", folder, download)
    types, attributes = _column(raw, "type"), _column(raw, "attr")
    raw = replace(raw, graphs=[_with_depth(graph, f"{raw.name}:{i}") for i, graph in enumerate(raw.graphs)])
    trees = structures(raw, lambda x, _: _named(types, x), lambda _: ())
    names = [list(map(str, name)) for name in raw.labels]
    vocabulary = Counter(word for number in raw.split.train for word in names[number]).most_common(words)
    places = {word: place for place, (word, _) in enumerate(vocabulary, max(END, UNKNOWN) + 1)}
    return Benchmark(
        name=raw.name,
        graphs=[_tree(tree, graph, next_tokens) for tree, graph in zip(trees, raw.graphs, strict=True)],
        targets=_targets(names, places),
        splits=(raw.split,),
        nodes=Categories((len(types), len(attributes), DEEPEST + 1)),
        edges=Categories((len(RELATIONS),)) if next_tokens else None,
        objective=Sequences("graph", len(places) + 2, "f1", LENGTH),
    )


def _with_depth(graph: Mapping[str, Any], name: str) -> dict[str, Any]:
    lacking = [key for key in ("node_feat", "node_depth", "node_dfs_order", "node_is_attributed") if key not in graph]
    if lacking:
        raise ReadError(f"the tree has no {lacking[0]}; fetch or make the data set again").at(name)
    depth = np.minimum(graph["node_depth"], DEEPEST)
    return {**graph, "node_feat": np.concatenate([graph["node_feat"], depth], axis=1)}


def _tree(tree: Structure, graph: Mapping[str, Any], next_tokens: bool) -> Structure:
    """Add the root, the reading order and, with ``next_tokens``, edges between tokens."""
    reading = np.argsort(np.asarray(graph["node_dfs_order"])[:, 0], kind="stable")
    root = int(np.argmin(graph["node_depth"]))
    edges, relations, features = tree.edges, (RELATIONS[0],) * len(tree.edges), dict(tree.features)
    if next_tokens:
        tokens = reading[np.asarray(graph["node_is_attributed"])[reading, 0] == 1]
        edges = np.concatenate([edges, np.stack([tokens[:-1], tokens[1:]], axis=1)])
        relations += (RELATIONS[1],) * (len(edges) - len(relations))
        features["edge_x"] = (np.arange(len(edges)) >= len(tree.edges)).astype(np.int64)[:, None]
    return replace(
        tree, edges=edges, relations=relations, features=features, root=root, order=np.argsort(reading, kind="stable")
    )


def _targets(names: Sequence[Sequence[str]], places: Mapping[str, int]) -> NDArray[np.int64]:
    """The learned words of each name, and the words that the metric ``f1`` needs: (g, 5 + m)."""
    most = max(len(set(name)) for name in names)
    targets = np.full((len(names), LENGTH + most), -1)
    targets[:, :LENGTH] = END
    for row, name in zip(targets, names, strict=True):
        learned = [places.get(word, UNKNOWN) for word in name[:LENGTH]]
        wanted = [places.get(word, -2 - number) for number, word in enumerate(dict.fromkeys(name))]
        row[: len(learned)] = learned
        row[LENGTH : LENGTH + len(wanted)] = wanted
    return targets


def _column(raw: Raw, name: str) -> tuple[str, ...]:
    """Read the names of types or attributes, in the order of their numbers."""
    import pandas

    file = needed(raw.folder / "mapping" / f"{name}idx2{name}.csv.gz")
    try:
        return tuple(pandas.read_csv(file, keep_default_na=False)[name].astype(str))
    except (KeyError, ValueError, OSError, EOFError, zlib.error) as error:
        raise ReadError(f"no table with a column {name!r} ({reason_of(error)}); fetch it again").at(file) from None


def _named(types: Sequence[str], x: NDArray[Any] | None) -> tuple[str, ...]:
    if x is None or x[:, 0].max() >= len(types):
        raise ReadError(f"a node has a type beyond the {len(types)} of mapping/typeidx2type.csv.gz; fetch it again")
    return tuple(types[number] for number in x[:, 0].tolist())
