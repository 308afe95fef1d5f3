"""Graphs as other libraries hold them, made outside the clock, and which of these libraries are here."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import networkx
import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from timing import LIBRARIES
from torch_geometric.data import Data

from structpe.formats import import_dgl
from structpe.structure import Structure

__all__ = [
    "dgl_graph",
    "installed",
    "networkx_graph",
    "pyg_data",
    "rustworkx",
    "rustworkx_graph",
    "scipy_matrix",
]


def installed() -> list[str]:
    """The libraries that are here."""
    return [name for name, module in LIBRARIES.items() if find_spec(module) is not None]


def scipy_matrix(structure: Structure) -> csr_array:
    """The adjacency matrix."""
    source, target = _ends(structure)
    return csr_array((np.ones(len(source)), (source, target)), shape=(structure.size, structure.size))


def networkx_graph(structure: Structure) -> networkx.Graph[int]:
    """A graph, or a directed one."""
    graph: networkx.Graph[int] = networkx.DiGraph() if structure.directed else networkx.Graph()
    graph.add_nodes_from(range(structure.size))
    graph.add_edges_from(structure.edges.tolist())
    return graph


def pyg_data(structure: Structure) -> Data:
    """Undirected edges in both directions."""
    return Data(edge_index=torch.from_numpy(_ends(structure)), num_nodes=structure.size)


def dgl_graph(structure: Structure) -> Any:
    """Undirected edges in both directions."""
    source, target = torch.from_numpy(_ends(structure))
    return import_dgl().graph((source, target), num_nodes=structure.size)


def rustworkx() -> Any:
    """The module; imported where it is here only, as no dependency of ours."""
    return import_module("rustworkx")


def rustworkx_graph(structure: Structure) -> Any:
    """A graph, or a directed one."""
    graph = rustworkx().PyDiGraph() if structure.directed else rustworkx().PyGraph()
    graph.add_nodes_from(range(structure.size))
    graph.add_edges_from_no_data([tuple(edge) for edge in structure.edges.tolist()])
    return graph


def _ends(structure: Structure) -> NDArray[np.int64]:
    """(2, e) edges once each, undirected ones in both directions."""
    edges = structure.edges if structure.directed else np.concatenate([structure.edges, structure.edges[:, ::-1]])
    return np.ascontiguousarray(np.unique(edges, axis=0).T)
