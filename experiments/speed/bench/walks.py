"""Of random walks: back to the node, from each node to each other, with restarts."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from peers import dgl_graph, pyg_data
from quantities import Peer, Quantity
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import GDC, AddRandomWalkPE

from structpe.encodings import RRWP, Encoded, PersonalizedPageRank, RandomWalk
from structpe.formats import import_dgl
from structpe.structure import Structure

__all__ = ["WALKS"]

STEPS, POWERS, RESTART = 16, 8, 0.15
PYG, DIFFUSION = AddRandomWalkPE(STEPS), GDC()


def _values(_: Structure, encoded: Encoded) -> NDArray[Any]:
    return encoded.values


def _pairs(_: Structure, encoded: Encoded) -> NDArray[Any]:
    return encoded.pairs()


def _numbers(_: Structure, result: Tensor) -> NDArray[Any]:
    return result.numpy()


def _powers(data: Data) -> tuple[Tensor, Tensor, Tensor]:
    """I, M, M^2, ... by dense products, then the pairs that are not 0: the way of the code of GRIT (Ma et al. 2023)."""
    there = torch.zeros(data.num_nodes, data.num_nodes)
    there[tuple(data.edge_index)] = 1.0
    walk = there / there.sum(1, keepdim=True).clamp(min=1)
    powers = [torch.eye(data.num_nodes)]
    while len(powers) < POWERS:
        powers.append(powers[-1] @ walk)
    pairs = torch.stack(powers, dim=-1)
    listed = pairs.abs().sum(-1).nonzero()
    return listed, pairs[listed[:, 0], listed[:, 1]], pairs.diagonal().T.contiguous()


def _written_out(structure: Structure, result: tuple[Tensor, Tensor, Tensor]) -> NDArray[Any]:
    """(n, n, powers) of the listed pairs."""
    listed, values, _ = result
    pairs = np.zeros((structure.size, structure.size, POWERS))
    pairs[tuple(listed.T.numpy())] = values.numpy()
    return pairs


def _shares(_: Structure, encoded: Encoded) -> NDArray[Any]:
    """(key, query) back from the logarithm."""
    shares: NDArray[np.float64] = np.exp(-encoded.pairs())
    return shares


def _diffusion(data: Data) -> Tensor:
    """GDC (Gasteiger et al. 2019), the matrix itself."""
    size, weight = data.num_nodes, torch.ones(data.num_edges)
    edges, weight = DIFFUSION.transition_matrix(data.edge_index, weight, size, "col")
    shares: Tensor = DIFFUSION.diffusion_matrix_exact(edges, weight, size, method="ppr", alpha=RESTART)
    return shares


SMALL = ("molecules", "AMR graphs", "drawn graphs")
BY_PYG = Peer("PyG", pyg_data, PYG, lambda s, data: data.random_walk_pe.numpy())
BY_DGL = Peer("DGL", dgl_graph, lambda g: import_dgl().random_walk_pe(g, STEPS), _numbers)
WALKS = (
    Quantity(RandomWalk(STEPS), _values, (BY_PYG, BY_DGL), SMALL, close=1e-5),
    Quantity(RandomWalk(STEPS), _values, (BY_PYG,), ("one drawn graph",), close=1e-5),
    Quantity(
        RRWP(POWERS),
        _pairs,
        (Peer("PyTorch", pyg_data, _powers, _written_out),),
        SMALL,
        close=1e-5,
    ),
    Quantity(
        PersonalizedPageRank(RESTART, threshold=None),
        _shares,
        (Peer("PyG", pyg_data, _diffusion, _numbers),),  # which cannot take a graph of one node
        ("larger molecules", "drawn graphs"),
        close=1e-5,
    ),
)
