"""ZINC-12k: penalised logP of molecules (Dwivedi et al. 2023; Gomez-Bombarelli et al. 2018)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.benchmarks._files import arrays
from structpe.benchmarks.base import Benchmark, Objective, Split, benchmark
from structpe.data.features import Categories
from structpe.errors import ReadError
from structpe.structure import Structure

__all__ = ["zinc_stand_in"]

ATOMS, BONDS = 28, 4  # bond 0 is unused, as in the official files
LARGEST = 1 << 16
"""Atoms or bonds of a molecule: no molecule of the set has nearly as many."""

NAMES = ("x", "edge_index", "edge_attr", "y", "n_nodes", "n_edges")


@benchmark("zinc-stand-in")
def zinc_stand_in(folder: Path, train: int = 10_000) -> Benchmark:
    """ZINC-12k with its official validation and test molecules, and a stand-in for its 10,000 training molecules.

    The official training SMILES are not in the files; ``train`` others of the same population of 250,000 take their
    place (all there are, if the file has fewer), targets by the same formula. Numbers are comparable in kind, not equal
    in protocol, to those of ZINC-12k.

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
        objective=Objective("graph", "numbers", 1, "mae"),
        note="official validation and test molecules; training molecules are others of the same population",
    )


def _molecules(file: Path, most: int | None = None) -> tuple[list[Structure], NDArray[np.float32]]:
    packed = dict(zip(NAMES, arrays(file, *NAMES), strict=True))
    try:
        _check(packed)
    except ReadError as error:
        raise error.at(str(file)) from None
    nodes, edges = (np.cumsum([0, *packed[name]]) for name in ("n_nodes", "n_edges"))
    x, index, bonds, y = packed["x"], packed["edge_index"].T, packed["edge_attr"], packed["y"]
    graphs = [
        _molecule(f"{file.name}:{i}", x[nodes[i] : nodes[i + 1]], *(a[edges[i] : edges[i + 1]] for a in (index, bonds)))
        for i in range(len(y) if most is None else min(most, len(y)))
    ]
    return graphs, y[: len(graphs)].astype(np.float32)


def _check(packed: Mapping[str, NDArray[Any]]) -> None:
    """See to it that the arrays fit together: a wrong count would cut all molecules after it at wrong places.

    Raises:
        ReadError: they do not, or a value is none that there is.
    """
    count = len(packed["y"]) if packed["y"].ndim else 0
    _is_list(packed, "y", "iuf", max(count, 1), "a target for each molecule")
    _within(packed, "y", -np.inf, np.inf)
    for name, least in (("n_nodes", 1), ("n_edges", 0)):
        _is_list(packed, name, "iu", count, f"a number for each of {count} molecules")
        _within(packed, name, least, LARGEST)
    nodes, edges = (int(packed[name].sum(dtype=np.int64)) for name in ("n_nodes", "n_edges"))
    _is_list(packed, "x", "iu", nodes, f"as many as n_nodes has together, {nodes}")
    _within(packed, "x", 0, ATOMS)
    _is_list(packed, "edge_attr", "iu", edges, f"as many as n_edges has together, {edges}")
    _within(packed, "edge_attr", 1, BONDS)
    _check_ends(packed, edges)


def _check_ends(packed: Mapping[str, NDArray[Any]], count: int) -> None:
    index, bonds = packed["edge_index"], packed["edge_attr"]
    if index.dtype.kind not in "iu" or index.shape != (2, count):
        raise _misfit(f"edge_index has shape {index.shape} and type {index.dtype}; (2, {count}) integers are needed")
    sizes, molecules = packed["n_nodes"].astype(np.int64), np.arange(len(packed["y"]))
    of = np.repeat(molecules, packed["n_edges"])
    outside = np.flatnonzero(((index < 0) | (index >= sizes[of])).any(axis=0))
    if len(outside):
        bond = outside[0]
        raise _misfit(
            f"bond {bond} is {index[:, bond].tolist()} in molecule {of[bond]}, whose atoms are 0..{sizes[of[bond]] - 1}"
        )
    there, back = (np.stack([of, *ends, bonds], axis=1) for ends in (index, index[::-1]))
    there, back = there[there[:, 1] < there[:, 2]], back[back[:, 1] < back[:, 2]]
    there, back = (rows[np.lexsort(rows.T)] for rows in (there, back))
    if 2 * len(there) != count or not np.array_equal(there, back):
        raise _misfit("a bond does not stand both ways with the same type, or leads to its own atom")


def _is_list(packed: Mapping[str, NDArray[Any]], name: str, kinds: str, count: int, needed: str) -> None:
    values = packed[name]
    if values.shape != (count,) or values.dtype.kind not in kinds:
        numbers = "numbers" if "f" in kinds else "integers"
        raise _misfit(f"{name} has shape {values.shape} and type {values.dtype}; {numbers} are needed, {needed}")


def _within(packed: Mapping[str, NDArray[Any]], name: str, least: float, below: float) -> None:
    values = packed[name]
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= least) & (values < below)))
    if len(wrong):
        needed = "a finite number" if below == np.inf else f"{least}..{below - 1}"
        raise _misfit(f"{name}[{wrong[0]}] is {values[wrong[0]]}; {needed} is needed")


def _misfit(message: str) -> ReadError:
    return ReadError(f"{message}; bring back the original")


def _molecule(name: str, atoms: NDArray[Any], edges: NDArray[Any], bonds: NDArray[Any]) -> Structure:
    once = edges[:, 0] < edges[:, 1]
    features = {"x": atoms.reshape(-1, 1).astype(np.int64), "edge_x": bonds[once].reshape(-1, 1).astype(np.int64)}
    labels, relations = (tuple(map(str, of.reshape(-1))) for of in (atoms, bonds[once]))
    return Structure(labels, edges[once], relations, directed=False, features=features, name=name)
