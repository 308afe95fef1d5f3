"""Each convolution is what its formula says: those of PyTorch Geometric, or plain loops over messages."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, GINConv, GINEConv, SAGEConv

from structpe.data.batch import CSRAdjacency, EdgeIndex
from structpe.errors import ConfigError, MissingExtra
from structpe.nn.convolutions import CONVOLUTIONS, GAT, GCN, Convolution, GatedGCN
from structpe.structure import Structure

WIDTH = 6
GRAPH = Structure(("",) * 7, [[0, 1], [1, 2], [2, 0], [3, 1], [4, 5], [5, 4], [0, 3]])
"""Directed, with an edge both ways and a lone node, 6."""
NAMES = sorted(CONVOLUTIONS)


def adjacency(structure: Structure = GRAPH) -> CSRAdjacency:
    return CSRAdjacency.join([EdgeIndex.of(structure)], [structure.size])[0]


def made(name: str) -> Convolution:
    torch.manual_seed(1)
    convolution = CONVOLUTIONS[name](WIDTH).double()
    for parameter in convolution.parameters():
        nn.init.normal_(parameter, std=0.5)
    return convolution


def vectors(there: CSRAdjacency, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(there.count, WIDTH, generator=generator, dtype=torch.float64)
    return x, torch.randn(len(there.source), WIDTH, generator=generator, dtype=torch.float64)


def gcn(own: Convolution) -> nn.Module:
    peer = GCNConv(WIDTH, WIDTH)
    peer.lin.weight, peer.bias = own.linear.weight, own.linear.bias
    return peer


def gin(own: Convolution) -> nn.Module:
    peer = GINConv(nn.Identity(), train_eps=True)
    peer.nn, peer.eps.data = own.mlp, own.own.detach().view(1)
    return peer


def gine(own: Convolution) -> nn.Module:
    peer = GINEConv(nn.Sequential(nn.Linear(WIDTH, WIDTH)), train_eps=True)
    peer.nn, peer.eps.data = own.mlp, own.own.detach().view(1)
    return peer


def sage(own: Convolution) -> nn.Module:
    peer = SAGEConv(WIDTH, WIDTH, aggr="mean")
    peer.lin_l.weight, peer.lin_l.bias = own.neighbours.weight, own.own.bias
    peer.lin_r.weight = own.own.weight
    return peer


def gat(own: Convolution) -> nn.Module:
    peer = GATConv(WIDTH, WIDTH, bias=False)
    peer.lin.weight = own.linear.weight
    peer.att_dst.data, peer.att_src.data = own.scores.weight.detach().view(2, 1, 1, WIDTH).clone()
    return peer


def gatv2(own: Convolution) -> nn.Module:
    peer = GATv2Conv(WIDTH, WIDTH, edge_dim=WIDTH).double()
    peer.load_state_dict(own.convolution.state_dict())
    return peer


PEERS = {"gcn": gcn, "gin": gin, "gine": gine, "sage": sage, "gat": gat, "gatv2": gatv2}


@pytest.mark.parametrize("name", PEERS)
def test_it_is_that_of_pytorch_geometric(name: str) -> None:
    own, there = made(name), adjacency()
    peer = PEERS[name](own).double()
    x, edges = (v.requires_grad_() for v in vectors(there))
    inputs = [x, edges] if own.reads_edges else [x]
    index = torch.stack([there.source, there.target])
    out, _ = own(x, edges if own.reads_edges else None, there)
    expected = peer(x, index, edge_attr=edges) if own.reads_edges else peer(x, index)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-12)
    mine, theirs = (torch.autograd.grad(o.square().sum(), inputs) for o in (out, expected))
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


def test_a_self_loop_is_one_more_message_of_a_gcn() -> None:
    convolution = GCN(1).double().requires_grad_(False)
    convolution.linear.weight.fill_(1)
    there = adjacency(Structure(("", ""), [[0, 0], [0, 1]], directed=False))
    out, _ = convolution(torch.tensor([[6.0], [12.0]], dtype=torch.float64), None, there)
    torch.testing.assert_close(out.flatten().tolist(), [6 / 3 + 6 / 3 + 12 / 6**0.5, 12 / 2 + 6 / 6**0.5])


def test_a_degree_may_be_larger_than_half_precision_can_say() -> None:
    count = 70_000
    star = EdgeIndex.of(Structure(("",) * (count + 1), [[i, count] for i in range(count)], directed=False))
    convolution = GCN(1).half().requires_grad_(False)
    convolution.linear.weight.fill_(1)
    out, _ = convolution(torch.full((count + 1, 1), 0.01).half(), None, CSRAdjacency.join([star], [count + 1])[0])
    assert out[-1].item() == pytest.approx(0.01 * (70_000 / (2 * 70_001) ** 0.5 + 1 / 70_001), rel=0.01)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_scores_of_graph_attention_may_be_larger_than_exponentials_can_say(dtype: torch.dtype) -> None:
    own = GAT(1).requires_grad_(False)
    own.linear.weight.fill_(1)
    own.scores.weight.copy_(torch.tensor([[0.0], [-100.0]]))
    there = adjacency(Structure(("", "", ""), [[0, 1], [1, 2]], directed=False))
    out, _ = own.to(dtype)(torch.tensor([[-20.0], [-10.0], [30.0]], dtype=dtype), None, there)
    assert out.flatten().tolist() == [-20, -20, -10]  # scores 2,000, 1,000 and, leaking, -600
    even, _ = own(torch.full((3, 1), -20.0, dtype=dtype), None, there)
    assert even.flatten().tolist() == pytest.approx([-20] * 3, rel=1e-3)


def test_a_self_loop_is_one_more_message_of_graph_attention() -> None:
    own = GAT(1).double().requires_grad_(False)
    own.linear.weight.fill_(1)
    own.scores.weight.zero_()
    there = adjacency(Structure(("", ""), [[0, 0], [0, 1]], directed=False))
    out, _ = own(torch.tensor([[6.0], [12.0]], dtype=torch.float64), None, there)
    torch.testing.assert_close(out.flatten().tolist(), [(6 + 6 + 12) / 3, (6 + 12) / 2])


def test_gated_graph_convolution_is_that_of_loops() -> None:
    own, there = made("gatedgcn"), adjacency()
    assert isinstance(own, GatedGCN)
    x, edges = vectors(there)
    out, updated = own(x, edges, there)
    passed, of_source = (nn.Linear(WIDTH, WIDTH).double() for _ in range(2))
    passed.weight.data, of_source.weight.data = own.of_source.weight.detach().chunk(2)
    passed.bias.data, of_source.bias.data = own.of_source.bias.detach().chunk(2)
    for i in range(there.count):
        above, below = torch.zeros(WIDTH, dtype=torch.float64), torch.full((WIDTH,), 1e-6, dtype=torch.float64)
        for e in range(len(there.source)):
            if there.target[e] != i:
                continue
            j = there.source[e]
            new = own.edge(edges[e]) + own.of_target(x[i]) + of_source(x[j])
            torch.testing.assert_close(updated[e], new)
            gate = 1 / (1 + (-new).exp())
            above, below = above + gate * passed(x[j]), below + gate
        torch.testing.assert_close(out[i], own.own(x[i]) + above / below)


@pytest.mark.parametrize("name", NAMES)
def test_numbering_nodes_and_edges_otherwise_permutes_the_output(name: str) -> None:
    own, there, directions = made(name), adjacency(), EdgeIndex.of(GRAPH)
    x, edges = vectors(there)
    number, order = torch.randperm(GRAPH.size).numpy(), torch.randperm(len(GRAPH.edges)).numpy()
    moved = Structure(GRAPH.nodes, number[GRAPH.edges][order])
    new = EdgeIndex.of(moved)
    was = {
        (e, a): k for k, (e, a) in enumerate(zip(directions.edge.tolist(), directions.reverse.tolist(), strict=True))
    }
    same = [was[int(order[e]), a] for e, a in zip(new.edge.tolist(), new.reverse.tolist(), strict=True)]
    other = torch.empty_like(x)
    other[number] = x
    out, of_edges = own(x, edges if own.reads_edges else None, there)
    out_moved, of_edges_moved = own(other, edges[same] if own.reads_edges else None, adjacency(moved))
    torch.testing.assert_close(out_moved[number], out, rtol=0, atol=1e-12)
    if of_edges is not None:
        torch.testing.assert_close(of_edges_moved, of_edges[same], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_lone_node_has_a_vector_that_only_it_decides(name: str) -> None:
    own, there = made(name), adjacency()
    x, edges = vectors(there)
    out, _ = own(x, edges if own.reads_edges else None, there)
    alone = adjacency(Structure(("",), []))
    by_itself, _ = own(x[6:], edges[:0] if own.reads_edges else None, alone)
    assert by_itself.isfinite().all()
    torch.testing.assert_close(out[6:], by_itself, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_learns_and_what_is_read_has_a_gradient(name: str) -> None:
    own, there = made(name), adjacency()
    x, edges = (v.requires_grad_() for v in vectors(there))
    out, updated = own(x, edges if own.reads_edges else None, there)
    assert (updated is not None and updated is not edges) == own.updates_edges
    out.square().sum().backward()
    assert not [name for name, p in own.named_parameters() if p.grad is None or not p.grad.any()]
    assert x.grad is not None
    assert (edges.grad is not None) == own.reads_edges


@pytest.mark.parametrize("name", NAMES)
def test_vectors_of_edges_matter_where_they_are_read(name: str) -> None:
    own, there = made(name), adjacency()
    x, edges = vectors(there)
    if own.reads_edges:
        assert not torch.allclose(own(x, edges, there)[0], own(x, edges.flip(0), there)[0])


def test_an_unknown_one_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"gnn.*gatedgcn.*gin"):
        CONVOLUTIONS["gnn"]


def test_without_pyg_only_its_convolution_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_geometric.nn", None)
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    with pytest.raises(MissingExtra, match=r"structpe\[pyg\]"):
        CONVOLUTIONS["gatv2"](WIDTH)
    for name in set(NAMES) - {"gatv2"}:
        CONVOLUTIONS[name](WIDTH)
