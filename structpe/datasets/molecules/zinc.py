"""ZINC-12k: penalised logP of molecules (Dwivedi et al. 2023; Gomez-Bombarelli et al. 2018)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.data.features import Categories
from structpe.datasets.base import Benchmark, Split, benchmark
from structpe.datasets.files.packed import check_counts, check_ends, check_list, check_range, read_packed, slices
from structpe.objectives.regression import Regression
from structpe.structure import Structure

__all__ = ["zinc_stand_in"]

ATOMS, BONDS = 28, 4  # bond 0 is unused, as in the official files
NAMES = ("x", "edge_index", "edge_attr", "y", "n_nodes", "n_edges")


@benchmark("zinc-stand-in")
def zinc_stand_in(folder: Path, train: int = 10_000) -> Benchmark:
    """ZINC-12k with its official validation and test molecules, and a stand-in for its 10,000 training molecules.

    The files do not have the official training SMILES; ``train`` other molecules of the same population of 250,000
    replace them (or all, if the file has fewer), with targets by the same formula. Results are similar to those on
    ZINC-12k, but do not follow its protocol.

    Files: ``zinc_altpool23k.npz``, ``zinc12k_val.npz``, ``zinc12k_test.npz``; each with ``x`` (atom types),
    ``edge_index`` (2, e; each bond both ways), ``edge_attr`` (1, 2, 3), ``y``, ``n_nodes``, ``n_edges``.
    """
    parts = [
        _molecules(folder / "zinc_altpool23k.npz", train),
        _molecules(folder / "zinc12k_val.npz"),
        _molecules(folder / "zinc12k_test.npz"),
    ]
    ends = np.cumsum([len(graphs) for graphs, _ in parts])
    numbers = np.split(np.arange(ends[-1]), ends[:-1])
    return Benchmark(
        name="ZINC-12k (stand-in training molecules)",
        graphs=[graph for graphs, _ in parts for graph in graphs],
        targets=np.concatenate([targets for _, targets in parts])[:, None],
        splits=(Split(*numbers),),
        nodes=Categories((ATOMS,)),
        edges=Categories((BONDS,)),
        objective=Regression("graph", 1, "mae"),
        note="official validation and test molecules; training molecules are others of the same population",
    )


def _molecules(file: Path, most: int | None = None) -> tuple[list[Structure], NDArray[np.float32]]:
    packed = read_packed(file, NAMES, _check)
    x, index, bonds = packed["x"], packed["edge_index"].T, packed["edge_attr"]
    graphs = [_molecule(f"{file.name}:{i}", x[n], index[e], bonds[e]) for i, (n, e) in enumerate(slices(packed)[:most])]
    return graphs, packed["y"][: len(graphs)].astype(np.float32)


def _check(packed: Mapping[str, NDArray[Any]]) -> None:
    """Check that the arrays fit together.

    Raises:
        ReadError: they do not, or a value is out of range.
    """
    check_list(packed, "y", "iuf", max(packed["y"].size, 1), "a target for each molecule")
    check_range(packed, "y", -np.inf, np.inf)
    nodes, edges = check_counts(packed, "molecule")
    check_list(packed, "x", "iu", nodes, f"one per node, {nodes}")
    check_range(packed, "x", 0, ATOMS)
    check_list(packed, "edge_attr", "iu", edges, f"one per edge, {edges}")
    check_range(packed, "edge_attr", 1, BONDS)
    check_ends(packed, edges, ("bond", "molecule", "atom"))


def _molecule(name: str, atoms: NDArray[Any], edges: NDArray[Any], bonds: NDArray[Any]) -> Structure:
    once = edges[:, 0] < edges[:, 1]
    features = {"x": atoms.reshape(-1, 1).astype(np.int64), "edge_x": bonds[once].reshape(-1, 1).astype(np.int64)}
    labels, relations = (tuple(map(str, of.reshape(-1))) for of in (atoms, bonds[once]))
    return Structure(labels, edges[once], relations, directed=False, features=features, name=name)
