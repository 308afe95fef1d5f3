"""Structures that pictures are drawn of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from structpe.formats import tree
from structpe.formats.smiles import molecule
from structpe.positions import Dims
from structpe.structure import Structure, path
from structpe.transforms import grid

DIMS = Dims(16, 2, 2)
WORDS = ["the", "keeper", "lit", "the", "lamp"]
SEQUENCE = path(WORDS)
PARSE = replace(tree(WORDS, [2, 3, 0, 5, 3], ["det", "nsubj", "root", "det", "obj"]), name="parse")
MEANING = Structure(
    ("want", "boy", "go", "old"),
    np.array([(0, 1), (0, 2), (2, 1), (3, 1)]),
    ("ARG0", "ARG1", "ARG0", "mod"),
    root=0,
)
RING = Structure(tuple("abcde"), np.array([(i, (i + 1) % 5) for i in range(5)]), directed=False)
ASPIRIN = molecule("CC(=O)Oc1ccccc1C(=O)O", name="aspirin")
FORMS = {
    "sequence": SEQUENCE,
    "tree": PARSE,
    "hierarchy": MEANING,
    "graph": RING,
    "molecule": ASPIRIN,
    "grid": grid((2, 3)),
}


def large(size: int, form: str) -> Structure:
    """A structure of a form and a size, with words of different lengths."""
    words = [f"{'word' * (i % 4)}{i}" for i in range(size)]
    random = np.random.default_rng(size)
    if form == "sequence":
        return path(words)
    parents = [int(random.integers(max(0, i - 5), i)) for i in range(1, size)]
    edges = np.array([(parent, i) for i, parent in enumerate(parents, 1)], dtype=np.int64).reshape(-1, 2)
    if form == "tree":
        return Structure(tuple(words), edges, ("nsubj",) * len(edges), order=np.arange(size), root=0)
    more = random.integers(0, size, (size // 3, 2))
    return Structure(tuple(words), np.concatenate([edges, more]), directed=False)
