"""Models of graphs: the hybrid layer is GPSConv; how graphs are batched, bucketed and numbered changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GINEConv, GPSConv

from structpe.data import batch as batches
from structpe.data.batch import Batch, Example, collate
from structpe.data.features import Categories, Numbers
from structpe.errors import ConfigError
from structpe.nn.convolutions import CONVOLUTIONS
from structpe.nn.graph_model import GraphModel, GraphModelConfig
from structpe.nn.layer import AttentionConfig, Context, Layer, StackConfig
from structpe.positions import Site, build
from structpe.structure import Structure
from tests.representatives import only
from tests.strategies import relabelled
from tests.together import together

WIDTH, HEADS = 16, 4
CONFIG = GraphModelConfig(WIDTH, 2, HEADS, feedforward=2 * WIDTH)
POSITIONS: dict[str, Any] = {
    "none": [],
    "rwse": "rwse",
    "t5": {"name": "t5", "encoding": "undirected-distance"},
    "grit": "grit",
    "signnet": "signnet",
    "rwse and t5": ["rwse", {"name": "t5", "encoding": "undirected-distance"}],
}


def graph(size: int, seed: int, directed: bool = False) -> Structure:
    """A connected graph with features of nodes and edges."""
    rng = np.random.default_rng(seed)
    edges = {(int(rng.integers(i)), i) for i in range(1, size)}
    edges |= {tuple(sorted(pair)) for pair in rng.integers(size, size=(size // 2, 2)).tolist() if pair[0] != pair[1]}  # type: ignore[misc]
    features = {"x": rng.integers(5, size=(size, 2)), "edge_x": rng.standard_normal((len(edges), 3)).astype(np.float32)}
    return Structure(("",) * size, sorted(edges), directed=directed, root=size - 1, features=features)


GRAPHS = [graph(size, seed) for seed, size in enumerate([5, 9, 4, 9, 12, 1, 30])]


FEATURES = (Categories((5, 5)), Numbers(3))
CLOSE = {"rtol": 0, "atol": 2e-5}


def model(position: Any, outputs: int = 2, **options: Any) -> GraphModel:
    torch.manual_seed(0)
    config = replace(CONFIG, **options)
    made = GraphModel(config, build(position, config.dims), *FEATURES, outputs)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5 if parameter.ndim else 1)
    return made.eval()


def batch_of(net: GraphModel, structures: Sequence[Structure], nodes: bool = False) -> Batch:
    examples = [
        Example.of(
            structure,
            {encoding: encoding.one(structure) for encoding in net.position.encodings},
            np.zeros(structure.size if nodes else 1),
            np.arange(structure.size) % 2 == 0 if nodes else None,
        )
        for structure in structures
    ]
    return collate(examples, net.grouping)


def answers(net: GraphModel, structures: Sequence[Structure]) -> Tensor:
    """What is predicted of each, in the order given."""
    batch = batch_of(net, structures)
    out: Tensor = net(batch)[batch.order.argsort()]
    return out


# --- the layer is that of PyTorch Geometric ---


def peer_of(layer: Layer) -> GPSConv:
    """GPSConv with the weights of a layer; what both learn is the same tensor, but for the projections."""
    assert layer.messages is not None
    assert layer.attention is not None
    mlp = nn.Sequential(nn.Linear(WIDTH, WIDTH))
    peer = GPSConv(WIDTH, GINEConv(mlp, train_eps=True), heads=HEADS, norm="batch_norm", attn_type="multihead").double()
    peer.conv.nn, peer.conv.eps.data = layer.messages.convolution.mlp, layer.messages.convolution.own.detach().view(1)
    attention = layer.attention
    for kind in ("weight", "bias"):
        both = torch.cat([getattr(attention.query, kind), getattr(attention.key_value, kind)])
        getattr(peer.attn, f"in_proj_{kind}").data = both.detach()
    peer.attn.out_proj.weight, peer.attn.out_proj.bias = attention.out.weight, attention.out.bias
    peer.mlp = layer.feedforward
    for theirs, mine in ((1, layer.messages_norm), (2, layer.attention_norm), (3, layer.feedforward_norm)):
        getattr(peer, f"norm{theirs}").module.load_state_dict(mine.state_dict())
    return peer


@pytest.mark.parametrize("training", [True, False])
def test_the_hybrid_layer_is_gpsconv_of_pytorch_geometric(training: bool) -> None:
    net = model([]).double().train(training)
    layer = net.stack.layers[0]
    assert isinstance(layer, Layer)
    peer, batch = peer_of(layer).train(training), batch_of(net, GRAPHS)
    x = torch.randn(len(batch.graph), WIDTH, dtype=torch.float64, requires_grad=True)
    edges = torch.randn(len(batch.adjacency.source), WIDTH, dtype=torch.float64, requires_grad=True)
    shared = [x, edges, layer.attention.out.weight, *layer.messages.convolution.mlp.parameters()]
    shared += list(layer.feedforward.parameters())
    own, _ = layer(x, edges, Context.of(net.position, batch), Site(0, training))
    index = torch.stack([batch.adjacency.source, batch.adjacency.target])
    theirs = peer(x, index, batch.graph, edge_attr=edges)
    torch.testing.assert_close(own, theirs, rtol=0, atol=1e-10)
    weights = torch.randn_like(own)
    attention = layer.attention
    split = [attention.query.weight, attention.key_value.weight, attention.query.bias, attention.key_value.bias]
    norms = [
        p for norm in (layer.messages_norm, layer.attention_norm, layer.feedforward_norm) for p in norm.parameters()
    ]
    mine = torch.autograd.grad((own * weights).sum(), [*shared, *split, *norms, layer.messages.convolution.own])
    of_norms = [p for norm in (peer.norm1, peer.norm2, peer.norm3) for p in norm.parameters()]
    peers = [*shared, peer.attn.in_proj_weight, peer.attn.in_proj_bias, *of_norms, peer.conv.eps]
    others = list(torch.autograd.grad((theirs * weights).sum(), peers))
    k = len(shared)
    joined = [
        *mine[:k],
        torch.cat(mine[k : k + 2]),
        torch.cat(mine[k + 2 : k + 4]),
        *mine[k + 4 : -1],
        mine[-1].view(1),
    ]
    for a, b in zip(joined, others, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


# --- the activation after a convolution ---


@together(
    ("convolution", "activation", "expected"),
    [
        *((name, "auto", torch.relu) for name in ("gcn", "sage", "gatedgcn", "gat", "gatv2")),
        *((name, "auto", torch.Tensor.clone) for name in ("gin", "gine")),
        ("gine", "relu", torch.relu),
        ("gcn", "none", torch.Tensor.clone),
        ("gine", "gelu", functional.gelu),
        ("gcn", "auto gelu", functional.gelu),
        ("gine", "auto gelu", torch.Tensor.clone),
    ],
)
@together("first", [True, False])
def test_the_hybrid_layer_has_an_activation_unless_its_convolution_has_one(
    convolution: str, activation: str, expected: Any, first: bool
) -> None:
    after, _, everywhere = activation.partition(" ")
    options = {"message_passing": convolution, "message_activation": after, "feedforward": 0}
    options["activation"] = everywhere or "relu"
    net = model([], norm="none", norm_first=first, **options)
    layer, batch = net.stack.layers[0], batch_of(net, GRAPHS)
    x, edges = torch.randn(len(batch.graph), WIDTH), torch.randn(len(batch.adjacency.source), WIDTH)
    context = Context.of(net.position, batch)
    found, _ = layer(x, edges, context, Site(0, False))
    messages = expected(layer.messages.convolution(x, edges, batch.adjacency)[0])
    attended = layer.attention(x, context, Site(0, False), None)
    torch.testing.assert_close(found, (1 if first else 2) * x + messages + attended)


def test_without_attention_the_activation_follows_the_norm() -> None:
    net = model([], attention=None, message_passing="gine", feedforward=0, norm="layer")
    layer, batch = net.stack.layers[0], batch_of(net, GRAPHS)
    x, edges = torch.randn(len(batch.graph), WIDTH), torch.randn(len(batch.adjacency.source), WIDTH)
    found, _ = layer(x, edges, Context.of(net.position, batch), Site(0, False))
    passed, _ = layer.messages.convolution(x, edges, batch.adjacency)
    torch.testing.assert_close(found, x + layer.messages_norm(passed).relu())


@pytest.mark.parametrize("convolution", CONVOLUTIONS)
def test_layers_that_are_one_linear_map_are_refused(convolution: str) -> None:
    """Those are refused, and no others, that keep sums: f(x) + f(z) = f(x + z) + f(0)."""
    options = {"attention": None, "message_passing": convolution, "message_activation": "none", "feedforward": 0}
    options |= {"norm": "none"}
    batch = batch_of(model([]), GRAPHS)
    x, z = torch.randn(2, len(batch.graph), WIDTH, dtype=torch.float64)
    edges = torch.randn(len(batch.adjacency.source), WIDTH, dtype=torch.float64)
    made = CONVOLUTIONS[convolution](WIDTH).double()
    f = [made(each, edges, batch.adjacency)[0] for each in (x, z, x + z, 0 * x)]
    keeps_sums = torch.allclose(f[0] + f[1], f[2] + f[3])
    if not keeps_sums:
        assert replace(CONFIG, **options).message_activation == "none"
        return
    with pytest.raises(ConfigError, match=f"layers of {convolution} .* are one linear map; set message_activation to"):
        replace(CONFIG, **options)
    attention = {"attention": AttentionConfig()}
    for more in ({"feedforward": 8}, attention, {"message_activation": "auto"}, {"virtual_node": True}):
        assert replace(CONFIG, **options | more).layers == 2
    with pytest.raises(ConfigError, match="are one linear map"):
        replace(CONFIG, **options | {"virtual_node": True, "layers": 1})  # nothing follows its rectifier


# --- the tuned networks of Toenshoff et al. 2023 ---


def test_a_gcn_with_gelus_and_without_norms_is_that_of_their_code() -> None:
    """x + gelu(gcn(x)) in each layer, and gelus in the head."""
    options = {"attention": None, "message_passing": "gcn", "feedforward": 0, "norm": "none", "activation": "gelu"}
    net = model([], head_layers=3, **options)
    batch = batch_of(net, GRAPHS)
    x = net.nodes(batch.x, len(batch.graph))
    for layer in net.stack.layers:
        x = x + functional.gelu(layer.messages.convolution(x, None, batch.adjacency)[0])
    pooled = net.readout(x, batch)
    first, second, last = net.head[0][0], net.head[1][0], net.head[2]
    expected = last(functional.gelu(second(functional.gelu(first(pooled)))))
    torch.testing.assert_close(net(batch), expected)


def test_every_map_of_the_head_has_dropout_in_training() -> None:
    net = model([], head_layers=3, head_dropout=0.5)
    batch, given = batch_of(net, GRAPHS), []
    for each in (net.head[0][0], net.head[1][0], net.head[2]):
        each.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0]))
    shares = []
    for mode in (True, False):
        given.clear()
        net.train(mode)
        with torch.no_grad():
            for _ in range(30):
                net(batch)
        zeros = [torch.cat(given[place::3]) == 0 for place in range(3)]
        shares.append([each.double().mean().item() for each in zeros])
    for dropped, kept in zip(*shares, strict=True):
        assert dropped == pytest.approx(0.5 + 0.5 * kept, abs=0.1), "half of what a ReLU leaves is dropped"
    with pytest.raises(ConfigError, match=r"head_dropout is 1\.0; it must be 0 or more and below 1"):
        replace(CONFIG, head_dropout=1.0)


# --- what changes nothing ---


OPTIONS: list[dict[str, Any]] = [
    {},
    {"norm_first": True, "norm": "layer"},
    {"virtual_node": True, "readout": "sum"},
    {"readout": "root", "message_passing": None, "norm": "none"},
    {"message_passing": "gatedgcn", "feedforward": 0},
]
BATCHED = [(position, options) for options in OPTIONS for position in POSITIONS]
QUICK = [(position, options) for position, options in BATCHED if not options or position in ("grit", "rwse and t5")]


@pytest.mark.parametrize("given", only(BATCHED, *QUICK), ids=lambda given: f"{given[0]}-{', '.join(given[1])}")
@torch.no_grad()
def test_in_evaluation_a_batch_is_as_one_by_one(given: tuple[str, dict[str, Any]]) -> None:
    position, options = given
    net = model(POSITIONS[position], **options)
    together = answers(net, GRAPHS)
    alone = torch.cat([answers(net, [structure]) for structure in GRAPHS])
    torch.testing.assert_close(together, alone, **CLOSE)
    assert (alone.std(0) > 1e-3).all()


@pytest.mark.parametrize("position", sorted(set(POSITIONS) - {"signnet"}))  # twins leave eigenvectors undetermined
def test_numbering_nodes_otherwise_changes_nothing(position: str) -> None:
    net, rng = model(POSITIONS[position], virtual_node=True), np.random.default_rng(0)
    moved = [relabelled(structure, rng.permutation(structure.size))[0] for structure in GRAPHS]
    torch.testing.assert_close(answers(net, moved), answers(net, GRAPHS), **CLOSE)


@pytest.mark.parametrize("position", POSITIONS)
def test_buckets_and_one_for_all_give_the_same_numbers(position: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, net = [], model(POSITIONS[position]).train()
    inner = net.position.own_attention or position in ("rwse", "rwse and t5", "signnet")
    for ends in (
        lambda sizes, _: list(range(1, len(sizes) + 1)),
        lambda sizes, _: [2, len(sizes)],
        lambda sizes, _: [len(sizes)],
    ):
        monkeypatch.setattr(batches, "cut", ends)
        batch = batch_of(net.eval(), GRAPHS)
        assert inner or len(batch.layout) == len(ends([0] * len(GRAPHS), 0))
        net.zero_grad()
        out = net(batch)
        out.square().sum().backward()
        found.append([out.detach(), *(p.grad.clone() for p in net.parameters() if p.grad is not None)])
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


# --- what changes something ---


@pytest.mark.parametrize("sizes", only([[5, 9, 12], [5, 9, 9, 60, 61], [60, 70]], [5, 9, 9, 60, 61]), ids=len)
@pytest.mark.parametrize("position", ["none", "rwse", "t5"])
def test_small_graphs_at_once_and_large_ones_by_bucket_are_dense_attention(position: str, sizes: list[int]) -> None:
    structures = [graph(size, seed) for seed, size in enumerate(sizes)]
    found, gradients = [], []
    for kernel in ("auto", "dense"):
        net = model(POSITIONS[position], heads=HEADS, attention=AttentionConfig(kernel=kernel)).double()
        batch = batch_of(net, structures)
        found.append(net(batch))
        gradients.append(torch.autograd.grad(found[-1].square().sum(), [*net.stack.parameters()], allow_unused=True))
    torch.testing.assert_close(found[0], found[1], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-7, atol=1e-9)


def test_the_direction_of_an_edge_is_told_where_graphs_are_directed() -> None:
    net = model([])
    one, other = (Structure(("",) * 3, edges, features=told) for edges, told in _arrows(directed=True))
    assert not torch.allclose(*answers(net, [one, other]))
    one, other = (Structure(("",) * 3, edges, directed=False, features=told) for edges, told in _arrows(directed=False))
    torch.testing.assert_close(*answers(net, [one, other]), **CLOSE)


def _arrows(directed: bool) -> list[tuple[list[list[int]], dict[str, Any]]]:
    """To the middle of a path, and away from it; the ends differ in nothing."""
    del directed
    told = {"x": np.array([[0, 0], [1, 1], [0, 0]]), "edge_x": np.ones((2, 3), dtype=np.float32)}
    return [([[0, 1], [2, 1]], told), ([[1, 0], [1, 2]], told)]


@pytest.mark.parametrize("message_passing", ["gine", "gin", None])
def test_features_are_read(message_passing: str | None) -> None:
    net = model([], message_passing=message_passing)
    structure = GRAPHS[1]
    other_x = structure.features["x"].copy()
    other_x[3] = (other_x[3] + 1) % 5
    changed = [
        replace(structure, features=structure.features | new)
        for new in ({"x": other_x}, {"edge_x": structure.features["edge_x"] + 1})
    ]
    same, of_nodes, of_edges = answers(net, [structure, *changed])
    assert not torch.allclose(same, of_nodes)
    assert torch.allclose(same, of_edges) == (message_passing != "gine")


@pytest.mark.parametrize("position", ["t5", "rwse", "grit"])
def test_positions_are_heard(position: str) -> None:
    """Attention alone sees a set of nodes; only positions say which of two graphs it is."""
    x = np.array([[0, 0], [1, 1], [2, 2], [3, 3], [4, 4], [0, 1]])
    told = {"x": x, "edge_x": np.zeros((6, 3), dtype=np.float32)}
    ring = Structure(("",) * 6, [[i, (i + 1) % 6] for i in range(6)], directed=False, features=told)
    triangles = replace(ring, edges=np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]]))
    assert not torch.allclose(*answers(model(POSITIONS[position], message_passing=None), [ring, triangles]))
    torch.testing.assert_close(*answers(model([], message_passing=None), [ring, triangles]), **CLOSE)


# --- the rest ---


def test_of_counted_nodes_numbers_are_predicted() -> None:
    net = model("rwse", outputs=3, readout="node")
    batch = batch_of(net, GRAPHS[:3], nodes=True)
    out = net(batch)
    assert out.shape == (3 + 5 + 2, 3)
    torch.testing.assert_close(out, net.head(net.hidden(batch)[batch.target_mask]))


@pytest.mark.parametrize("attention", [CONFIG.attention, None])
@pytest.mark.parametrize("message_passing", ["gcn", "gine", "gatedgcn", "gat", "gatv2"])
def test_every_parameter_learns(attention: AttentionConfig | None, message_passing: str) -> None:
    net = model([], attention=attention, message_passing=message_passing, virtual_node=True).train()
    directed = [replace(structure, directed=True) for structure in GRAPHS]
    net(batch_of(net, directed)).square().sum().backward()
    without = [name for name, p in net.named_parameters() if p.grad is None or not p.grad.any()]
    # Normalisation over a batch takes a constant away; what edges are after the last layer nobody reads.
    assert not [name for name in without if not name.startswith("stack.layers.1.messages.norm")]


def test_a_message_layer_is_what_its_formula_says() -> None:
    net = model([], attention=None, message_passing="gcn", norm="layer", feedforward=0)
    (layer, _), batch = net.stack.layers, batch_of(net, GRAPHS)
    x = torch.randn(len(batch.graph), WIDTH)
    passed, _ = layer.messages.convolution(x, None, batch.adjacency)
    out, _ = layer(x, None, Context.of(net.position, batch), Site(0))
    torch.testing.assert_close(out, x + layer.messages_norm(passed).relu())
    layer.config = replace(layer.config, residual=False)
    torch.testing.assert_close(
        layer(x, None, Context.of(net.position, batch), Site(0))[0], layer.messages_norm(passed).relu()
    )


def test_a_linear_residual_is_added_to_the_messages_before_the_norm() -> None:
    net = model([], attention=None, message_passing="gcn", norm="layer", feedforward=0, residual="linear")
    (layer, _), batch = net.stack.layers, batch_of(net, GRAPHS)
    x = torch.randn(len(batch.graph), WIDTH)
    passed, _ = layer.messages.convolution(x, None, batch.adjacency)
    mapped = x @ layer.skip.weight.T + layer.skip.bias
    out, _ = layer(x, None, Context.of(net.position, batch), Site(0))
    torch.testing.assert_close(out, layer.messages_norm(passed + mapped).relu())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"residual": "linear", "message_passing": None},
            "residual is linear, and message_passing is null; .*: set mes",
        ),
        (
            {"residual": "linear", "norm_first": True},
            "residual is linear, and norm_first is true; .*: set norm_first to",
        ),
        (
            {"residual": False, "message_passing": None},
            "residual is false, and message_passing is null; .*: set message_passing, or residual to true",
        ),
        (
            {"norm_first": True, "attention": None},
            "norm_first is True, which has no effect, as attention is null; leave norm_first out, or change that",
        ),
        ({"residual": "linaer"}, "residual is 'linaer'; it must be true, false or linear"),
        ({"norm": "bach"}, "norm is 'bach'; it must be one of batch, layer, none"),
        ({"attention": True}, "attention is True; give an AttentionConfig, or None for no attention"),
        ({"activation": "tanh"}, "activation is 'tanh'; it must be one of relu, gelu"),
        ({"message_activation": "elu"}, "message_activation is 'elu'; it must be one of auto, relu, gelu, none"),
    ],
)
def test_residuals_and_activations_that_there_are_not(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(CONFIG, **options)


@pytest.mark.parametrize(
    ("name", "own", "spread"), [("gcn", "linear", 1.0), ("gat", "linear", 1.0), ("sage", "own", 3**-0.5)]
)
def test_the_linear_residual_begins_as_large_as_the_maps_of_the_convolution(name: str, own: str, spread: float) -> None:
    config = StackConfig(width=128, attention=None, message_passing=name, residual="linear", feedforward=0)
    layer = Layer(config, build([], config.dims))
    for begun in (layer.skip, getattr(layer.messages.convolution, own)):
        assert begun.weight.std().item() == pytest.approx(spread * 128**-0.5, rel=0.03)
    assert bool(layer.skip.bias.any()) == (name == "sage")


@pytest.mark.parametrize("zero", [False, True])
def test_beside_attention_the_linear_residual_begins_as_large_as_its_maps(zero: bool) -> None:
    config = StackConfig(
        width=128, message_passing="sage", residual="linear", feedforward=0, attention=AttentionConfig(zero_init=zero)
    )
    layer = Layer(config, build([], config.dims))
    assert layer.skip.weight.std().item() == pytest.approx(layer.attention.query.weight.std().item(), rel=0.03)


def test_the_sum_with_a_linear_residual_has_dropout_of_attention_and_of_all() -> None:
    net = model([], message_passing="gcn", norm="none", feedforward=0, residual="linear", dropout=0.5)
    (layer, _), batch = net.stack.layers, batch_of(net, GRAPHS)
    x, context, sums = torch.randn(len(batch.graph), WIDTH), Context.of(net.position, batch), []
    layer.activation.register_forward_pre_hook(lambda _, inputs: sums.append(inputs[0]))
    layer(x, None, context, Site(0))
    layer.train()
    out, _ = layer(x, None, context, Site(0, True))
    passed, _ = layer.messages.convolution(x, None, batch.adjacency)
    attended = [each - passed - layer.skip(x) for each in sums]
    kept = attended[1].abs() > 1e-4
    assert 0.3 < kept.double().mean() < 0.7, "a half of attention is dropped"
    torch.testing.assert_close(attended[1][kept], 2 * attended[0][kept], rtol=1e-3, atol=1e-4)
    assert 0.3 < (out[sums[1] > 0] == 0).double().mean() < 0.7, "and of what the activation leaves"


@pytest.mark.parametrize("residual", ["linear", False])
@pytest.mark.parametrize("convolution", ["gcn", "gine", "gatedgcn"])
def test_without_a_residual_of_its_own_attention_is_one_more_term_of_the_sum(convolution: str, residual: Any) -> None:
    net = model(POSITIONS["t5"], message_passing=convolution, norm="layer", feedforward=0, residual=residual)
    (layer, _), batch = net.stack.layers, batch_of(net, GRAPHS)
    x, edges = torch.randn(len(batch.graph), WIDTH), torch.randn(len(batch.adjacency.source), WIDTH)
    context = Context.of(net.position, batch)
    passed, updated = layer.messages(x, edges, context)
    attended = layer.attention(x, context, Site(0), None)
    out, after = layer(x, edges, context, Site(0))
    assert torch.equal(after, updated)
    mapped = x @ layer.skip.weight.T + layer.skip.bias if residual else 0
    torch.testing.assert_close(out, layer.messages_norm(passed + mapped + attended).relu())
    net(batch).sum().backward()
    missing = [name for name, each in net.stack.layers.named_parameters() if each.grad is None]
    assert not [name for name in missing if not name.startswith("1.messages.")], "nothing reads the last edges"


@pytest.mark.parametrize("feature_map", ["none", "elu"])
def test_attention_may_begin_at_zero_and_learns_from_there(feature_map: Literal["none", "elu"]) -> None:
    def made(**options: Any) -> GraphModel:
        torch.manual_seed(0)
        config = replace(CONFIG, message_passing="gcn", norm="layer", feedforward=0, residual=False, **options)
        return GraphModel(config, build([], config.dims), *FEATURES, 2)

    plain, net = (
        made(heads=HEADS, attention=AttentionConfig(0.0, "auto", feature_map, zero)) for zero in (False, True)
    )
    drawn, zeroed = dict(plain.named_parameters()), dict(net.named_parameters())
    differing = [name for name in drawn if not torch.equal(drawn[name], zeroed[name])]
    assert differing == [f"stack.layers.{layer}.attention.out.weight" for layer in range(2)], "a seed draws the rest"
    alone = made(attention=None)
    alone.load_state_dict(net.state_dict(), strict=False)
    batch = batch_of(net, GRAPHS)
    torch.testing.assert_close(net(batch), alone(batch))
    net(batch).square().sum().backward()
    assert all(layer.attention.out.weight.grad.any() for layer in net.stack.layers)


@pytest.mark.parametrize("options", [{"zero_init": True}, {"feature_map": "elu"}])
def test_an_attention_of_the_position_models_own_takes_none_of_these(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ConfigError, match=f"attention.{name} is .*, which has no effect, as .* own attention; leave"):
        model(POSITIONS["grit"], heads=HEADS, attention=AttentionConfig(**options))


def test_a_position_model_that_would_not_be_heard_is_refused() -> None:
    with pytest.raises(
        ConfigError, match="acts on attention only, and this model has none; choose one that acts on the input"
    ):
        model(POSITIONS["t5"], attention=None)
    model("rwse", attention=None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "width is 0; it must be 1 or more"),
        ({"heads": 0}, "heads is 0; it must be 1 or more"),
        ({"heads": 2, "attention": None}, "heads is 2, which has no effect, as attention is null"),
        ({"feedforward": -1}, "feedforward is -1; give a width, or 0"),
        ({"dropout": 1.0}, "dropout is 1.0; it must be 0 or more and below 1"),
        ({"message_passing": "gnn"}, "gnn"),
        ({"message_passing": None, "attention": None}, "needs attention, or message_passing, or both"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GraphModelConfig(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout": 1.0}, "dropout is 1.0; it must be 0 or more and below 1"),
        ({"feature_map": "relu"}, "feature_map is 'relu'; it must be one of none, elu, random"),
    ],
)
def test_options_of_attention_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^attention.{message}$"):
        AttentionConfig(**options)
