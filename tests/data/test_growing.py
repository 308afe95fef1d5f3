"""Growing structures: each step gives the rows and columns that the encoding gives for the whole structure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from structpe.data.growing import GrowingGraph, GrowingTree, newest
from structpe.encodings import (
    BranchPath,
    ChildPath,
    Depth,
    Distance,
    Encoding,
    LabelPath,
    Order,
    SPRRelative,
    UndirectedDistance,
)
from structpe.encodings.distance import shortest
from structpe.encodings.graphs import Graphs
from structpe.errors import EncodingError, StructureError
from structpe.nn.language_model import LanguageModel
from structpe.nn.layer import StackConfig
from structpe.positions import Dims, build
from structpe.positions.batch import encode
from structpe.structure import Structure
from tests.examples import examples

LABELS = ("a", "b")
OF_PAIRS: list[Encoding] = [
    Distance(),
    Distance(max_distance=2),
    UndirectedDistance(),
    UndirectedDistance(max_distance=1),
    SPRRelative(),
    LabelPath(LABELS),
    LabelPath(LABELS, max_length=2),
    LabelPath(LABELS, max_length=2, longer="symbol"),
]
OF_NODES: list[Encoding] = [Depth(), Order(), BranchPath(depth=3, width=13), BranchPath(depth=2, width=2, binary=True)]

PARENTS = st.lists(st.tuples(st.integers(0, 99), st.sampled_from("abc")), max_size=12)
"""Node i + 1 has the parent of this number, modulo i + 1, and an edge with this label; c is not known."""


def grown(parents: list[tuple[int, str]]) -> GrowingTree:
    tree = GrowingTree("r")
    for node, (parent, label) in enumerate(parents, start=1):
        assert tree.add(parent % node, f"n{node}", label) == node
    return tree


def lengths(graph: Structure, directed: bool) -> NDArray[Any]:
    return shortest(Graphs.of([graph]), directed).reshape(graph.size, graph.size)


def same(given: NDArray[Any], expected: NDArray[Any]) -> None:
    """Equal, where paths may be padded to other lengths."""
    width = max(given.shape[-1], expected.shape[-1]) if expected.ndim > 1 else 0
    if width:
        given, expected = (
            np.pad(x, [*[(0, 0)] * (x.ndim - 1), (0, width - x.shape[-1])], constant_values=-1)
            for x in (given, expected)
        )
    np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("encoding", OF_PAIRS, ids=repr)
@examples(15)
@given(parents=PARENTS)
def test_each_row_and_column_of_a_tree_is_that_of_the_whole(encoding: Encoding, parents: list[tuple[int, str]]) -> None:
    tree = GrowingTree("r")
    steps = [(tree.row(encoding), tree.column(encoding))] if not isinstance(encoding, LabelPath) else [None]
    for node, (parent, label) in enumerate(parents, start=1):
        tree.add(parent % node, f"n{node}", label)
        steps.append((tree.row(encoding), tree.column(encoding)))
    whole = encoding.one(tree.structure).pairs()
    for node, step in enumerate(steps):
        if step is not None:
            same(step[0], whole[node, : node + 1])
            same(step[1], whole[: node + 1, node])


@pytest.mark.parametrize("encoding", OF_NODES, ids=repr)
@examples(15)
@given(parents=PARENTS)
def test_nodes_of_a_tree_keep_their_values(encoding: Encoding, parents: list[tuple[int, str]]) -> None:
    tree, steps = GrowingTree("r"), []
    for node, (parent, label) in enumerate(parents, start=1):
        steps.append(tree.values(encoding))
        tree.add(parent % node, f"n{node}", label)
    whole = encoding.one(tree.structure).values
    for step in [*steps, tree.values(encoding)]:
        np.testing.assert_array_equal(step, whole[: len(step)])


@pytest.mark.parametrize("directed", [True, False])
@examples(30)
@given(data=st.data())
def test_each_row_and_column_of_a_graph_is_that_of_the_graph_so_far(directed: bool, data: st.DataObject) -> None:
    graph = GrowingGraph(directed=directed)
    encodings = [Distance(), Distance(max_distance=2), UndirectedDistance()]
    for node in range(1, data.draw(st.integers(2, 9))):
        before, ends = graph.structure, st.lists(st.integers(0, node - 1), max_size=3)
        assert graph.add(data.draw(ends), data.draw(ends)) == node
        for encoding in encodings:
            whole = encoding.one(graph.structure).pairs()
            np.testing.assert_array_equal(graph.row(encoding), whole[node])
            np.testing.assert_array_equal(graph.column(encoding), whole[:, node])
        moved = sum(lengths(before, along) != lengths(graph.structure, along)[:node, :node] for along in (True, False))
        np.testing.assert_array_equal(graph.nearer, np.argwhere(moved))


def test_a_bridge_brings_earlier_nodes_nearer() -> None:
    graph = GrowingGraph(directed=False)
    for node in range(1, 4):
        graph.add([node - 1])
        assert not len(graph.nearer)
    graph.add([0, 3])
    assert graph.nearer.tolist() == [[0, 3], [3, 0]]
    np.testing.assert_array_equal(graph.row(UndirectedDistance()), [1, 2, 2, 1, 0])
    np.testing.assert_array_equal(graph.values(Depth()), [0, 1, 2, 2, 1])
    np.testing.assert_array_equal(graph.values(Order()), [0, 1, 2, 3, 4])


@pytest.mark.parametrize(
    "position",
    [
        {"name": "t5-causal", "encoding": "undirected-distance"},
        {"name": "t5", "encoding": "distance"},
        {"name": "spr-rel"},
        {"name": "tpe", "encoding": {"name": "branch-path", "width": 8}},
        {"name": "spr"},
        {"name": "zhu-cnn", "encoding": {"name": "label-path", "labels": [""], "max_length": 4}},
        {"name": "cai", "encoding": {"name": "label-path", "labels": [""], "max_length": 8, "longer": "symbol"}},
    ],
)
def test_a_decoder_that_writes_trees_has_the_rows_of_the_whole(position: Any) -> None:
    """Two trees of one size, node by node with a cache, and at once with a causal mask."""
    dims = Dims(12, 2, 2)
    torch.manual_seed(0)
    model = build(position, dims)
    net = LanguageModel(StackConfig.transformer(dims, 16), 9, model).double().eval()
    torch.nn.init.normal_(next(model.parameters(), torch.empty(0)))
    trees = [GrowingTree(), GrowingTree()]
    units, state, steps = torch.randint(9, (2, 8)), net.start(2), []
    with torch.no_grad():
        for node in range(8):
            positions = newest(trees, model.encodings).to(units.device, torch.float64)
            steps.append(net.step(units[:, node : node + 1], state, positions))
            trees[0].add(node // 2)
            trees[1].add(node // 3)
        whole = encode([_first(tree, 8) for tree in trees], model.encodings).to(units.device, torch.float64)
        expected, _ = net(units, whole)
    torch.testing.assert_close(torch.cat(steps, dim=1), expected, rtol=0, atol=1e-6)


def _first(tree: GrowingTree, nodes: int) -> Any:
    again = GrowingTree()
    for parent in tree.structure.parents()[1:nodes]:
        again.add(int(parent))
    return again.structure


def test_what_a_tree_refuses() -> None:
    tree = grown([(0, "a"), (0, "a"), (0, "b")])
    with pytest.raises(StructureError, match=r"the parent is 9, but the 4 nodes are 0\.\.3"):
        tree.add(9)
    with pytest.raises(EncodingError, match=r"'child-path' is not made node by node for a growing tree; of nodes it"):
        tree.values(ChildPath())
    with pytest.raises(EncodingError, match=r"of pairs it has 'distance', .*encoding.one\(growing.structure\)"):
        tree.row(Depth())
    with pytest.raises(EncodingError, match=r"node 0 has 3 children, the width is 2; give a width of 3 or more"):
        tree.values(BranchPath(width=2))
    with pytest.raises(EncodingError, match=r"paths is 2, and 1 labels are known. Give paths=1"):
        tree.row(LabelPath(("a",), paths=2))
    with pytest.raises(EncodingError, match=r"paths is 1, and 0 labels are known. .* fit the encoding first"):
        tree.column(LabelPath())


def test_what_a_graph_refuses() -> None:
    graph = GrowingGraph()
    graph.add(targets=[0])
    with pytest.raises(StructureError, match=r"an edge joins node 2, but the 2 nodes so far are 0\.\.1"):
        graph.add([2])
    with pytest.raises(StructureError, match=r"1 relations for 2 edges; give one per edge, or none"):
        graph.add([0], [1], relations=["a"])
    with pytest.raises(EncodingError, match=r"'spr-relative' is not made node by node for a growing graph"):
        graph.row(SPRRelative())
    graph.add()
    with pytest.raises(EncodingError, match=r"no path leads from the root to node 2; connect it"):
        graph.values(Depth())


def test_a_step_takes_structures_of_one_size() -> None:
    with pytest.raises(EncodingError, match=r"structures of one size, one at least; these have \[1, 3\] nodes"):
        newest([GrowingTree(), grown([(0, "a"), (1, "a")])], [Depth()])
    with pytest.raises(EncodingError, match=r"one at least; these have no nodes"):
        newest([], [Depth()])
