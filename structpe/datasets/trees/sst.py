"""Stanford Sentiment Treebank: sentiment of sentences from their constituency trees (Socher et al. 2013)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from structpe.data.features import Categories
from structpe.datasets.base import Benchmark, Split, benchmark
from structpe.datasets.files.arrays import lines
from structpe.errors import ReadError, located
from structpe.formats.brackets import parse, unescaped
from structpe.formats.text import shown
from structpe.objectives.classification import Multiclass
from structpe.structure import Structure

__all__ = ["sst"]

LABELS, NEUTRAL = "01234", 2
UNKNOWN, PHRASE = 0, 1


class _Tree(NamedTuple):
    """Nodes of a tree, in the order of the text: their words (empty for a phrase), classes and parents."""

    words: list[str]
    classes: list[int]
    parents: list[int]


@benchmark("sst")
def sst(folder: Path, binary: bool = False) -> Benchmark:
    """SST: sentiment of a sentence from its constituency tree; the standard split of 8,544, 1,101 and 2,210.

    Nodes are in the order of the text, edges lead from phrases to their parts, and the root is the sentence. ``x`` is
    the number of a node's word: 0 for a word that is not in a training sentence, 1 for a phrase. The feature
    ``sentiment`` (n, 1) is the class of every node; that of the root is the target, so models must not read it.

    Files: ``train.txt``, ``dev.txt``, ``test.txt`` with one tree per line, ``(3 (2 It) (4 (2 's) (3 good)))``.

    Args:
        folder: folder with the files.
        binary: whether to leave out neutral sentences (6,920, 872 and 1,821 remain) and predict negative or positive
            instead of five classes.
    """
    parts = [_trees(folder / f"{name}.txt") for name in ("train", "dev", "test")]
    if binary:
        parts = [[tree for tree in trees if tree.classes[0] != NEUTRAL] for trees in parts]
    words = {word for tree in parts[0] for word in tree.words} - {""}
    numbers = {"": PHRASE, **{word: number for number, word in enumerate(sorted(words), PHRASE + 1)}}
    trees = [tree for part in parts for tree in part]
    roots = np.array([tree.classes[0] for tree in trees])
    ends = np.cumsum([len(part) for part in parts])
    return Benchmark(
        name="SST-2 (trees)" if binary else "SST-5 (trees)",
        graphs=[_structure(tree, numbers, f"sentence {number}") for number, tree in enumerate(trees)],
        targets=(roots > NEUTRAL).astype(np.int64) if binary else roots,
        splits=(Split(*np.split(np.arange(len(trees)), ends[:-1])),),
        nodes=Categories((len(numbers) + 1,)),
        objective=Multiclass("graph", 2 if binary else len(LABELS), "accuracy"),
        note="trained on whole sentences only, without the classes of phrases; vocabulary of the training part",
    )


def _structure(tree: _Tree, numbers: dict[str, int], name: str) -> Structure:
    size = len(tree.words)
    return Structure(
        tuple(tree.words),
        np.stack([tree.parents[1:], range(1, size)], axis=1) if size > 1 else np.zeros((0, 2), dtype=np.int64),
        order=np.arange(size),
        root=0,
        features={
            "x": np.array([[numbers.get(word, UNKNOWN)] for word in tree.words]),
            "sentiment": np.array(tree.classes)[:, None],
        },
        name=name,
    )


def _trees(file: Path) -> list[_Tree]:
    trees = []
    for number, line in lines(file):
        if line.strip():
            with located(file, f"line {number}"):
                trees.append(_tree(line))
    if not trees:
        raise ReadError("there is no tree in the file; bring back the original").at(file)
    return trees


def _tree(line: str) -> _Tree:
    found = parse(line, "each line is one tree in parentheses")
    for category in found.categories:
        if category is not None and (len(category) != 1 or category not in LABELS):
            raise ReadError(f"a node has the class {category!r}; classes are the digits {LABELS[0]} to {LABELS[-1]}")
    if None in found.categories:
        alone = [word for category, word in zip(found.categories, found.words, strict=True) if category is None]
        wrong = f"the word {shown(str(alone[-1]))} is among other parts of its node"
        raise ReadError(f"{wrong}; a node is a word or has parts")
    return _Tree(
        ["" if word is None else unescaped(word) for word in found.words],
        [int(str(category)) for category in found.categories],
        found.parents,
    )
