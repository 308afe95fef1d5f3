"""Graph property prediction of the Open Graph Benchmark (Hu et al. 2020): molecules, proteins, and your own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.datasets.base import Benchmark, benchmark
from structpe.datasets.ogb._official import Raw, official, own
from structpe.datasets.ogb._structures import (
    Labels,
    Relations,
    features_of,
    numbered,
    structures,
    targets_of,
)
from structpe.readers.smiles import ATOM_CATEGORIES, BOND_CATEGORIES, SYMBOLS

__all__ = ["ogb_graph", "ogbg_ppa"]

MOLECULES = (
    *("ogbg-molbace", "ogbg-molbbbp", "ogbg-molclintox", "ogbg-molmuv", "ogbg-molpcba", "ogbg-molsider"),
    *("ogbg-moltox21", "ogbg-moltoxcast", "ogbg-molhiv", "ogbg-molesol", "ogbg-molfreesolv", "ogbg-mollipo"),
    "ogbg-molchembl",
)
BONDS = ("single", "double", "triple", "aromatic", "other")


def molecules(name: str) -> Callable[..., Benchmark]:
    """The loader of a data set of molecules."""

    def load(folder: Path, download: bool = False) -> Benchmark:
        return _benchmark(official("graph", name, folder, download), _symbols, _bonds, ATOM_CATEGORIES, BOND_CATEGORIES)

    load.__doc__ = f"""{name}: molecules with OGB's features of atoms and bonds, scaffold split.

    Files: ``{name.replace("-", "_")}/raw`` and ``split`` as OGB gives them; ``download`` lets ``ogb`` fetch them.
    """
    return load


for _name in MOLECULES:
    benchmark(_name)(molecules(_name))


@benchmark("ogbg-ppa")
def ogbg_ppa(folder: Path, download: bool = False) -> Benchmark:
    """ogbg-ppa: of which of 37 groups of species a neighbourhood of proteins is; 7 numbers for each association.

    Files: ``ogbg_ppa/raw`` and ``split`` as OGB gives them; ``download`` lets ``ogb`` fetch them (2.8 GB).
    """
    return _benchmark(official("graph", "ogbg-ppa", folder, download), numbered, _no_relations)


@benchmark("ogb-graph")
def ogb_graph(folder: Path) -> Benchmark:
    """A data set of graphs of your own, as OGB's ``DatasetSaver`` writes it.

    Files: ``meta_dict.pt``, and beside it the folder (or the unpacked archive) of the data.
    """
    return _benchmark(own("graph", folder), numbered, _no_relations)


def _benchmark(
    raw: Raw,
    labels: Labels,
    relations: Relations,
    atoms: tuple[int, ...] | None = None,
    bonds: tuple[int, ...] | None = None,
) -> Benchmark:
    (objective, targets), graphs = targets_of("graph", raw), structures(raw, labels, relations)
    return Benchmark(
        name=raw.name,
        graphs=graphs,
        targets=targets,
        splits=(raw.split,),
        nodes=features_of(graphs, "x", atoms),
        edges=features_of(graphs, "edge_x", bonds),
        objective=objective,
    )


# A category out of range has some label; that it is out of range is said when the benchmark is checked.


def _symbols(x: NDArray[Any] | None, size: int) -> tuple[str, ...]:
    return numbered(x, size) if x is None else _named(SYMBOLS, x)


def _bonds(edge_x: NDArray[Any] | None) -> tuple[str, ...]:
    return () if edge_x is None else _named(BONDS, edge_x)


def _named(names: tuple[str, ...], features: NDArray[Any]) -> tuple[str, ...]:
    return tuple(names[number] for number in features[:, 0].astype(np.int64).clip(0, len(names) - 1).tolist())


def _no_relations(_: NDArray[Any] | None) -> tuple[str, ...]:
    return ()
