"""The graphs that are measured on: the samples under ``datasets/``, and graphs drawn with a fixed seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from structpe.formats import stream
from structpe.structure import Structure
from structpe.transforms import grid

__all__ = ["SAMPLES", "given", "sample"]

DATASETS = Path(__file__).parents[3] / "datasets"
PARSES = "trees_sample/sample.conllu"


GIVEN: dict[str, Path] = {}
"""Files of the user's own in place of shipped ones, by format."""


def given(**files: Path | None) -> None:
    """Measure on the graphs of these files: ``smiles``, ``amr``, ``conllu``; None leaves the shipped ones."""
    GIVEN.update({format: file for format, file in files.items() if file is not None})


def _read(*files: str, format: str, count: int) -> list[Structure]:
    """The first graphs of files, all again from the first until there are so many; bad items are left out."""
    paths = [GIVEN[format]] if format in GIVEN else [DATASETS / file for file in files]
    found = (item.structure for path in paths for item in stream(path, format, skip=lambda _: None))
    return list(islice(cycle(list(islice(found, count))), count))


def drawn(nodes: int, degree: float, generator: np.random.Generator) -> Structure:
    """A connected undirected graph: a random tree, and more edges up to the mean degree."""
    parents = [int(generator.integers(node)) for node in range(1, nodes)]
    tree = np.stack([parents, np.arange(1, nodes)], axis=1)
    more = np.triu(generator.random((nodes, nodes)) < max(degree * nodes / 2 - nodes + 1, 0) / (nodes**2 / 2), 1)
    edges = np.unique(np.concatenate([tree, np.argwhere(more)]), axis=0)
    return Structure(("",) * nodes, edges, directed=False, name=f"drawn graph of {nodes} nodes")


def lattice(nodes: int, reach: int) -> Structure:
    """A ring in which each node is joined with some of the next ones."""
    here = np.arange(nodes)
    edges = np.concatenate([np.column_stack([here, (here + step) % nodes]) for step in range(1, reach + 1)])
    return Structure(("",) * nodes, edges, directed=False, name=f"ring of {nodes} nodes")


def _drawn_of_all_sizes() -> list[Structure]:
    generator = np.random.default_rng(0)
    return [drawn(int(generator.integers(20, 121)), 2.5, generator) for _ in range(200)]


SAMPLES: dict[str, Callable[[], Sequence[Structure]]] = {
    "1,000 molecules": lambda: _read(
        "diameters_sample/molecules.csv", "molecules_sample/molecules.csv", format="smiles", count=1000
    ),
    "1,000 larger molecules": lambda: _larger("1,000 molecules", 9),
    "200 parses": lambda: _read(PARSES, format="conllu", count=200),
    "1,000 trees of parses": lambda: [
        replace(each, directed=False) for each in _read(PARSES, format="conllu", count=1000)
    ],
    "600 AMR graphs": lambda: _read("amr_sample/train.txt", format="amr", count=600),
    "600 larger AMR graphs": lambda: _larger("600 AMR graphs", 9, 600),
    "160 knowledge graphs": lambda: _read("kg_sample/train.xml", format="webnlg", count=160),
    "200 drawn graphs": _drawn_of_all_sizes,
    "32 drawn trees": lambda: binary_trees(32, 24),
    "32 grids of 4 by 6": lambda: [grid((4, 6))] * 32,
    "32 grids of 2 by 3 by 4": lambda: [grid((2, 3, 4))] * 32,
    "one long ring": lambda: [lattice(2000, 5)],
    "one drawn graph": lambda: [drawn(2000, 10.0, np.random.default_rng(0))],
}
"""Each sample by the name that the tables give it; made when it is asked for. The drawn graphs have 20 to 120 nodes of
mean degree 2.5, and 2,000 of mean degree 10. In the ring of
2,000 nodes, each is joined with the five next ones. The larger molecules and AMR graphs have ten nodes or more."""


def _larger(name: str, least: int, count: int = 1000) -> list[Structure]:
    kept = [structure for structure in sample(name) if structure.size > least]
    return list(islice(cycle(kept), count))


@cache
def sample(name: str) -> Sequence[Structure]:
    """The graphs of one name."""
    return SAMPLES[name]()


def binary_trees(count: int, nodes: int) -> list[Structure]:
    """Drawn trees that all position models take: labelled, in an order, no node with more than two children."""
    generator = np.random.default_rng(0)
    return [_binary_tree(nodes, generator) for _ in range(count)]


def _binary_tree(nodes: int, generator: np.random.Generator) -> Structure:
    free, edges = [0, 0], []
    for node in range(1, nodes):
        edges.append((free.pop(int(generator.integers(len(free)))), node))
        free += [node, node]
    return Structure(
        nodes=tuple(f"w{node % 7}" for node in range(nodes)),
        edges=np.array(edges),
        relations=tuple("abc"[edge % 3] for edge in range(len(edges))),
        order=generator.permutation(nodes),
        root=0,
    )
