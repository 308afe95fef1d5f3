"""Sums over neighbours by ``embedding_bag`` beside a gather and ``index_add``; GCN and GAT beside PyG's; one thread.

python experiments/speed/propagation.py             # as many nodes and messages as tolokers, d = 64
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch_geometric.nn import GATConv, GCNConv

from structpe.data.batch import CSRAdjacency, EdgeIndex
from structpe.nn.convolutions import GAT, GCN, propagate
from structpe.structure import Structure

NODES, EDGES, WIDTH, ROUNDS = 11_758, 519_000, 64, 7


def main() -> None:
    """Print the times, and that the sums agree."""
    torch.set_num_threads(1)
    ends = np.random.default_rng(0).integers(0, NODES, (EDGES, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]  # PyG's GCN has one self-loop of a node in place of any that it has
    graph = Structure(("x",) * NODES, ends, directed=False)
    there = CSRAdjacency.join([EdgeIndex.of(graph)], [NODES])
    x = torch.randn(NODES, WIDTH, requires_grad=True)
    ways: dict[str, Callable[[], Tensor]] = {
        "embedding_bag": lambda: propagate(x, there),
        "gather, add": lambda: torch.zeros(NODES, WIDTH).index_add(0, there.target, x.index_select(0, there.source)),
    }
    torch.testing.assert_close(*(way() for way in ways.values()), rtol=1e-4, atol=1e-4)
    print(f"torch {torch.__version__}, {len(there.source):,} messages, d {WIDTH}")
    for name, way in ways.items():
        forward, both = times(way)
        print(f"{name:14} forward {forward * 1e3:6.1f} ms, forward and backward {both * 1e3:6.1f} ms")
    gcn, gat = GCN(WIDTH), GAT(WIDTH)
    peer = GCNConv(WIDTH, WIDTH, cached=True)  # cached: the weights of messages are computed once
    peer.lin.weight, peer.bias = gcn.linear.weight, gcn.linear.bias
    attending = GATConv(WIDTH, WIDTH, bias=False)
    attending.lin.weight = gat.linear.weight
    attending.att_dst.data, attending.att_src.data = gat.scores.weight.detach().view(2, 1, 1, WIDTH).clone()
    index = torch.stack([there.source, there.target])
    for name, own, other in (("GCN", gcn, peer), ("GAT", gat, attending)):
        layers: dict[str, Callable[[], Tensor]] = {
            name: lambda own=own: own(x, None, there)[0],
            f"{name} of PyG": lambda other=other: other(x, index),
        }
        torch.testing.assert_close(*(way() for way in layers.values()), rtol=1e-4, atol=1e-4)
        for label, way in layers.items():
            forward, both = times(way)
            print(f"{label:14} forward {forward * 1e3:6.1f} ms, forward and backward {both * 1e3:6.1f} ms")


def times(way: Callable[[], Tensor]) -> tuple[float, float]:
    """Medians of CPU seconds: forward; forward and backward."""
    found = []
    for _ in range(ROUNDS):
        start = time.process_time()
        out = way()
        middle = time.process_time()
        out.sum().backward()
        found.append((middle - start, time.process_time() - start))
    forward, both = zip(*found, strict=True)
    return statistics.median(forward), statistics.median(both)


if __name__ == "__main__":
    main()
