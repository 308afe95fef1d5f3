"""Graph-BERT: contexts as the authors' scripts make them, and the sum of three vectors per node."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch

from structpe.encodings import Feature, Intimacy, RootDistance, WeisfeilerLehman
from structpe.errors import PositionError, StructureError
from structpe.positions import MODELS, Dims
from structpe.positions.batch import encode
from structpe.structure import Structure, path
from structpe.transforms.parts import contexts

DIMS = Dims(8, 2, 1)
FEATURES = {"encoding": Feature("role"), "rank": Feature("intimacy"), "hop": Feature("hop")}


def network(seed: int) -> Structure:
    """Sparse, so that there are several components and isolated nodes."""
    graph = nx.gnp_random_graph(14, 0.15, seed=seed)
    return Structure(tuple(f"n{i}" for i in range(14)), np.array(graph.edges).reshape(-1, 2), directed=False)


def by_the_authors(graph: Structure, k: int) -> list[tuple[list[int], list[int], list[int]]]:
    """Members, roles and hops of each context; ranks are 0..k. One row of S after the other, itself put last."""
    a = np.zeros((graph.size, graph.size))
    for i, j in graph.edges.tolist():
        a[i, j] = a[j, i] = 1
    with np.errstate(divide="ignore"):
        scale = np.diag(np.where(a.sum(1) > 0, a.sum(1) ** -0.5, 0))
    # Rounded, so that equal scores are: in the authors' code rounding errors decide among them.
    s = np.round(0.15 * np.linalg.inv(np.eye(graph.size) - 0.85 * scale @ a @ scale), 12)
    colours = [hashlib.md5("_".join(["1"] * (1 + int(d))).encode()).hexdigest() for d in a.sum(1)]
    roles = [1 + sorted(set(colours)).index(colour) for colour in colours]
    joined = nx.empty_graph(graph.size, nx.Graph())
    joined.add_edges_from(graph.edges.tolist())
    result = []
    for node in range(graph.size):
        row = s[node].copy()
        row[node] = -1000
        members = [node, *row.argsort(kind="stable")[-k:][::-1].tolist()]
        reached = nx.single_source_shortest_path_length(joined, node)
        result.append((members, [roles[i] for i in members], [reached.get(i, 99) for i in members]))
    return result


@pytest.mark.parametrize("seed", range(4))
def test_contexts_roles_and_hops_of_the_authors(seed: int) -> None:
    graph = network(seed)
    roles = WeisfeilerLehman().fit([graph]).one(graph).values
    made = list(contexts(replace(graph, features={"role": roles}), k=5))
    for context, (members, theirs, hops) in zip(made, by_the_authors(graph, 5), strict=True):
        assert context.nodes == tuple(f"n{i}" for i in members)
        assert context.features["role"].tolist() == theirs
        assert context.features["intimacy"].tolist() == list(range(6))
        assert context.features["hop"].tolist() == hops
        assert (context.root, len(context.edges), context.order.tolist()) == (0, 0, list(range(6)))


def test_three_rows_are_added() -> None:
    graph = network(0)
    roles = WeisfeilerLehman().fit([graph]).one(graph).values
    made = list(contexts(replace(graph, features={"role": roles}), k=4))
    model = MODELS["graph-bert"](DIMS, **FEATURES)
    added = model.inputs(torch.zeros(14, 5, 8), model.prepare(encode(made, model.encodings)))
    for row, (_, theirs, hops) in enumerate(by_the_authors(graph, 4)):
        for place in range(5):
            expected = model.tables[0][theirs[place]] + model.tables[1][place] + model.tables[2][hops[place]]
            torch.testing.assert_close(added[row, place], expected)


def test_three_sinusoids_are_added() -> None:
    line = path("abcde")
    model = MODELS["graph-bert-survey"](DIMS, encoding=WeisfeilerLehman(iterations=None).fit([line]))
    added = model.inputs(torch.zeros(1, 5, 8), model.prepare(encode([line], model.encodings)))[0]
    each = [encoding.one(line).values.tolist() for encoding in model.encodings]
    for unit in range(5):
        for i in range(4):
            angles = [numbers[unit] / 10000 ** (2 * i / 8) for numbers in each]
            assert added[unit, 2 * i] == pytest.approx(sum(map(math.sin, angles)), abs=1e-5)
            assert added[unit, 2 * i + 1] == pytest.approx(sum(map(math.cos, angles)), abs=1e-5)


def test_in_any_other_structure_the_root_is_the_target() -> None:
    line = path("abcd")
    model = MODELS["graph-bert"](DIMS, encoding=WeisfeilerLehman().fit([line]))
    assert [type(encoding) for encoding in model.encodings] == [WeisfeilerLehman, Intimacy, RootDistance]
    added = model.inputs(torch.zeros(1, 4, 8), model.prepare(encode([line], model.encodings)))[0]
    role = model.encodings[0].one(line).values[0]
    torch.testing.assert_close(added[0], model.tables[0][role] + model.tables[1][0] + model.tables[2][0])


def test_a_small_graph_is_one_context_and_targets_can_be_chosen() -> None:
    line = path("abc", name="line")
    (context,) = contexts(line, k=9, targets=[1])
    assert sorted(context.nodes) == ["a", "b", "c"]
    assert context.nodes[0] == "b"
    assert context.name == "line:1"
    assert [c.name for c in contexts(replace(line, name=""), k=1)] == ["0", "1", "2"]


def test_what_is_refused() -> None:
    model = MODELS["graph-bert"](DIMS, **FEATURES, rows=9)
    made = list(contexts(replace(path("a" * 12), features={"role": np.zeros(12, dtype=int)}), k=11))
    prepared = model.prepare(encode(made, model.encodings))
    with pytest.raises(PositionError, match="'graph-bert' has 9 rows, 'feature' gives 11; build it with more rows"):
        model.inputs(torch.zeros(12, 12, 8), prepared)
    with pytest.raises(PositionError, match="has 2 rows for roles, the encoding has 3 values"):
        MODELS["graph-bert"](DIMS, encoding=WeisfeilerLehman().fit([path("abc")]), rows=2)
    for message, options in (
        ("contexts of 0 nodes with restart 0.15", {"k": 0}),
        ("with restart 1 cannot be taken", {"restart": 1}),
        ("target 3 is not a node; the 3 nodes are 0..2", {"targets": [3]}),
    ):
        with pytest.raises(StructureError, match=message):
            next(contexts(path("abc"), **options))
    with pytest.raises(StructureError, match="take contexts first, then split"):
        next(contexts(path("a").with_units(["a"], [0])))
