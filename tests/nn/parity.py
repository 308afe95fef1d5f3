"""Structures, units and features for the comparison with what two older kinds of layers computed (test_parity.py)."""

from __future__ import annotations

import numpy as np

from structpe.structure import Structure, path

SIZES, VOCABULARY = (3, 9, 5, 7, 1, 6), 11


def graphs() -> list[Structure]:
    """Connected directed graphs with two relations, features of nodes (two columns of 4) and of edges (one of 3)."""
    random = np.random.default_rng(13)
    return [_graph(n, random) for n in SIZES]


def texts() -> list[Structure]:
    """Path graphs of the same sizes."""
    return [path(("",) * n) for n in SIZES]


def units() -> list[np.ndarray]:
    """Ids of the units of each graph."""
    random = np.random.default_rng(14)
    return [random.integers(0, VOCABULARY, n) for n in SIZES]


def targets() -> list[np.ndarray]:
    """Ids of a text for each graph, between 1 and 2; 0 fills up."""
    random = np.random.default_rng(15)
    return [np.array([1, *random.integers(3, VOCABULARY, length), 2]) for length in (4, 2, 6, 3, 5, 1)]


def _graph(n: int, random: np.random.Generator) -> Structure:
    tree = [(int(random.integers(0, node)), node) for node in range(1, n)]
    more = [tuple(map(int, random.choice(n, 2, replace=False))) for _ in range(n // 3)]
    edges = sorted({*tree, *more})
    return Structure(
        nodes=tuple(f"n{i}" for i in range(n)),
        edges=np.array(edges, dtype=np.int64).reshape(-1, 2),
        relations=tuple(f":r{random.integers(0, 2)}" for _ in edges),
        order=np.arange(n),
        root=0,
        features={"x": random.integers(0, 4, (n, 2)), "edge_x": random.integers(0, 3, (len(edges), 1))},
    )
