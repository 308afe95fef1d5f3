"""TokenGT: tokens for edges, and the identifiers of the ends of nodes and edges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from structpe.encodings import Endpoints, TokenLaplacian
from structpe.errors import EncodingError, PositionError, StructureError
from structpe.positions import MODELS, Dims, Positions
from structpe.positions.batch import encode
from structpe.structure import Structure, path
from structpe.transforms.nodes import edge_tokens
from tests.examples import examples
from tests.positions.cases import TREES, made, noise
from tests.strategies import digraphs, relabelled, undirected

HOUSE = Structure(("a",) * 5, [[0, 1], [1, 2], [2, 3], [3, 0], [3, 4], [2, 4], [1, 1]], tuple("tuvwxyz"))


def ends_of(graph: Structure) -> list[tuple[int, int]]:
    """Nodes twice, then each edge, then each undirected edge reversed."""
    pairs = [(node, node) for node in range(graph.size)] + [tuple(edge) for edge in graph.edges.tolist()]
    return pairs + ([] if graph.directed else [(b, a) for a, b in graph.edges.tolist() if a != b])


# --- the tokens ---


@examples(50)
@given(graph=st.one_of(digraphs(units=False), undirected(units=False)))
def test_tokens_know_which_nodes_they_join(graph: Structure) -> None:
    graph = replace(graph, order=None)
    made = edge_tokens(graph)
    assert made.size == len(ends_of(graph))
    assert made.nodes[: graph.size] == graph.nodes
    assert made.features["is_edge"].tolist() == [False] * graph.size + [True] * (made.size - graph.size)
    assert [tuple(pair) for pair in Endpoints().one(made).values.tolist()] == ends_of(graph)


def test_an_undirected_edge_is_two_tokens_with_its_label_and_a_loop_is_one() -> None:
    graph = replace(HOUSE, directed=False)
    assert edge_tokens(HOUSE).nodes[5:] == tuple("tuvwxyz")
    assert edge_tokens(graph).nodes[5:] == tuple("tuvwxyz" + "tuvwxy")
    assert edge_tokens(replace(HOUSE, relations=())).nodes[5:] == ("",) * 7


def test_edges_are_read_after_nodes_and_features_go_on() -> None:
    graph = replace(HOUSE, order=np.array([4, 3, 2, 1, 0]), features={"mark": np.arange(5), "edge_mark": np.arange(7)})
    made = edge_tokens(graph)
    assert made.features["mark"].tolist() == [0, 1, 2, 3, 4] + [0] * 7
    assert "edge_mark" not in made.features
    assert [made.nodes[i] for i in np.argsort(made.order)] == ["a"] * 5 + list("xwyvuzt")


def test_what_cannot_be_tokens() -> None:
    with pytest.raises(StructureError, match="already split into units; make the edges tokens first"):
        edge_tokens(path("ab").with_units(["a", "b"], [0, 1]))
    broken = edge_tokens(HOUSE)
    with pytest.raises(EncodingError, match="needs one edge from a node and one to a node; make them with"):
        Endpoints().one(replace(broken, edges=broken.edges[1:]))


# --- eigenvectors at the ends ---


@pytest.mark.parametrize("k", [3, 5, 9])
def test_the_eigenvectors_of_the_original_graph_are_at_the_ends(k: int) -> None:
    """The authors' numpy: first k of eigh(I - N A N), zeros behind the last, gathered by source and target."""
    a = np.zeros((5, 5))
    for i, j in HOUSE.edges.tolist():
        a[i, j] = a[j, i] = 1
    n = np.diag(a.sum(1).clip(1) ** -0.5)
    values, vectors = np.linalg.eigh(np.eye(5) - n @ a @ n)
    assert np.diff(values).min() > 1e-3
    theirs = np.pad(vectors[:, :k], ((0, 0), (0, max(0, k - 5))))
    mine = TokenLaplacian(k).one(edge_tokens(HOUSE)).values
    for token, (u, v) in enumerate(ends_of(HOUSE)):
        both = np.concatenate([theirs[u], theirs[v]])
        signs = np.sign((mine[:5, :k] * theirs).sum(0))
        np.testing.assert_allclose(mine[token], both * np.tile(signs, 2), atol=1e-6)


def test_in_a_plain_graph_every_unit_is_a_node() -> None:
    values = TokenLaplacian(4).one(TREES[0]).values
    np.testing.assert_array_equal(values[:, :4], values[:, 4:])
    assert (Endpoints().one(TREES[0]).values[:, 0] == Endpoints().one(TREES[0]).values[:, 1]).all()


@pytest.mark.parametrize("name", ["tokengt", "tokengt-orf"])
def test_numbers_of_tokens_do_not_matter(name: str) -> None:
    graph = edge_tokens(replace(HOUSE, order=np.array([2, 0, 1, 4, 3])))
    new, units = relabelled(graph, np.random.default_rng(0).permutation(graph.size))
    model = made(name)
    here, there = (model.prepare(encode([s], model.encodings))[0] for s in (graph, new))
    torch.testing.assert_close(there, here[units], rtol=0, atol=1e-6)


# --- what is added ---


def test_the_authors_sum() -> None:
    graph = edge_tokens(HOUSE)
    model = made("tokengt", encoding=TokenLaplacian(3))
    x = noise(1, graph.size, 8)
    added = (model.inputs(x, model.prepare(encode([graph], model.encodings))) - x)[0]
    values = torch.from_numpy(TokenLaplacian(3).one(graph).values).double()
    for token, (u, v) in enumerate(ends_of(HOUSE)):
        kind = model.identify.types[1 if u == v else 0]
        torch.testing.assert_close(added[token], model.identify.embed.weight @ values[token] + kind, atol=1e-6, rtol=0)


def test_signs_are_drawn_per_eigenvector_in_training_and_are_the_same_at_both_ends() -> None:
    graph = edge_tokens(HOUSE)
    model = made("tokengt", Dims(6, 2, 1), encoding=TokenLaplacian(3))
    torch.nn.init.eye_(model.identify.embed.weight)
    torch.nn.init.zeros_(model.identify.types)
    exact = model.prepare(positions := encode([graph, graph], model.encodings)).detach()
    model.train()
    seen = set()
    for _ in range(40):
        ratio = (model.prepare(positions).detach() / exact)[:, 0].round().int().tolist()
        assert all(row[:3] == row[3:] and set(row) <= {1, -1} for row in ratio)
        seen |= {tuple(row[:3]) for row in ratio}
    assert len(seen) == 8


def test_random_identifiers_are_the_authors_of_given_noise() -> None:
    """Rows of the matrix, cut or filled to k and brought to length 1, at both ends."""
    graphs = [edge_tokens(HOUSE), edge_tokens(path("ab"))]
    for k in (3, 7):
        model = made("tokengt-orf", width=k)
        ends = encode(graphs, model.encodings)[Endpoints()]
        matrices = [torch.linalg.qr(noise(m, m, seed=m))[0] for m in (5, 2)]
        added = model.added(matrices, ends, torch.tensor([[0], [1]]).expand(2, ends.shape[1]))
        for row, (matrix, graph) in enumerate(zip(matrices, (HOUSE, path("ab")), strict=True)):
            m = len(matrix)
            for token, (u, v) in enumerate(ends_of(graph)):
                both = []
                for node in (u, v):
                    cut = torch.cat([matrix[node, :k], torch.zeros(max(0, k - m), dtype=torch.float64)])
                    both.append(cut / cut.norm())
                expected = model.identify.embed.weight @ torch.cat(both) + model.identify.types[int(u == v)]
                torch.testing.assert_close(added[row, token], expected, rtol=0, atol=1e-9)


def test_random_identifiers_are_orthogonal_new_in_training_and_fixed_in_evaluation() -> None:
    model = MODELS["tokengt-orf"](Dims(8, 2, 1), seed=3)
    cpu = torch.device("cpu")
    for training in (True, False):
        (first, small), (second, _) = (model.train(training).draw([6, 2], cpu) for _ in range(2))
        torch.testing.assert_close(first @ first.T, torch.eye(6), atol=1e-5, rtol=0)
        assert small.shape == (2, 2)
        assert torch.equal(first, second) != training
    again = MODELS["tokengt-orf"](Dims(8, 2, 1), seed=3).eval()
    other = MODELS["tokengt-orf"](Dims(8, 2, 1), seed=4).eval()
    assert torch.equal(again.draw([6], cpu)[0], model.draw([6, 2], cpu)[0])
    assert not torch.equal(again.draw([6], cpu)[0], other.draw([6], cpu)[0])


def test_what_is_refused() -> None:
    with pytest.raises(PositionError, match="'width' of position model 'tokengt-orf' is 0; give 1 or more"):
        MODELS["tokengt-orf"](Dims(8, 2, 1), width=0)
    with pytest.raises(EncodingError, match="k is 0; give 1 or more"):
        TokenLaplacian(0)


def test_padding_is_nobodys_end() -> None:
    model = made("tokengt-orf")
    graphs = [edge_tokens(HOUSE), edge_tokens(path("ab"))]
    both = model.prepare(encode(graphs, model.encodings))
    for row, graph in enumerate(graphs):
        alone = model.prepare(Positions({Endpoints(): encode([graph], [Endpoints()])[Endpoints()]}))
        torch.testing.assert_close(both[row, : graph.size], alone[0])
