"""Encodings in graphs of DGL: through its batches, its transforms, and into its biased attention."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from structpe.adapters.dgl import AddEncoding, positions
from structpe.adapters.pytorch import additive_masks
from structpe.attention import attend
from structpe.encodings import ENCODINGS
from structpe.errors import EncodingError, MissingExtra
from structpe.formats import as_structure, convert, import_dgl
from structpe.positions import Dims, Site, build
from structpe.positions.batch import encode
from structpe.terms import Lookup, SparsePairs, Terms
from tests.adapters.test_pyg import NAMES, graphs

try:
    dgl: Any = import_dgl()
except MissingExtra:
    pytest.skip("DGL is not released for this Python or machine", allow_module_level=True)


def given(count: int = 5) -> list[Any]:
    """The graphs of PyG's tests."""
    made = [convert(as_structure(data), "dgl") for data in graphs(count)]
    for graph, data in zip(made, graphs(count), strict=True):
        graph.edata["w"] = torch.randn(data.num_edges)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_has_the_positions_of_its_graphs(name: str) -> None:
    encoding = ENCODINGS[name]()
    found = positions(dgl.batch(AddEncoding(name).many(given())), [encoding])
    expected = encode([as_structure(graph) for graph in given()], [encoding])
    mine, theirs = found[encoding], expected[encoding]
    if isinstance(theirs, Lookup):
        assert found.present is not None
        both = found.present[:, :, None] & found.present[:, None, :]
        assert torch.equal(mine.dense()[both], theirs.dense()[both])
    elif isinstance(theirs, SparsePairs):
        n = max(graph.num_nodes() for graph in given())
        assert torch.equal(mine.dense(5, n, n), theirs.dense(5, n, n))
        assert torch.equal(mine.pairs.dense(5, n, n), theirs.pairs.dense(5, n, n))
    else:
        assert torch.equal(mine, theirs)


def test_the_graph_is_what_it_was_and_a_graph_of_one_type_stays_one(tmp_path: Path) -> None:
    graph = given()[0].int()
    nodes = dgl.transforms.Compose([dgl.transforms.AddSelfLoop(), AddEncoding("random-walk")])(graph)
    assert nodes.is_homogeneous
    assert set(nodes.ndata) - set(graph.ndata) == {"pe_random_walk"}
    pairs = AddEncoding("degree", "distance")(graph)
    assert set(graph.ndata) == {"x"}
    assert pairs.idtype == torch.int32
    own = pairs["_E"]
    assert torch.equal(torch.stack(own.edges(order="eid")), torch.stack(graph.edges(order="eid")))
    assert torch.equal(own.edata["w"], graph.edata["w"])
    assert torch.equal(pairs.ndata["x"], graph.ndata["x"])
    matrix = encode([as_structure(graph)], ["distance"])["distance"].dense()[0]
    keys, queries = pairs.edges(etype="pe_distance", order="eid")
    assert torch.equal(
        pairs.edges["pe_distance"].data["pe_distance"].long(), matrix[queries.long(), keys.long()].long()
    )
    once, again = (AddEncoding("degree").many([graph], store=tmp_path / "store")[0] for _ in range(2))
    assert torch.equal(once.ndata["pe_degree"], again.ndata["pe_degree"])


def test_a_bias_in_the_attention_of_dgl_is_the_terms() -> None:
    position = build({"name": "t5", "encoding": "undirected-distance"}, Dims(8, 2, 1))
    torch.nn.init.normal_(position.get_parameter("table.weight"))
    batch = dgl.batch(AddEncoding(*position.encodings).many(given()))
    found = positions(batch, position.encodings)
    (mask,) = additive_masks(position, found)
    attention = dgl.nn.BiasedMHA(8, 2, attn_drop=0.0).eval()
    x = torch.randn(5, mask.shape[-1], 8)
    out = attention(x, mask.permute(0, 2, 3, 1))
    q, k, v = (
        each(x).unflatten(-1, (2, 4)).transpose(1, 2) for each in (attention.q_proj, attention.k_proj, attention.v_proj)
    )
    assert found.present is not None
    terms = position.terms(position.prepare(found), Site(0)) + Terms(mask=(found.present[:, None, None],))
    expected = attention.out_proj(attend(q, k, v, terms, "dense").transpose(1, 2).flatten(2))
    torch.testing.assert_close(out[found.present], expected[found.present], rtol=0, atol=1e-5)


def test_what_cannot_be_added() -> None:
    graph = given()[0]
    with pytest.raises(EncodingError, match=r"several types of nodes or edges, .*apply one AddEncoding"):
        AddEncoding("degree")(AddEncoding("distance")(graph))
    with pytest.raises(EncodingError, match=r"the batch has no pe_distance, the encoding .*; apply AddEncoding"):
        positions(graph, [ENCODINGS["distance"]()])
    with pytest.raises(EncodingError, match="takes encodings of different names"):
        AddEncoding()


def test_pairs_follow_their_nodes_and_are_refused_where_some_are_missing() -> None:
    """DGL takes edges of all types along; they come in another order."""
    name = "distance"
    graph = AddEncoding(name)(given()[0])
    order = torch.randperm(graph.num_nodes())
    assert order.tolist() != sorted(order.tolist())
    moved = dgl.node_subgraph(graph, order)
    found, whole = positions(moved, [name])[name].dense()[0], positions(graph, [name])[name].dense()[0]
    assert torch.equal(found, whole[order][:, order])
    less = dgl.remove_edges(graph, torch.tensor([1]), etype="pe_distance")
    with pytest.raises(EncodingError, match=r"'distance' has a value for each pair .*; apply AddEncoding"):
        positions(less, [name])
