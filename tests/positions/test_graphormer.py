"""Graphormer: the authors' numbers, and their equations by loops over pairs where there are no such numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import torch
from torch import Tensor

from structpe.encodings import Degree, LabelPath
from structpe.errors import PositionError
from structpe.positions import MODELS, Dims, PositionModel, Positions, Site
from structpe.positions.batch import encode
from structpe.structure import Structure, path
from structpe.terms import Lookup
from structpe.transforms import levi
from structpe.transforms.nodes import with_virtual_node
from tests.golden import Golden, golden
from tests.positions.cases import TREES, made

KINDS = {"graphormer": "graphormer_multi_hop", "graphormer-simple": "graphormer_simple"}


def graphs(given: Golden) -> list[Structure]:
    """The authors' graphs, an edge labelled by its two features, with a virtual node."""
    return [
        with_virtual_node(
            Structure(
                ("x",) * graph["n"],
                np.array(graph["edges"]),
                tuple(f"{a},{b}" for a, b in graph["edge_feats"]),
                directed=False,
            )
        )
        for graph in given.cfg["graphs"]
    ]


def filled(name: str, given: Golden) -> tuple[PositionModel, list[Structure]]:
    """Our model with the authors' weights."""
    cfg, structures = given.cfg, graphs(given)
    options = {"max_length": 3} if name == "graphormer" else {"max_length": 1, "longer": "symbol"}
    paths = LabelPath(**options).fit(structures)
    dims = Dims(given["out.node_feature"].shape[-1], cfg["num_heads"], 2)
    model = MODELS[name](dims, paths=paths, farthest=cfg["spatial_pos_max"], degrees=15).double()
    row, edge = (
        dict(zip(given[f"w.{name}.weight.rows"].tolist(), given[f"w.{name}.weight.values"], strict=True))
        for name in ("spatial_pos_encoder", "edge_encoder")
    )
    with torch.no_grad():
        for distance in range(4):
            model.spatial.table[distance] = row[distance + 1]
        model.spatial.table[510] = row[511]
        model.spatial.token.copy_(given["w.graph_token_virtual_distance.weight"][0])
        for place, direction in enumerate(("in", "out")):
            model.centrality.tables[place].copy_(given[f"w.node.{direction}_degree_encoder.weight"][1:])
        for i, label in enumerate(paths.labels):
            a, b = map(int, label.split(","))
            first = 3 if name == "graphormer" else 2  # their numbers for paths are shifted once more, for padding
            model.edges.table[1 + 2 * i] = (edge[a + first] + edge[b + 512 + first]) / 2
        if name == "graphormer":
            steps = given["w.edge_dis_encoder.weight"].reshape(-1, dims.heads, dims.heads)
            model.steps.copy_(steps[:3])
    return model, structures


def with_the_authors_paths(given: Golden, model: PositionModel, positions: Positions) -> Positions:
    """Of two shortest paths around a ring the authors' search keeps one: take theirs, symbols in place of features."""
    paths = model.encodings[1]
    symbol = {(0, 0): -1}
    for i, label in enumerate(paths.labels):
        a, b = map(int, label.split(","))
        symbol[a + 3, b + 512 + 3] = 4 + 2 * i
    steps = given["in.edge_input"]
    b, n = steps.shape[:2]
    found = torch.full((b, n + 1, n + 1, 3), -1)
    for where in np.ndindex(*steps.shape[:4]):
        g, i, j, k = where
        found[g, i + 1, j + 1, k] = symbol[tuple(steps[where].tolist())]
    table = found.reshape(-1, 3)
    index = torch.arange(len(table)).reshape(b, n + 1, n + 1)
    every = Lookup(table, torch.arange(len(table))[None].expand(b, -1), index)
    return Positions({**positions, paths: every})


@pytest.mark.parametrize("name", KINDS)
def test_the_authors_bias(name: str) -> None:
    given = golden(KINDS[name])
    model, structures = filled(name, given)
    positions = encode(structures, model.encodings)
    if name == "graphormer":
        positions = with_the_authors_paths(given, model, positions)
    _assert_bias(given, model, positions, [None, None])


def test_our_shortest_path_is_theirs_where_there_is_only_one() -> None:
    """A path graph has one each; opposite corners of the ring of four have two."""
    given = golden("graphormer_multi_hop")
    model, structures = filled("graphormer", given)
    corners = torch.zeros(6, 6, dtype=torch.bool)
    for i, j in ((1, 3), (2, 4)):
        corners[i, j] = corners[j, i] = True
    _assert_bias(given, model, encode(structures, model.encodings), [None, ~corners])


def _assert_bias(given: Golden, model: PositionModel, positions: Positions, where: list[Tensor | None]) -> None:
    terms = model.terms(model.prepare(positions), Site(1))
    bias = sum(x.dense().movedim(3, 1) for x in terms.bias)
    (mask,) = terms.mask
    for row, graph in enumerate(given.cfg["graphs"]):
        n = graph["n"] + 1
        theirs = given["out.bias"][row, :, :n, :n]
        mine = bias[row].masked_fill(~mask[row], -math.inf)[:, :n, :n]
        inside = torch.ones(n, n, dtype=torch.bool) if where[row] is None else where[row][:n, :n]
        assert theirs.isneginf().any() == (row == 0)
        torch.testing.assert_close(mine[:, inside], theirs[:, inside], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", KINDS)
def test_the_authors_inputs(name: str) -> None:
    """What is left when the embeddings of atoms, which are words here, are taken away."""
    given = golden(KINDS[name])
    model, structures = filled(name, given)
    atom = torch.zeros(516, 8, dtype=torch.float64)
    atom[given["w.node.atom_encoder.weight.rows"]] = given["w.node.atom_encoder.weight.values"]
    words = torch.cat([given["w.node.graph_token.weight"].expand(2, 1, -1), atom[given["in.x"]].sum(2)], 1)
    mine = model.inputs(words, model.prepare(encode(structures, model.encodings)))
    for row, graph in enumerate(given.cfg["graphs"]):
        n = graph["n"] + 1
        torch.testing.assert_close(mine[row, :n], given["out.node_feature"][row, :n], rtol=0, atol=1e-9)


def test_the_equation_pair_by_pair() -> None:
    """On a tree with directions, where paths are unique: distance, then each step with its own matrix."""
    tree = replace(TREES[0], units=None, owner=None)
    model = made("graphormer", paths=LabelPath(max_length=2))
    terms = model.terms(model.prepare(encode([tree], model.encodings)), Site(0))
    bias = sum(x.dense()[0] for x in terms.bias)
    graph = nx.Graph(tree.edges.tolist())
    label = {tuple(edge): name for edge, name in zip(tree.edges.tolist(), tree.relations, strict=True)}
    known = model.encodings[1].labels
    for i, j in np.ndindex(tree.size, tree.size):
        walk = nx.shortest_path(graph, i, j)
        expected = model.spatial.table[len(walk) - 1].clone()
        steps = list(pairwise(walk))[:2]
        for place, (a, b) in enumerate(steps):
            down = (a, b) in label
            row = 1 + 2 * known.index(label[(a, b) if down else (b, a)]) + (not down)
            expected += model.edges.table[row] @ model.steps[place] / len(steps)
        torch.testing.assert_close(bias[i, j], expected, rtol=0, atol=1e-12)
    assert not terms.mask


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_graphgps_counts_the_steps_that_a_path_does_not_have(limit: int) -> None:
    """GraphGPS's encoder as a loop: its empty steps have the type 0, and no pair is without."""
    tree = with_virtual_node(
        replace(TREES[0], units=None, owner=None, edges=TREES[0].edges[1:], relations=tuple("bcabc"))
    )
    model = made("graphormer-gps", paths=LabelPath(max_length=limit))
    m, table, known = limit + 1, model.edges.table, model.encodings[1].labels
    terms = model.terms(model.prepare(encode([tree], model.encodings)), Site(0))
    bias = sum(x.dense()[0] for x in terms.bias)
    graph = nx.Graph(tree.edges.tolist())
    label = {tuple(edge): name for edge, name in zip(tree.edges.tolist(), tree.relations, strict=True)}
    paths = dict(nx.all_pairs_shortest_path(graph))
    for i, j in np.ndindex(tree.size, tree.size):
        if 0 in (i, j):
            torch.testing.assert_close(bias[i, j], model.spatial.token, rtol=0, atol=1e-12)
            continue
        walk = paths.get(i, {i: [i]}).get(j)
        kind = m if walk is None else min(len(walk) - 1, m - 1)
        types = [0] * m
        for place, (a, b) in enumerate(list(pairwise(walk or []))[: m - 1]):
            down = (a, b) in label
            types[place] = 1 + 2 * known.index(label[(a, b) if down else (b, a)]) + (not down)
        steps = sum(table[kind_of_step] @ model.steps[place] for place, kind_of_step in enumerate(types))
        torch.testing.assert_close(bias[i, j], model.spatial.table[kind] + steps / max(kind, 1), rtol=0, atol=1e-12)
    assert not terms.mask


def test_degrees_count_neighbours_once_and_the_virtual_node_has_none() -> None:
    graph = Structure(("a", "b", "c"), [[0, 1], [0, 1], [2, 1], [1, 1]], ("x",) * 4)
    assert Degree("out").one(graph).values.tolist() == [1, 1, 1]
    assert Degree("in").one(graph).values.tolist() == [0, 3, 0]
    assert Degree("both").one(graph).values.tolist() == [1, 3, 1]
    model = made("graphormer")
    model = type(model)(model.dims, paths=model.encodings[1].fit([graph])).double()
    zeros = torch.zeros(1, 4, 8, dtype=torch.float64)
    added = model.inputs(zeros, model.prepare(encode([with_virtual_node(graph)], model.encodings)))[0]
    into, out = model.centrality.tables
    expected = torch.stack([torch.zeros(8, dtype=torch.float64), into[0] + out[1], into[3] + out[1], into[0] + out[1]])
    torch.testing.assert_close(added, expected)


def test_a_virtual_node_changes_nothing_among_the_others() -> None:
    tree = TREES[0]
    for name in KINDS:
        model = made(name, farthest=3)
        bare, whole = (
            model.terms(model.prepare(encode([s], model.encodings)), Site(0)) for s in (tree, with_virtual_node(tree))
        )
        for mine, theirs in zip(whole.bias, bare.bias, strict=True):
            torch.testing.assert_close(mine.dense()[:, 1:, 1:], theirs.dense(), rtol=0, atol=0)
        assert torch.equal(whole.mask[0][..., 1:, 1:], bare.mask[0])
        assert whole.mask[0][:, :, 0].all()
        assert whole.mask[0][..., 0].all()
        total = sum(x.dense()[0] for x in whole.bias)
        for pairs in (total[0], total[:, 0]):
            torch.testing.assert_close(pairs, model.spatial.token.expand_as(pairs), rtol=0, atol=0)


def test_what_is_refused() -> None:
    told = r"'graphormer-gps' needs paths that are cut: LabelPath\(max_length=19\), for example; given is LabelPath"
    with pytest.raises(PositionError, match=told):
        MODELS["graphormer-gps"](Dims(8, 2, 1), paths=LabelPath(max_length=1, longer="symbol"))
    star = Structure(("x",) * 6, [[0, i] for i in range(1, 6)], ("a",) * 5, directed=False)
    model = MODELS["graphormer"](Dims(8, 2, 1), paths=LabelPath(max_length=2).fit([star]), degrees=5)
    with pytest.raises(PositionError, match="'graphormer' has 5 degrees, this batch needs 6; build it with a larger"):
        model.prepare(encode([star], model.encodings))
    with pytest.raises(PositionError, match="needs paths of a limited length, one per pair"):
        MODELS["graphormer"](Dims(8, 2, 1), paths=LabelPath())
    with pytest.raises(PositionError, match="needs the labels of single edges"):
        MODELS["graphormer-simple"](Dims(8, 2, 1), paths=LabelPath(max_length=2))
    with pytest.raises(PositionError, match="'farthest' of position model 'graphormer' is 0; give 1 or more"):
        MODELS["graphormer"](Dims(8, 2, 1), farthest=0)


# --- the virtual node ---


def test_the_virtual_node_is_first_and_has_no_edge() -> None:
    tree = replace(TREES[0], features={"mark": np.arange(7), "edge_weight": np.arange(6.0)})
    whole = with_virtual_node(tree, "[ALL]")
    assert whole.nodes == ("[ALL]", *tree.nodes)
    assert whole.units[:2] == ("[ALL]", tree.units[0])
    assert whole.unit_owner.tolist() == [0, *(tree.unit_owner + 1).tolist()]
    assert whole.edges.tolist() == (tree.edges + 1).tolist()
    assert whole.order.tolist() == [0, *(tree.order + 1).tolist()]
    assert whole.root == tree.root + 1
    assert whole.features["virtual"].tolist() == [True] + [False] * 7
    assert whole.features["mark"].tolist() == [0, *range(7)]
    assert whole.features["edge_weight"].tolist() == tree.features["edge_weight"].tolist()
    with pytest.raises(Exception, match="has a virtual node already"):
        with_virtual_node(whole)


def test_the_levi_graph_may_have_one() -> None:
    graph = replace(path("ab"), relations=("r",))
    assert with_virtual_node(levi(graph)).nodes == ("[GRAPH]", "a", "b", "r")
