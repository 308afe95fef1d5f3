"""Convolutions of PyTorch Geometric by the paths of their classes: the same numbers, gradients, saving, errors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn

from structpe.errors import ConfigError
from structpe.nn.convolutions import chosen
from structpe.nn.graph_model import GraphModelConfig
from structpe.nn.seq2seq import TransformerConfig
from tests.memory import FEW, Counting
from tests.nn.test_convolutions import WIDTH, adjacency, vectors
from tests.nn.test_graph_model import GRAPHS, batch_of, model

PATHS: dict[str, dict[str, Any]] = {
    "SAGEConv": {"aggr": "max", "normalize": True},
    "GATConv": {"heads": 2, "out_channels": WIDTH // 2},
    "TransformerConv": {"heads": 3, "concat": False, "beta": True},
    "GENConv": {"aggr": "softmax"},
    "ResGatedGraphConv": {},
    "PNAConv": {"aggregators": ["mean", "max"], "scalers": ["identity", "amplification"], "deg": [1, 3, 4]},
    "GINConv": {"nn": [WIDTH, 8, WIDTH]},
    "NNConv": {"nn": [WIDTH, WIDTH * WIDTH]},
    "CGConv": {"dim": WIDTH},
    "ChebConv": {"K": 2},
    "APPNP": {"K": 2, "alpha": 0.1},
}
READ = {"GATConv", "TransformerConv", "GENConv", "ResGatedGraphConv", "PNAConv", "NNConv", "CGConv"}


def asked(name: str) -> dict[str, Any]:
    return {"name": f"torch_geometric.nn.{name}", **PATHS[name]}


def theirs(name: str) -> nn.Module:
    """The same, made by hand."""
    given = dict(PATHS[name])
    if name == "APPNP":
        return pyg.APPNP(**given)
    if name == "CGConv":
        return pyg.CGConv(WIDTH, **given)
    if "nn" in given:
        given["nn"] = pyg.MLP(given["nn"], norm=None)
    if "deg" in given:
        given["deg"] = torch.tensor(given["deg"])
    sizes = () if name == "GINConv" else (WIDTH, given.pop("out_channels", WIDTH))
    edges = {} if name in ("NNConv", "CGConv") or name not in READ else {"edge_dim": WIDTH}
    made: nn.Module = getattr(pyg, name)(*sizes, **given, **edges)
    return made


@pytest.mark.parametrize("name", PATHS)
def test_it_is_that_of_pytorch_geometric_with_gradients_of_all(name: str) -> None:
    choice, there = chosen(asked(name)), adjacency()
    assert choice.reads_edges == (name in READ)
    own, peer = choice.make(WIDTH).double(), theirs(name).double()
    peer.load_state_dict(own.get_submodule("convolution").state_dict())
    x, edges = (v.requires_grad_() for v in vectors(there))
    of_edges: dict[str, Tensor] = {"edge_attr": edges} if choice.reads_edges else {}
    out, passed_on = own(x, of_edges.get("edge_attr"), there)
    assert torch.equal(out, peer(x, torch.stack([there.source, there.target]), **of_edges))
    assert passed_on is of_edges.get("edge_attr")
    (out.square() * torch.arange(1, WIDTH + 1)).sum().backward()
    learned = [*own.parameters(), x, *of_edges.values()]
    assert all(each.grad is not None and each.grad.abs().max() > 0 for each in learned)


@pytest.mark.parametrize("name", ["SAGEConv", "TransformerConv"])
def test_in_a_hybrid_layer_it_learns_and_is_saved(name: str) -> None:
    path = f"torch_geometric.nn.{name}"
    net = model("rwse", message_passing={"name": path, **({"concat": False} if name in READ else {})})
    batch = batch_of(net, GRAPHS)
    out = net(batch)
    out.square().sum().backward()
    found = {key: each for key, each in net.named_parameters() if ".messages." in key}
    assert len(found) >= 4
    assert all(each.grad is not None and each.grad.abs().max() > 0 for each in found.values())
    torch.manual_seed(7)
    again = model("rwse", message_passing=net.config.message_passing)
    for parameter in again.parameters():
        nn.init.zeros_(parameter)
    assert not torch.equal(again(batch), out)
    again.load_state_dict(net.state_dict())
    assert torch.equal(again(batch), out)
    after = GraphModelConfig(message_passing=path).after_messages
    assert after == "relu", "a ReLU follows a convolution that may have none"


def test_edges_are_not_read_where_their_width_is_null() -> None:
    choice = chosen({"name": "torch_geometric.nn.GATv2Conv", "edge_dim": None})
    assert not choice.reads_edges
    x, _ = vectors(adjacency())
    assert choice.make(WIDTH).double()(x, None, adjacency())[0].shape == x.shape


def test_making_one_draws_only_what_its_weights_need() -> None:
    torch.manual_seed(3)
    own = chosen("torch_geometric.nn.GraphConv").make(WIDTH)
    after = torch.rand(1)
    torch.manual_seed(3)
    peer = pyg.GraphConv(WIDTH, WIDTH)
    assert torch.equal(torch.rand(1), after)
    assert own.training
    assert all(map(torch.equal, own.parameters(), peer.parameters()))


class Own(pyg.MessagePassing):
    """A convolution of a program's own module, which is imported."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.propagate(edge_index, x=x)
        return out


def test_a_class_of_an_imported_module() -> None:
    x, _ = vectors(adjacency())
    out, _ = chosen(f"{__name__}.Own").make(WIDTH)(x, None, adjacency())
    expected = torch.zeros_like(x)
    for source, target in zip(adjacency().source.tolist(), adjacency().target.tolist(), strict=True):
        expected[target] += x[source]
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("torch_geometric.nn.SAGEconv", "there is no MessagePassing named 'SAGEconv'. Did you mean 'SAGEConv'"),
        ("torch_geometric.nothing.SAGEConv", "No module named 'torch_geometric.nothing'"),
        ("torch_geometric.nn.GPSConv", "there is no MessagePassing named 'GPSConv'"),
        ("antigravity.Conv", "module 'antigravity' is not imported; give a path in 'torch_geometric.'"),
        ({"name": "gine", "eps": 1}, "convolution 'gine' has no option 'eps'"),
        ({"aggr": "max"}, "a convolution is a name, or a mapping with 'name' and options"),
    ],
)
def test_what_is_no_convolution(given: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GraphModelConfig(message_passing=given)
    with pytest.raises(ConfigError, match=rf"^model.message_passing: .*{message}.*; or null for none$"):
        TransformerConfig(message_passing=given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "torch_geometric.nn.SAGEConv", "agr": "max"}, "has no option named 'agr'. Did you mean 'aggr'"),
        ("torch_geometric.nn.GINConv", "cannot be made with the options {}: .*'nn'"),
        ({"name": "torch_geometric.nn.GATConv", "heads": 2}, r"makes \(2, 12\) of two nodes of width 6, .*give out_ch"),
        ("torch_geometric.nn.GCN2Conv", "cannot be made with the options {}: .*'alpha'"),
        ({"name": "torch_geometric.nn.GCN2Conv", "alpha": 0.1}, "does not take the arguments of a layer, x, edge_ind"),
    ],
)
def test_what_cannot_be_made(given: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        chosen(given).make(WIDTH)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("GATConv", {"heads": 5000}, "'torch_geometric.nn.GATConv' has 5000 in its option 'heads'; 4096 at most"),
        ("ChebConv", {"K": 10**30}, "has a number of more than 20 digits in its option 'K'; 4096 at most"),
        ("SAGEConv", {"aggr": "softmax", "aggr_kwargs": {"t": [10**9]}}, "has 1000000000 in its option 'aggr_kwargs'"),
        ("GCNConv", {"out_channels": 1 << 17}, "has 131072 in its option 'out_channels'; 65536 at most"),
        (
            "GINConv",
            {"nn": [16, 60000, 60000, 16]},
            r"has 36\d{8} parameters with these options, of width \d+; 10{8} at",
        ),
        ("GATConv", {"heads": 4000, "out_channels": 60000}, r"has \d{10} parameters with these options"),
    ],
)
def test_sizes_among_the_options_are_bounded_before_memory_is_taken(
    name: str, options: dict[str, Any], said: str
) -> None:
    choice = chosen({"name": f"torch_geometric.nn.{name}", **options})
    with Counting() as counting, pytest.raises(ConfigError, match=said):
        choice.make(WIDTH)
    assert counting.largest < FEW


def test_a_histogram_of_degrees_is_no_size() -> None:
    options = {"aggregators": ["mean"], "scalers": ["amplification"], "deg": [10**9, 3, 4]}
    chosen({"name": "torch_geometric.nn.PNAConv", **options}).make(WIDTH)
