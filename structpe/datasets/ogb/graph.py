"""Graph property prediction of the Open Graph Benchmark (Hu et al. 2020): molecules, proteins, and your own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.datasets.base import Benchmark, benchmark
from structpe.datasets.ogb._official import official, own
from structpe.datasets.ogb._structures import benchmark_of, numbered
from structpe.formats.smiles import ATOM_CATEGORIES, BOND_CATEGORIES, SYMBOLS

__all__ = ["ogb_graph", "ogbg_ppa"]

MOLECULES = (
    *("ogbg-molbace", "ogbg-molbbbp", "ogbg-molclintox", "ogbg-molmuv", "ogbg-molpcba", "ogbg-molsider"),
    *("ogbg-moltox21", "ogbg-moltoxcast", "ogbg-molhiv", "ogbg-molesol", "ogbg-molfreesolv", "ogbg-mollipo"),
    "ogbg-molchembl",
)
BONDS = ("single", "double", "triple", "aromatic", "other")


def molecules(name: str) -> Callable[..., Benchmark]:
    """Make the loader of one of :data:`MOLECULES`."""

    def load(folder: Path, download: bool = False) -> Benchmark:
        raw = official("graph", name, folder, download)
        return benchmark_of("graph", raw, _symbols, _bonds, ATOM_CATEGORIES, BOND_CATEGORIES)

    load.__doc__ = f"""{name}: molecules with OGB's features of atoms and bonds, scaffold split.

    Files: ``{name.replace("-", "_")}/raw`` and ``split`` as OGB provides them; ``download`` lets ``ogb`` fetch them.
    """
    return load


for _name in MOLECULES:
    benchmark(_name)(molecules(_name))


@benchmark("ogbg-ppa")
def ogbg_ppa(folder: Path, download: bool = False) -> Benchmark:
    """ogbg-ppa: the group of species, of 37, of a neighbourhood of proteins; associations of 7 numbers each.

    Files: ``ogbg_ppa/raw`` and ``split`` as OGB provides them; ``download`` lets ``ogb`` fetch them (2.8 GB).
    """
    return benchmark_of("graph", official("graph", "ogbg-ppa", folder, download))


@benchmark("ogb-graph")
def ogb_graph(folder: Path) -> Benchmark:
    """Your own data set of graphs, as written by OGB's ``DatasetSaver``.

    Files: ``meta_dict.pt``, and the folder (or the unpacked archive) of the data in the same folder.
    """
    return benchmark_of("graph", own("graph", folder))


# A category out of range gets the last label here, and an error when the benchmark is checked.


def _symbols(x: NDArray[Any] | None, size: int) -> tuple[str, ...]:
    return numbered(x, size) if x is None else _named(SYMBOLS, x)


def _bonds(edge_x: NDArray[Any] | None) -> tuple[str, ...]:
    return () if edge_x is None else _named(BONDS, edge_x)


def _named(names: tuple[str, ...], features: NDArray[Any]) -> tuple[str, ...]:
    return tuple(names[number] for number in features[:, 0].astype(np.int64).clip(0, len(names) - 1).tolist())
