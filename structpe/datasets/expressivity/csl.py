"""CSL: circular skip links, which colour refinement (Weisfeiler, Lehman) cannot distinguish (Murphy et al. 2019)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from structpe.datasets.base import Benchmark, Split, benchmark
from structpe.datasets.files.arrays import lists_of_indices
from structpe.errors import ReadError
from structpe.objectives.classification import Multiclass
from structpe.structure import Structure
from structpe.transforms.parts import renumbered

__all__ = ["SKIPS", "circle", "csl"]

SKIPS = (2, 3, 4, 5, 6, 9, 11, 12, 13, 16)
"""Length of the chords of each of the ten classes, in steps along the circle."""

NODES, COPIES, SEED = 41, 15, 41
GRAPHS = COPIES * len(SKIPS)


@benchmark("csl")
def csl(folder: Path, loops: bool = False) -> Benchmark:
    """CSL: ten classes of 15 graphs with 41 equal nodes, each with four neighbours; five folds.

    The graphs are made by their definition: a class is one graph, and its members are that graph with its nodes
    numbered at random (with a fixed seed). Only the folds are read. They number the graphs class by class.

    Files: ``CSL_train.index``, ``CSL_val.index``, ``CSL_test.index`` of Dwivedi et al. (2023), with one line per fold
    and numbers of graphs separated by commas.

    Args:
        folder: folder with the files.
        loops: whether each node has an edge to itself, as in the files of Dwivedi et al. It carries no information,
            since every node has it.
    """
    generator = np.random.default_rng(SEED)
    graphs = [renumbered(circle(skip, loops), generator) for skip in SKIPS for _ in range(COPIES)]
    return Benchmark(
        name="CSL",
        graphs=graphs,
        targets=np.repeat(np.arange(len(SKIPS)), COPIES),
        splits=_folds(folder),
        objective=Multiclass("graph", len(SKIPS), "accuracy"),
        note=f"graphs made by their definition, {'with' if loops else 'without'} self-loops; the five published folds",
    )


def circle(skip: int, loops: bool = False) -> Structure:
    """Make a circle of 41 nodes with chords.

    Args:
        skip: length of a chord, in steps along the circle.
        loops: whether each node has an edge to itself.
    """
    steps = (1, skip, 0) if loops else (1, skip)
    edges = [(i, (i + step) % NODES) for i in range(NODES) for step in steps]
    return Structure(("",) * NODES, np.array(edges), directed=False, name=f"CSL skip {skip}")


def _folds(folder: Path) -> tuple[Split, ...]:
    files = [folder / f"CSL_{part}.index" for part in ("train", "val", "test")]
    parts = [lists_of_indices(file, GRAPHS, "graphs") for file in files]
    for file, part in zip(files, parts, strict=True):
        if len(part) != len(parts[0]):
            raise ReadError(f"there are {len(part)} folds, but {len(parts[0])} in {files[0].name}").at(file)
    folds = tuple(Split(*fold) for fold in zip(*parts, strict=True))
    for number, fold in enumerate(folds, 1):
        if not np.array_equal(np.sort(np.concatenate(fold)), np.arange(GRAPHS)):
            raise ReadError(
                f"fold {number} does not name each of the graphs 0..{GRAPHS - 1} once; bring back the original"
            ).at(folder)
    return folds
