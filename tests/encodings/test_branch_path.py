from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.encodings import BranchPath
from structpe.errors import EncodingError
from structpe.structure import Structure, path
from tests.examples import examples
from tests.golden import golden
from tests.strategies import trees


def children(tree: Structure) -> dict[int, list[int]]:
    assert tree.order is not None
    below: dict[int, list[int]] = {i: [] for i in range(tree.size)}
    for source, target in tree.edges.tolist():
        below[source].append(target)
    return {node: sorted(nodes, key=lambda i: int(tree.order[i])) for node, nodes in below.items()}


def binary(below: dict[int, list[int]], node: int, siblings: list[int]) -> list[tuple[int, int]]:
    """(branch, child) of a node in the left-child right-sibling tree."""
    return [(0, c) for c in below[node][:1]] + [(1, c) for c in siblings[:1]]


def literal(tree: Structure, depth: int, width: int, as_binary: bool = False) -> np.ndarray:
    """Walk down from the root with the list of branches taken, deepest first."""
    below, result = children(tree), np.zeros((tree.size, depth, width))

    def visit(node: int, taken: list[int], siblings: list[int]) -> None:
        for step, branch in enumerate(taken[:depth]):
            result[node, step, branch] = 1
        if as_binary:
            for branch, child in binary(below, node, siblings):
                visit(child, [branch, *taken], below[node][1:] if branch == 0 else siblings[1:])
        else:
            for branch, child in enumerate(below[node]):
                visit(child, [branch, *taken], [])

    assert tree.root is not None
    visit(tree.root, [], [])
    return result.reshape(tree.size, -1)


@examples(50)
@given(tree=trees(units=False), depth=st.integers(1, 12))
def test_it_is_the_list_of_branches(tree: Structure, depth: int) -> None:
    np.testing.assert_array_equal(BranchPath(depth, 12).one(tree).values, literal(tree, depth, 12))


@examples(50)
@given(tree=trees(units=False), depth=st.integers(1, 12))
def test_a_binary_tree_has_two_branches(tree: Structure, depth: int) -> None:
    encoded = BranchPath(depth, 2, binary=True).one(tree).values
    np.testing.assert_array_equal(encoded, literal(tree, depth, 2, as_binary=True))


@examples(25)
@given(tree=trees(units=False))
def test_every_node_has_a_path_of_its_own(tree: Structure) -> None:
    for encoding in (BranchPath(12, 12), BranchPath(12, 2, binary=True)):
        assert len(np.unique(encoding.one(tree).values, axis=0)) == tree.size


def test_the_authors_code_agrees() -> None:
    g = golden("tpe_icecaps")
    names = list(g.cfg["nodes"])
    edges = ["ra", "rb", "ac", "ad", "dg", "dh", "gi", "gj", "be", "bf"]
    tree = Structure(names, [[names.index(a), names.index(b)] for a, b in edges], root=0)
    encoded = BranchPath(g.cfg["depth"], g.cfg["width"]).one(tree).values
    np.testing.assert_array_equal(encoded, g["in.onehot_paths"].numpy())


def test_a_wide_node_is_named_with_the_remedy() -> None:
    wide = Structure(("a", "b", "c", "d"), [[0, 1], [0, 2], [0, 3]], root=0, name="w:1")
    expected = (
        r"^w:1: encoding 'branch-path': node 0 \('a'\) has 3 children, the width is 2; give a width of 3 or more, or b"
    )
    with pytest.raises(EncodingError, match=expected):
        BranchPath(depth=4, width=2).many([path("abc"), wide, path("ab")])


@pytest.mark.parametrize(("depth", "width", "as_binary"), [(0, 2, False), (2, 0, False), (2, 3, True)])
def test_impossible_sizes_are_refused(depth: int, width: int, as_binary: bool) -> None:
    with pytest.raises(EncodingError, match="depth and width must be 1 or more, and a binary tree has width 2"):
        BranchPath(depth, width, as_binary)


def test_a_graph_is_no_tree() -> None:
    with pytest.raises(
        EncodingError, match="needs a tree whose edges lead away from the root: a tree has one root, this"
    ):
        BranchPath().one(Structure(("a", "b"), np.zeros((0, 2), int)))
