"""Graphs whose nodes are predicted: citation graphs, and those of Platonov et al. (2023).

Most are heterophilous: neighbours usually have different classes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from structpe.data.features import Numbers
from structpe.datasets.arrays import arrays, indices
from structpe.datasets.base import Benchmark, Split, benchmark
from structpe.datasets.pickles import pickled_array, pickled_lists, pickled_matrix
from structpe.errors import ConfigError, ReadError, listed
from structpe.objectives.classification import Binary, Multiclass
from structpe.structure import Ids, Structure

__all__ = ["CITATIONS", "PUBLISHED", "npz"]

EACH, VALID, TEST = 20, 500, 1000


CITATIONS = {
    "cora": "Cora: seven subjects of 2,708 papers; the public split of 140, 500 and 1,000.",
    "citeseer": """CiteSeer: six subjects of 3,327 papers; the public split of 120, 500 and 1,000.

    The words and subjects of 15 papers are unknown: their features are 0, and they are in no part of the split.""",
    "pubmed": "PubMed: three subjects of 19,717 papers; the public split of 60, 500 and 1,000.",
}


def citation_graph(name: str) -> Callable[..., Benchmark]:
    """Make the loader of one of :data:`CITATIONS`."""
    title = CITATIONS[name].partition(":")[0]

    def load(folder: Path, normalise: bool = True, drawn: int | None = None) -> Benchmark:
        return _planetoid(folder, name, title, normalise, drawn)

    load.__doc__ = f"""{CITATIONS[name]}

    Files: ``ind.{name}.allx``, ``.ally``, ``.tx``, ``.ty``, ``.y``, ``.graph`` and ``.test.index`` of Yang et al.

    Args:
        folder: folder with the files.
        normalise: whether to divide the features of each paper by their sum, as is usual.
        drawn: seed of a random split instead of the public one: 20 papers of each subject, then 500 and 1,000 others.
            123 gives the split of Luo et al. (2024), whose results are not comparable with those of the public split.
    """
    return load


for _name in CITATIONS:
    benchmark(_name)(citation_graph(_name))


def _planetoid(folder: Path, name: str, title: str, normalise: bool, drawn: int | None) -> Benchmark:
    file = {part: folder / f"ind.{name}.{part}" for part in ("allx", "ally", "tx", "ty", "y", "graph", "test.index")}
    edges, size = _edges(file["graph"])
    tested = indices(file["test.index"], size, "papers")
    words, tested_words = (pickled_matrix(file[part]).toarray().astype(np.float32) for part in ("allx", "tx"))
    features = _placed(words, tested_words, tested, size, file["tx"])
    known, asked = (_subjects(file[part]) for part in ("ally", "ty"))
    if len(known) != len(words):
        wrong = f"there are subjects of {len(known)} papers, and the words of {len(words)}"
        raise ReadError(f"{wrong}; bring back files that belong together").at(str(file["ally"]))
    classes = _placed(known, asked, tested, size, file["ty"])
    trained = _trained(file["y"], known)
    if normalise:
        sums = features.sum(axis=1, keepdims=True)
        features = features / np.where(sums, sums, 1)
    subjects = np.where(classes.any(axis=1), classes.argmax(axis=1), -1)
    public = Split(np.arange(trained), np.arange(trained, trained + VALID), np.sort(tested))
    split, said = (public, "the public split")
    if drawn is not None:
        split, said = _drawn(subjects, drawn), f"split drawn with {drawn}"
    return Benchmark(
        name=title,
        graphs=[Structure(("",) * size, edges, directed=False, features={"x": features}, name=title)],
        targets=subjects,
        splits=(split,),
        nodes=Numbers(features.shape[1]),
        objective=Multiclass("node", classes.shape[1], "accuracy"),
        note=said + ("; features of a paper are divided by their sum" if normalise else ""),
    )


def _drawn(subjects: Ids, seed: int) -> Split:
    """Draw 20 papers of each subject, then 500 and 1,000 of all others, in the order of Luo et al. (2024).

    Their code, as in NodeFormer (Wu et al. 2022), shuffles the papers of one subject after the other with
    ``torch.randperm``, then the remaining papers.

    Raises:
        ConfigError: there are not enough papers.
    """
    generator = torch.Generator().manual_seed(seed)

    def shuffled(papers: Ids) -> Ids:
        return np.take(papers, torch.randperm(len(papers), generator=generator).numpy())

    each = [shuffled(np.flatnonzero(subjects == subject)) for subject in range(subjects.max() + 1)]
    rest = shuffled(np.concatenate([papers[EACH:] for papers in each]))
    if min(map(len, each)) < EACH or len(rest) < VALID + TEST:
        there = listed(len(papers) for papers in each)
        wrong = f"a drawn split takes {EACH} papers of each subject, then {VALID} and {TEST}; there are {there}"
        raise ConfigError(f"{wrong} of the subjects; leave out drawn, for the public split")
    return Split(np.concatenate([papers[:EACH] for papers in each]), rest[:VALID], rest[VALID : VALID + TEST])


def _edges(file: Path) -> tuple[Ids, int]:
    """Read the citations and the number of papers, without repetitions and papers that cite themselves.

    Raises:
        ReadError: papers are not numbered 0, 1, 2 and so on.
    """
    lists = pickled_lists(file)
    size = len(lists)
    cited = [other for others in lists.values() for other in others]
    if not size or set(lists) != set(range(size)) or min(cited, default=0) < 0 or max(cited, default=0) >= size:
        raise ReadError(f"{size} papers are not numbered 0..{size - 1}; bring back the original").at(file)
    citing = np.repeat(list(lists), [len(others) for others in lists.values()])
    pairs = np.sort(np.stack([citing, np.array(cited, dtype=np.int64)], axis=1), axis=1)
    return np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0), size


def _subjects(file: Path) -> NDArray[Any]:
    """Read the subjects: (n, classes), one 1 in each row.

    Raises:
        ReadError: the file is missing or damaged, or a row has not one 1.
    """
    rows = pickled_array(file)
    marks = rows.ndim == 2 and bool(np.isin(rows, (0, 1)).all())
    if not marks or (wrong := np.flatnonzero(rows.sum(axis=1) != 1)).size:
        named = f"paper {wrong[0]} has not one subject" if marks else "none is so"
        raise ReadError(f"a 1 in each row is needed, and 0 elsewhere; {named}; bring back the original").at(file)
    return rows


def _trained(file: Path, known: NDArray[Any]) -> int:
    """Number of training papers: the first ones, whose subjects are repeated in a file."""
    again = _subjects(file)
    if not np.array_equal(again, known[: len(again)]):
        raise ReadError("the subjects are not those of the first papers of .ally; bring back the original").at(file)
    return len(again)


def _placed(first: NDArray[Any], tested: NDArray[Any], numbers: Ids, size: int, file: Path) -> NDArray[Any]:
    """Rows of the first papers and, by their numbers, of the tested papers: (size, k), 0 for papers without a row."""
    if tested.shape != (len(numbers), first.shape[1]) or len(first) > numbers.min():
        tests = f"{len(numbers)} tested papers from number {numbers.min()} on"
        wrong = f"rows of shape {tested.shape} after {first.shape} do not fit {tests}"
        raise ReadError(f"{wrong}; bring back the original").at(file)
    rows = np.zeros((size, first.shape[1]), dtype=first.dtype)
    rows[: len(first)], rows[numbers] = first, tested
    return rows


ARRAYS = ("node_features", "node_labels", "edges", "train_masks", "val_masks", "test_masks")


PUBLISHED = {
    "roman-empire": (18, "Roman-empire: the syntactic role of each word of an article; dependencies are edges"),
    "amazon-ratings": (5, "Amazon-ratings: ratings of products; edges join products that are bought together"),
    "minesweeper": (2, "Minesweeper: which cells of a 100 x 100 grid are mines, from the visible half of the cells"),
    "tolokers": (2, "Tolokers: which workers of a crowdsourcing platform were banned; edges join workers of one task"),
    "questions": (2, "Questions: which users of a forum stay active; edges join users who answered each other"),
    "actor": (5, "Actor: five classes of actors by words of their pages; edges join actors named on one page"),
    "chameleon-filtered": (5, "Chameleon without duplicates: five classes of pages by traffic; links are edges"),
    "squirrel-filtered": (5, "Squirrel without duplicates: five classes of pages by traffic; links are edges"),
}
"""Number of classes and description of each graph of Platonov et al.; actor has the splits of Pei et al. (2020)."""


def published(name: str) -> Callable[..., Benchmark]:
    """Make the loader of one of :data:`PUBLISHED`."""
    (classes, doc), file = PUBLISHED[name], f"{name.replace('-', '_')}.npz"

    def load(folder: Path) -> Benchmark:
        return _benchmark(folder / file, name, classes)

    load.__doc__ = f"""{doc}; ten splits.

    File: ``{file}`` of Platonov et al.
    """
    return load


for _name in PUBLISHED:
    benchmark(_name)(published(_name))


@benchmark("npz")
def npz(folder: Path, file: str, classes: int | None = None) -> Benchmark:
    """Your own graph for node prediction, in the ``.npz`` format of Platonov et al. (2023).

    The file has ``node_features`` (n, k), ``node_labels`` (n,), ``edges`` (e, 2), and ``train_masks``, ``val_masks``
    and ``test_masks`` (splits, n) of booleans. As in the authors' code, the metric is the area under the ROC curve for
    two classes, and accuracy for more.

    Args:
        folder: folder of the file.
        file: name of the file.
        classes: number of classes; None takes the largest label + 1.

    Raises:
        ConfigError: ``classes`` is less than two.
        ReadError: the file is missing or damaged, or its arrays do not fit together.
    """
    if classes is not None and classes < 2:
        raise ConfigError(f"classes is {classes}; give 2 or more, or leave it out")
    return _benchmark(folder / file, Path(file).stem, classes)


def _benchmark(file: Path, name: str, classes: int | None) -> Benchmark:
    graph, labels, splits = _read(file, classes)
    count = max(2, int(labels.max()) + 1) if classes is None else classes
    # Two classes are one binary target: the area under the ROC curve needs one score per node.
    objective = Binary("node", 1, "rocauc") if count == 2 else Multiclass("node", count, "accuracy")
    targets = labels.astype(np.float32)[:, None] if count == 2 else labels
    nodes, note = Numbers(graph.features["x"].shape[1]), f"{len(splits)} published splits; seed s has split s"
    return Benchmark(name, [graph], targets, splits, objective, nodes, note=note)


def _read(file: Path, classes: int | None) -> tuple[Structure, Ids, tuple[Split, ...]]:
    features, labels, edges, *masks = arrays(file, *ARRAYS)
    problem = _nodes_problem(features, labels, classes) or _edges_problem(edges, len(labels))
    if problem := problem or _masks_problem(masks, len(labels)):
        raise ReadError(f"{problem}; bring back the original").at(file)
    splits = tuple(Split(*map(np.flatnonzero, split)) for split in zip(*masks, strict=True))
    graph = Structure(
        ("",) * len(labels),
        # The authors' code uses each edge once in both directions.
        np.unique(np.sort(edges.astype(np.int64), axis=1), axis=0),
        directed=False,
        features={"x": features.astype(np.float32)},
        name=file.name,
    )
    return graph, labels.astype(np.int64), splits


def _nodes_problem(features: NDArray[Any], labels: NDArray[Any], classes: int | None) -> str:
    """The problem of features and labels; empty if they are valid."""
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or not len(labels):
        return f"node_labels have shape {labels.shape} and dtype {labels.dtype}; an integer for each node is needed"
    if features.ndim != 2 or len(features) != len(labels):
        return f"node_features have shape {features.shape}; a row for each of {len(labels)} nodes is needed"
    if features.dtype.kind not in "biuf" or not np.isfinite(features).all():
        return f"node_features have dtype {features.dtype}, or are not all finite; finite numbers are needed"
    most = len(labels) if classes is None else classes  # there cannot be more classes than nodes
    if labels.min() < 0 or labels.max() >= most:
        return f"node_labels are from {labels.min()} to {labels.max()}; 0..{most - 1} are needed"
    return ""


def _edges_problem(edges: NDArray[Any], size: int) -> str:
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        return f"edges have shape {edges.shape} and dtype {edges.dtype}; a row (source, target) is needed for each"
    if edges.size and (edges.min() < 0 or edges.max() >= size):
        return f"edges name nodes from {edges.min()} to {edges.max()}; nodes are 0..{size - 1}"
    return ""


def _masks_problem(masks: list[NDArray[Any]], size: int) -> str:
    for name, mask in zip(ARRAYS[3:], masks, strict=True):
        if mask.dtype != np.bool_ or mask.ndim != 2 or mask.shape[1] != size:
            needed = f"a row of {size} booleans for each split is needed"
            return f"{name} has shape {mask.shape} and dtype {mask.dtype}; {needed}"
    counts = [len(mask) for mask in masks]
    if len(set(counts)) > 1 or not counts[0]:
        return "the masks are for {}, {} and {} splits; give the same number of each, at least one".format(*counts)
    for split, parts in enumerate(zip(*masks, strict=True)):
        for name, part in zip(ARRAYS[3:], parts, strict=True):
            if not part.any():
                return f"{name} has no node in split {split}; at least one is needed"
        if (twice := np.flatnonzero(np.sum(parts, axis=0) > 1)).size:
            return f"the masks of split {split} overlap, at node {twice[0]} and {len(twice) - 1} others"
    return ""
