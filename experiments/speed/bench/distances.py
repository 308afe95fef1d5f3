"""Lengths of shortest paths: between all nodes, and from the root."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import networkx
import numpy as np
from numpy.typing import NDArray
from peers import dgl_graph, networkx_graph, rustworkx, rustworkx_graph, scipy_matrix
from quantities import Peer, Quantity, Read, from_rows
from scipy.sparse import csgraph, csr_array

from structpe.encodings import UNREACHABLE, Depth, Distance, Encoded, UndirectedDistance
from structpe.formats import import_dgl
from structpe.structure import Structure

__all__ = ["DISTANCES"]

Floats = NDArray[np.float64]


def _ours(_: Structure, encoded: Encoded) -> Floats:
    return encoded.pairs().astype(np.float64)


def _lengths(_: Structure, lengths: Any) -> Floats:
    """A matrix of theirs, which is infinite, or -1, where there is no path."""
    matrix = np.asarray(lengths, dtype=np.float64)
    return np.where(np.isfinite(matrix) & (matrix >= 0), matrix, UNREACHABLE)


def _rows(structure: Structure, rows: Any) -> Floats:
    """What networkx gives, a mapping for each node."""
    return _lengths(structure, from_rows(structure.size, rows, np.inf))


def _signed(read: Read) -> Read:
    """The shorter of both directions, negative against the edges: what the encoding ``distance`` says."""

    def of_pairs(structure: Structure, result: Any) -> Floats:
        there = read(structure, result)
        return np.where(there <= there.T, there, -there.T)

    return of_pairs


def _whole_scipy(structure: Structure) -> Floats:
    edges = structure.edges if structure.directed else np.concatenate([structure.edges, structure.edges[:, ::-1]])
    matrix = csr_array((np.ones(len(edges)), edges.T), shape=(structure.size, structure.size))
    lengths: Floats = csgraph.shortest_path(matrix, unweighted=True)
    lengths[np.isinf(lengths)] = -1
    return lengths


def _by_rustworkx(graph: Any) -> Floats:
    """In this thread, as all that is timed."""
    lengths: Floats = rustworkx().distance_matrix(graph, parallel_threshold=1 << 30, null_value=-1)
    return lengths


PEERS = (
    Peer("scipy", scipy_matrix, lambda m: csgraph.shortest_path(m, unweighted=True), _lengths, _whole_scipy),
    Peer("networkx", networkx_graph, lambda g: list(networkx.all_pairs_shortest_path_length(g)), _rows),
    Peer("DGL", dgl_graph, lambda g: import_dgl().shortest_dist(g), _lengths),
    Peer("rustworkx", rustworkx_graph, _by_rustworkx, _lengths, lambda s: _by_rustworkx(rustworkx_graph(s))),
)


def _depths(_: Structure, encoded: Encoded) -> Floats:
    return encoded.values.astype(np.float64)


def _from_root(structure: Structure, lengths: Any) -> Floats:
    return np.asarray([lengths[node] for node in range(structure.size)], dtype=np.float64)


def _rooted(native: Callable[[Structure], Any]) -> Callable[[Structure], tuple[Any, int | None]]:
    """With the root beside it, which libraries do not know of."""
    return lambda structure: (native(structure), structure.root)


FROM_ROOT = (
    Peer("scipy", _rooted(scipy_matrix), lambda g: csgraph.dijkstra(g[0], unweighted=True, indices=g[1]), _from_root),
    Peer(
        "networkx",
        _rooted(networkx_graph),
        lambda g: networkx.single_source_shortest_path_length(g[0], g[1]),
        _from_root,
    ),
    Peer("DGL", _rooted(dgl_graph), lambda g: import_dgl().shortest_dist(g[0], root=g[1]), _from_root),
)


DISTANCES = (
    Quantity(UndirectedDistance(), _ours, PEERS, ("molecules", "AMR graphs", "trees of parses", "drawn graphs")),
    Quantity(
        UndirectedDistance(),
        _ours,
        tuple(peer for peer in PEERS if peer.library in ("scipy", "rustworkx")),
        ("one drawn graph", "one long ring"),
    ),
    Quantity(
        Distance(),
        _ours,
        tuple(replace(peer, read=_signed(peer.read)) for peer in PEERS),
        ("parses", "AMR graphs, directed"),
    ),
    Quantity(Depth(), _depths, FROM_ROOT, ("parses",)),
)
