"""The graphs that are measured on: the samples under ``datasets/``, and graphs drawn with a fixed seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from structpe.formats import stream
from structpe.structure import Structure
from structpe.transforms import grid

__all__ = ["BATCH", "SAMPLES", "batches", "given", "of_units", "sample"]

DATASETS = Path(__file__).parents[3] / "datasets"
BATCH = 64
"""Structures of a batch."""
MOST = 16
"""Batches that are taken of a file of one's own."""
GRIDS = {24: ((4, 6), (2, 3, 4)), 128: ((8, 16), (4, 4, 8)), 512: ((16, 32), (8, 8, 8))}
"""Grids of two and of three dimensions with so many places."""


GIVEN: dict[str, Path] = {}
"""Files of the user's own in place of shipped ones, by format."""


def given(**files: Path | None) -> None:
    """Measure on the graphs of these files: ``smiles``, ``amr``, ``conllu``; None leaves the shipped ones."""
    GIVEN.update({format: file for format, file in files.items() if file is not None})


def batches(structures: Sequence[Structure]) -> Iterator[Sequence[Structure]]:
    """In the order in which they are."""
    return (structures[first : first + BATCH] for first in range(0, len(structures), BATCH))


def _read(file: str, format: str, least: int = 1) -> list[Structure]:
    """A batch of the shipped file, all again from the first until it is full, or more of the user's own.

    Bad items, and those of fewer nodes, are left out.
    """
    path, count = (GIVEN[format], MOST * BATCH) if format in GIVEN else (DATASETS / file, BATCH)
    every = (item.structure for item in stream(path, format, skip=lambda _: None))
    found = list(islice((each for each in every if each.size >= least), count))
    return list(islice(cycle(found), -(-len(found) // BATCH) * BATCH))


def _undirected(name: str) -> list[Structure]:
    """The same graphs, their edges in both directions and once each, without labels."""
    return [_once(structure) for structure in sample(name)]


def _once(structure: Structure) -> Structure:
    edges = np.unique(np.sort(structure.edges, axis=1), axis=0)
    return Structure(structure.nodes, edges, directed=False, root=structure.root)


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
    return [drawn(int(generator.integers(20, 121)), 2.5, generator) for _ in range(BATCH)]


SAMPLES: dict[str, Callable[[], Sequence[Structure]]] = {
    "molecules": lambda: _read("drugs_sample/molecules.csv", "smiles"),
    "larger molecules": lambda: _read("drugs_sample/molecules.csv", "smiles", 10),
    "parses": lambda: _read("trees_sample/sample.conllu", "conllu"),
    "trees of parses": lambda: [replace(each, directed=False) for each in sample("parses")],
    "AMR graphs, directed": lambda: _read("long_amr_sample/graphs.txt", "amr"),
    "AMR graphs": lambda: _undirected("AMR graphs, directed"),
    "larger AMR graphs": lambda: [_once(each) for each in _read("long_amr_sample/graphs.txt", "amr", 10)],
    "knowledge graphs": lambda: _read("kg_sample/train.xml", "webnlg"),
    "drawn graphs": _drawn_of_all_sizes,
    "drawn trees": lambda: binary_trees(BATCH, 24),
    "one long ring": lambda: [lattice(2000, 5)],
    "one drawn graph": lambda: [drawn(2000, 10.0, np.random.default_rng(0))],
}
"""Each sample by the name that the tables give it; made when it is asked for. The drawn graphs have 20 to 120 nodes of
mean degree 2.5, and 2,000 of mean degree 10. In the ring of 2,000 nodes, each is joined with the five next ones. Larger
ones have ten nodes or more."""


@cache
def sample(name: str) -> Sequence[Structure]:
    """The graphs of one name."""
    return SAMPLES[name]()


@cache
def of_units(count: int, units: int) -> Mapping[str, Sequence[Structure]]:
    """Batches for position models: structures of so many units, which have all that models read; and grids."""
    grids = {f"grids of {' by '.join(map(str, shape))}": [grid(shape)] * count for shape in GRIDS[units]}
    return {"trees": binary_trees(count, units), **grids}


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
