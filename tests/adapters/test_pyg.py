"""Encodings as attributes of PyG's graphs, and position models in its GPSConv."""

from __future__ import annotations

import copy
import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch_geometric.transforms as T
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.loader.utils import filter_data  # what NeighborLoader does, which needs pyg-lib
from torch_geometric.nn import GINConv, GPSConv, TransformerConv
from torch_geometric.utils import to_dense_batch

from structpe import attend
from structpe.adapters import _injection, eject, inject
from structpe.adapters.pyg import AddEncoding, positions
from structpe.encodings import ENCODINGS, Encoding
from structpe.errors import EncodingError, PositionError, StoreError, StructureError
from structpe.formats import as_structure
from structpe.positions import Dims, Site, build
from structpe.positions.batch import encode
from structpe.terms import Lookup, SparsePairs
from tests.together import together

NAMES = ["random-walk", "laplacian", "degree", "undirected-distance", "rrwp", "resistance", "expander", "neighbours"]


def graphs(count: int = 5) -> list[Any]:
    """Random connected graphs of several sizes, each edge in both directions."""
    chance = np.random.default_rng(0)
    made = []
    for size in chance.integers(4, 9, count):
        ends = np.stack([[chance.integers(0, node) for node in range(1, size)], np.arange(1, size)])
        both = torch.tensor(np.concatenate([ends, ends[::-1]], axis=1))
        made.append(
            Data(x=torch.randn(int(size), 8, generator=torch.Generator().manual_seed(int(size))), edge_index=both)
        )
    return made


def known(name: str) -> Encoding:
    """An encoding that needs nothing but the graph; a neighbourhood lists pairs."""
    return ENCODINGS[name]()


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_has_the_positions_of_its_graphs(name: str) -> None:
    encoding, given = known(name), graphs()
    (batch,) = DataLoader(AddEncoding(encoding).many(given), batch_size=5)  # type: ignore[arg-type]
    found = positions(batch, [encoding])
    expected = encode([as_structure(data) for data in given], [encoding])
    mine, theirs = found[encoding], expected[encoding]
    if isinstance(theirs, Lookup):
        mask = found.present
        assert mask is not None
        both = mask[:, :, None] & mask[:, None, :]
        assert torch.equal(mine.dense()[both], theirs.dense()[both])
    elif isinstance(theirs, SparsePairs):
        n = max(data.num_nodes for data in given)
        assert torch.equal(mine.dense(5, n, n), theirs.dense(5, n, n))
        assert torch.equal(mine.pairs.dense(5, n, n), theirs.pairs.dense(5, n, n))
    else:
        assert torch.equal(mine, theirs)
        assert torch.equal(mine, to_dense_batch(batch[f"pe_{name.replace('-', '_')}"], batch.batch)[0])


def test_as_a_transform_it_leaves_the_graph_as_it_was() -> None:
    transform, (data, *_) = AddEncoding("random-walk", "undirected-distance"), graphs()
    before = set(data.keys())
    found = transform(data)
    assert set(data.keys()) == before
    assert set(found.keys()) - before == {
        f"pe_{name}{of}" for name in ("random_walk", "undirected_distance") for of in ("", "_of")
    }
    assert found.pe_random_walk.shape[0] == data.num_nodes
    assert found.pe_undirected_distance.shape == (data.num_nodes**2,)
    assert repr(transform) == repr(AddEncoding("random-walk", "undirected-distance")) != repr(AddEncoding("degree"))
    one = positions(found, transform.encodings)
    assert one[transform.encodings[0]].shape[:2] == (1, data.num_nodes)


@pytest.mark.parametrize(
    ("given", "message"),
    [((), "takes encodings of different names"), (("degree", "degree"), "takes encodings of different names")],
)
def test_what_is_no_transform(given: tuple[str, ...], message: str) -> None:
    with pytest.raises(EncodingError, match=message):
        AddEncoding(*given)


def test_what_pyg_cannot_hold() -> None:
    ragged = next(e for e in ENCODINGS.values() if e.ragged)
    with pytest.raises(EncodingError, match="sequences of different lengths, which no tensor of a graph holds"):
        AddEncoding(ragged())
    (data, *_) = graphs()
    data.owner, data.units = torch.tensor([0, *range(data.num_nodes)]), ["u"] * (data.num_nodes + 1)
    with pytest.raises(StructureError, match="there are rows for nodes only"):
        AddEncoding("degree")(data)
    with pytest.raises(EncodingError, match=r"the batch has no pe_degree, the encoding .*; apply AddEncoding"):
        positions(data, [known("degree")])


class Net(torch.nn.Module):
    """Two layers of GPS."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.ModuleList(
            GPSConv(8, GINConv(torch.nn.Linear(8, 8)), heads=2, dropout=dropout) for _ in range(2)
        )

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x, edge_index, batch)
        return x


def loaded(encodings: Any) -> Any:
    return loaded_of(graphs(), encodings)


def loaded_of(given: Any, encodings: Any) -> Any:
    (batch,) = DataLoader(AddEncoding(*encodings).many(given), batch_size=len(given))  # type: ignore[arg-type]
    return batch


@pytest.mark.parametrize("training", [True, False])
def test_with_a_bias_of_zero_the_model_computes_what_it_did(training: bool) -> None:
    net = Net().train(training)
    plain = copy.deepcopy(net)
    position = build({"name": "t5-unshared", "encoding": "undirected-distance"}, Dims(8, 2, 2))
    torch.nn.init.zeros_(position.get_parameter("table.weight"))
    batch = loaded(position.encodings)
    handle = inject(net, position, start="own")
    # Where a mask has a gradient PyTorch computes attention by another kernel.
    for learned, most in ((False, 0.0), (True, 1e-5)):
        position.requires_grad_(learned)
        with handle.reading(batch):
            found = net(batch.x, batch.edge_index, batch.batch)
        assert (found - plain(batch.x, batch.edge_index, batch.batch)).abs().max() <= most
    found.square().sum().backward()
    grad = position.get_parameter("table.weight").grad
    assert grad is not None
    assert grad.abs().amax((1, 2)).min() > 0, "each layer has a table of its own"


def test_a_bias_is_added_to_the_scores_of_each_graph() -> None:
    conv = Net().eval().layers[0]
    position = build({"name": "t5", "encoding": "undirected-distance"}, Dims(8, 2, 1))
    batch, table = loaded(position.encodings), position.get_parameter("table.weight")[0]
    torch.nn.init.normal_(table)
    handle, attention = inject(conv, position, start="own"), conv.attn
    seen: list[Any] = []
    attention.register_forward_hook(lambda _, given, out: seen.append((given[0], out[0])))
    with torch.no_grad(), handle.reading(batch):
        conv(batch.x, batch.edge_index, batch.batch)
        ((x, found),) = seen
        for graph, data in enumerate(batch.to_data_list()):
            n = data.num_nodes
            q, k, v = (
                (x[graph, :n] @ attention.in_proj_weight.T + attention.in_proj_bias)
                .view(n, 3, 2, 4)
                .permute(1, 2, 0, 3)
            )
            distance = data.pe_undirected_distance.view(n, n)
            bias = table[torch.where(distance > 0, 16 + distance, 0)].permute(2, 0, 1)
            mixed = (q @ k.transpose(-1, -2) / math.sqrt(4) + bias).softmax(-1) @ v
            expected = attention.out_proj(mixed.transpose(0, 1).flatten(1))
            assert torch.allclose(found[graph, :n], expected, atol=1e-6)


def test_a_pass_says_which_graphs_it_is_over() -> None:
    net = Net().eval()
    plain, position = copy.deepcopy(net), build({"name": "t5", "encoding": "undirected-distance"}, Dims(8, 2, 2))
    handle, batch = inject(net, position, start="own"), loaded(position.encodings)
    given = batch.x, batch.edge_index, batch.batch
    with pytest.raises(PositionError, match=r"has no positions for it; .* within handle\.reading\(\.\.\.\)"):
        net(*given)
    with handle.reading(None):
        assert torch.allclose(net(*given), plain(*given), atol=1e-6)
    with handle.reading(positions(batch, position.encodings)):
        net(*given)
    eject(net)
    assert torch.allclose(net(*given), plain(*given), atol=1e-6)
    assert dict(net.named_parameters()).keys() == dict(plain.named_parameters()).keys()
    inject(net, position, start="own")


def test_a_batch_is_read_and_not_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net().eval()
    handle = inject(net, {"name": "t5", "encoding": "undirected-distance"}, start="own")
    batch = loaded(handle.encodings)
    monkeypatch.setattr(_injection, "encode", None)
    net(batch.x, batch.edge_index, batch.batch, structpe=batch)


@pytest.mark.parametrize(
    ("model", "name", "dims", "message"),
    [
        (
            torch.nn.Linear(2, 2),
            "t5",
            Dims(8, 2, 2),
            "Linear is not known; .* TransformerConv of PyG",
        ),
        (GPSConv(8, None, 2, attn_type="performer"), "t5", Dims(8, 2, 1), "needs attn_type='multihead'"),
        (Net(), "t5", Dims(8, 4, 2), r"needs Dims\(width=8, heads=2, layers=2\)"),
        (Net(), "t5", Dims(8, 2, 3), r"needs Dims\(width=8, heads=2, layers=2\)"),
        (Net(), "learned", Dims(8, 2, 2), "Encodings of nodes can be features x, see"),
    ],
)
def test_what_cannot_enter(model: torch.nn.Module, name: str, dims: Dims, message: str) -> None:
    with pytest.raises(PositionError, match=message):
        inject(model, build(name, dims))


def test_a_second_position_model_is_refused() -> None:
    net = Net()
    inject(net, build("t5", Dims(8, 2, 2)))
    with pytest.raises(PositionError, match="the encoder has a position model already"):
        inject(net, build("t5", Dims(8, 2, 2)))


def test_a_store_keeps_what_was_encoded(tmp_path: Path) -> None:
    transform, given = (
        AddEncoding("random-walk", {"name": "undirected-distance", "max_distance": 3}, "neighbours"),
        graphs(9),
    )
    once = transform.many(given)
    written = transform.many(given, store=tmp_path / "store")
    files = {file: file.stat().st_mtime_ns for file in (tmp_path / "store").iterdir()}
    read = transform.many(given, store=tmp_path / "store")
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "store").iterdir()} == files
    for each in (written, read):
        for mine, theirs in zip(each, once, strict=True):
            assert mine.keys() == theirs.keys()
            assert all(torch.equal(mine[key], theirs[key]) for key in theirs.keys())  # noqa: SIM118
    with pytest.raises(StoreError, match="it is a store of other structures"):
        transform.many(given[1:], store=tmp_path / "store")


@pytest.mark.slow
def test_two_processes_encode_what_one_does(tmp_path: Path) -> None:
    transform, given = AddEncoding("random-walk", "undirected-distance", "neighbours"), graphs(9)
    once = transform.many(given)
    for each in (transform.many(given, jobs=2), transform.many(given, tmp_path / "store", jobs=2)):
        for mine, theirs in zip(each, once, strict=True):
            assert mine.keys() == theirs.keys()
            assert all(torch.equal(mine[key], theirs[key]) for key in theirs.keys())  # noqa: SIM118


class Convolutions(torch.nn.Module):
    """Two layers of TransformerConv, with vectors of edges."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.ModuleList(TransformerConv(8, 4, 2, edge_dim=3, **options) for _ in range(2))

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x, edge_index, edges).relu()
        return x


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("options", [{"dropout": 0.4, "beta": True}, {"flow": "target_to_source"}])
def test_with_a_bias_of_zero_transformer_convolutions_are_what_they_were(training: bool, options: Any) -> None:
    net = Convolutions(**options).train(training)
    plain = copy.deepcopy(net)
    position = build({"name": "t5-unshared", "encoding": "undirected-distance"}, Dims(8, 2, 2))
    table = position.get_parameter("table.weight")
    torch.nn.init.zeros_(table)
    batch = loaded(position.encodings)
    given = batch.x, batch.edge_index, torch.randn(batch.num_edges, 3)
    handle = inject(net, position, start="own")
    torch.manual_seed(1)
    with handle.reading(batch):
        found = net(*given)
    torch.manual_seed(1)
    expected = plain(*given)
    assert torch.equal(found, expected)
    found.square().sum().backward()
    assert table.grad is not None
    assert table.grad.abs().amax((1, 2)).min() > 0, "each layer has a table of its own"
    torch.manual_seed(1)
    with handle.reading(None):
        assert torch.equal(net(*given), expected)
    eject(net)
    torch.manual_seed(1)
    assert torch.equal(net(*given), expected)
    assert not [each for each in net.modules() if "message" in each.__dict__], "layers have their own message again"


def test_on_all_pairs_a_transformer_convolution_is_attention_with_the_terms() -> None:
    given = graphs(3)
    position = build({"name": "t5", "encoding": "undirected-distance"}, Dims(8, 2, 1))
    torch.nn.init.normal_(position.get_parameter("table.weight"))
    batch = loaded_of(given, position.encodings)
    conv = TransformerConv(8, 4, 2, root_weight=False)
    q, k, v = (each(batch.x).view(-1, 2, 4) for each in (conv.lin_query, conv.lin_key, conv.lin_value))
    sizes = [data.num_nodes for data in given]
    pairs = [torch.cartesian_prod(*[torch.arange(n)] * 2).T + first for n, first in zip(sizes, batch.ptr, strict=False)]
    handle = inject(conv, position, start="own")
    with handle.reading(batch):
        found = conv(batch.x, torch.cat(pairs, dim=1)).split(sizes)
    for data, mine, *each in zip(given, found, *(x.split(sizes) for x in (q, k, v)), strict=True):
        found_of = encode([as_structure(data)], position.encodings)
        terms = position.terms(position.prepare(found_of), Site(0))
        expected = attend(*(x.transpose(0, 1)[None] for x in each), terms, "dense")[0]
        torch.testing.assert_close(mine, expected.transpose(0, 1).flatten(1), rtol=0, atol=1e-6)


def test_an_edge_that_may_not_attend_counts_nothing() -> None:
    data = Data(x=torch.randn(3, 8), edge_index=torch.tensor([[0, 0, 1, 1, 2], [0, 1, 0, 2, 1]]), order=torch.arange(3))
    position = build("alibi-causal", Dims(8, 2, 1))
    conv = TransformerConv(8, 4, 2, root_weight=False)
    batch = loaded_of([data], position.encodings)
    handle = inject(conv, position, start="own")
    with handle.reading(batch):
        _, (_, weights) = conv(batch.x, batch.edge_index, return_attention_weights=True)
        alone, (_, of_all) = conv(batch.x, batch.edge_index[:, 1:], return_attention_weights=True)
    assert weights[:, 0].tolist() == [1, 1, 0, 1, 0], "from the same node, or an earlier one"
    assert of_all[:, 0].tolist() == [1, 1, 1, 0], "a node whose edges all come from later ones has them as they are"
    assert alone.isfinite().all()


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (torch.tensor([[0], [9]]), "an edge leads out of the graphs"),
        (torch.tensor([[0], [99]]), "an edge leads out of the graphs"),
        (torch.eye(3).to_sparse(), "a tensor \\(2, E\\)"),
    ],
)
def test_edges_are_those_of_the_graphs(edges: Any, message: str) -> None:
    position = build({"name": "t5", "encoding": "undirected-distance"}, Dims(8, 2, 1))
    batch, conv = loaded(position.encodings), TransformerConv(8, 4, 2)
    handle = inject(conv, position, start="own")
    with handle.reading(batch), pytest.raises(PositionError, match=message):
        conv(batch.x, edges)


def test_a_pair_without_a_path_is_one_farther_than_any_can_be() -> None:
    """UNREACHABLE, a number that no table has a row for, stays inside."""
    apart = Data(x=torch.randn(3, 8), edge_index=torch.tensor([[0, 1], [1, 0]]))
    limited: Any = {"name": "distance", "max_distance": 8}
    data = AddEncoding("undirected-distance", limited, "resistance")(apart)
    assert data.pe_undirected_distance.tolist() == [0, 1, 3, 1, 0, 3, 3, 3, 0], "the number of nodes"
    assert data.pe_distance.tolist() == [0, 1, 9, 1, 0, 9, 9, 9, 0], "max_distance + 1"
    assert data.pe_resistance.isinf().tolist() == [False, False, True, False, False, True, True, True, False]
    names = ["undirected-distance", limited, "resistance"]
    (batch,) = DataLoader([data, AddEncoding(*names)(graphs(1)[0])], batch_size=2)  # type: ignore[arg-type]
    found, expected = positions(batch, names), encode([as_structure(apart)], names)
    for name in ("undirected-distance", "distance", "resistance"):
        assert torch.equal(found[name].dense()[0, :3, :3], expected[name].dense()[0])


LINE = torch.tensor([[0, 1, 1, 2, 2, 3, 4, 5], [1, 0, 2, 1, 3, 2, 5, 4]])
CHANGES: dict[str, Callable[[Any], Any]] = {
    "numbered otherwise": lambda data: data.subgraph(torch.tensor([3, 1, 2, 0, 5, 4])),
    "left out": lambda data: data.subgraph(torch.tensor([0, 1, 3, 4])),
    "largest part": T.LargestConnectedComponents(),
    "loader": lambda data: filter_data(data, torch.arange(3), *LINE[:, :4], torch.arange(4)),
    "virtual node": T.VirtualNode(),
    "both ways": lambda data: T.ToUndirected()(T.Compose([_one_way])(data)),
    "other edges": lambda data: _with_edges(data, data.edge_index[:, 2:]),
    "self-loops": T.AddSelfLoops(),
    "edge subgraph": lambda data: data.edge_subgraph(torch.arange(data.num_edges) > 1),
}


def _quietly(make: Callable[[], Any]) -> Any:
    """Without what PyG and PyTorch say of how they compute."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


def _with_edges(data: Any, edges: torch.Tensor) -> Any:
    copy = data.clone()
    copy.edge_index = edges
    return copy


def _one_way(data: Any) -> Any:
    return _with_edges(data, data.edge_index[:, data.edge_index[0] <= data.edge_index[1]][:, :3])


@together("name", ["undirected-distance", "resistance", "adjacency", "rrwp"])
@together("change", CHANGES)
def test_pairs_of_another_graph_are_refused(change: str, name: str) -> None:
    data = AddEncoding(name)(Data(x=torch.randn(6, 8), edge_index=LINE))
    (batch,) = DataLoader([AddEncoding(name)(graphs(1)[0]), CHANGES[change](data)], batch_size=2)  # type: ignore[arg-type]
    with pytest.raises(EncodingError, match=r"was made from another graph: .* since, .*; apply AddEncoding"):
        positions(batch, [name])
    last = T.Compose([CHANGES[change], AddEncoding(name)])(Data(x=torch.randn(6, 8), edge_index=LINE))
    assert positions(last, [name])


def test_nodes_take_their_values_along_and_new_ones_have_none() -> None:
    data = AddEncoding("degree", "random-walk")(Data(x=torch.randn(6, 8), edge_index=LINE))
    kept = torch.tensor([3, 1, 5])
    found = positions(data.subgraph(kept), ["degree", "random-walk"])
    assert torch.equal(found["degree"][0], data.pe_degree[kept]), "in the graph that was encoded"
    assert torch.equal(found["random-walk"][0], data.pe_random_walk[kept])
    for name in ("degree", "random-walk"):
        with pytest.raises(EncodingError, match="nodes have been added since"):
            positions(T.VirtualNode()(data), [name])


def test_where_edges_have_changed_the_values_of_the_graph_as_it_was_must_be_asked_for() -> None:
    data = AddEncoding("undirected-distance")(Data(x=torch.randn(6, 8), edge_index=LINE))
    dropped = _with_edges(data, LINE[:, 2:])
    found = positions(dropped, ["undirected-distance"], any_edges=True)
    expected = positions(data, ["undirected-distance"])
    assert torch.equal(found["undirected-distance"].dense(), expected["undirected-distance"].dense())
    assert positions(_with_edges(data, LINE.flip(1)), ["undirected-distance"]), "in another order they are the same"
    with pytest.raises(EncodingError, match="nodes have been left out or numbered otherwise"):
        positions(data.subgraph(torch.tensor([1, 0])), ["undirected-distance"], any_edges=True)


def test_values_that_are_as_many_as_the_edges_are_sorted_with_them() -> None:
    """PyG takes them for values of edges."""
    edges = torch.cartesian_prod(torch.arange(3), torch.arange(3)).T[:, [4, 0, 8, 2, 1, 3, 7, 5, 6]]
    data = AddEncoding("random-walk", "undirected-distance")(Data(edge_index=edges, num_nodes=3))
    assert positions(data, ["undirected-distance"])
    moved = data.edge_subgraph(torch.arange(9).roll(1))
    assert not torch.equal(moved.pe_undirected_distance, data.pe_undirected_distance)
    for any_edges in (False, True):
        with pytest.raises(EncodingError, match="edges have changed since"):
            positions(moved, ["undirected-distance"], any_edges)


def test_edges_that_have_become_a_sparse_tensor_are_the_same() -> None:
    data = AddEncoding("undirected-distance")(Data(x=torch.randn(6, 8), edge_index=LINE))
    sparse = _quietly(lambda: T.ToSparseTensor()(data))
    assert sparse.edge_index is None
    assert _quietly(lambda: positions(sparse, ["undirected-distance"]))
    sparse.adj_t = _quietly(lambda: T.ToSparseTensor()(_with_edges(data, LINE[:, 2:]))).adj_t
    with pytest.raises(EncodingError, match="edges have changed since"):
        _quietly(lambda: positions(sparse, ["undirected-distance"]))


@pytest.mark.parametrize("name", ["degree", "distance"])
def test_one_encoding_of_a_name_does_not_replace_another(name: str) -> None:
    option: Any = {"degree": {"direction": "in"}, "distance": {"max_distance": 2}}[name]
    first, second = AddEncoding(name), AddEncoding({"name": name, **option})
    data = Data(x=torch.randn(6, 8), edge_index=LINE)
    with pytest.raises(EncodingError, match=rf"the graph has pe_{name} already, of another encoding or other options"):
        T.Compose([first, second])(data)
    assert T.Compose([first, first])(data)[f"pe_{name}"].equal(first(data)[f"pe_{name}"]), "made anew"
    with pytest.raises(
        EncodingError, match=f"pe_{name} was made by another encoding than {re.escape(repr(*second.encodings))}"
    ):
        positions(first(data), second.encodings)


def test_pairs_of_which_nothing_says_what_they_were_made_from() -> None:
    data = AddEncoding("undirected-distance")(Data(x=torch.randn(6, 8), edge_index=LINE))
    del data.pe_undirected_distance_of
    with pytest.raises(EncodingError, match=r"has no pe_undirected_distance, .* as AddEncoding makes it"):
        positions(data, ["undirected-distance"])


@pytest.mark.slow
def test_no_encoding_of_pairs_is_taken_for_that_of_another_graph() -> None:
    """Every encoding that a graph without labels and order has."""
    tried, data = [], Data(x=torch.randn(6, 8), edge_index=LINE)
    for name, encoding in ENCODINGS.items():
        try:
            added = AddEncoding(encoding())(data)
            mine, theirs = positions(added, [encoding()]), encode([as_structure(data)], [encoding()])
        except EncodingError:
            continue  # needs labels, features, a root, an order, or is of sequences
        assert torch.equal(_numbers(mine[name]), _numbers(theirs[name])), name
        tried.append(name)
        if encoding.arity == 2:
            for change in CHANGES.values():
                with pytest.raises(EncodingError, match="was made from another graph"):
                    positions(change(added), [name])
    assert len([name for name in tried if ENCODINGS[name].arity == 2]) >= 10


def _numbers(found: Any) -> torch.Tensor:
    """The numbers of a graph of six nodes, all in one tensor."""
    if isinstance(found, SparsePairs):
        return found.dense(1, 6, 6)
    return found.dense() if isinstance(found, Lookup) else found


def test_the_last_node_is_missed_though_it_had_no_edge() -> None:
    data = AddEncoding("undirected-distance", "adjacency")(Data(x=torch.randn(7, 8), edge_index=LINE))
    for name in ("undirected-distance", "adjacency"):
        with pytest.raises(EncodingError, match="nodes have been left out or numbered otherwise"):
            positions(data.subgraph(torch.arange(6)), [name])
