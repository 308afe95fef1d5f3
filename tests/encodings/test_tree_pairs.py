"""Pairs of nodes of trees, with and without numba, beside what walking up from each node says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from structpe.encodings import (
    UNREACHABLE,
    AncestorDistance,
    BranchPath,
    ChildPath,
    Column,
    Depth,
    Encoding,
    LowestCommonAncestor,
    ParentChild,
    RootDistance,
    SiblingDistance,
    SPRRelative,
    UndirectedDistance,
)
from structpe.encodings.compiled import slow
from structpe.encodings.graphs import Graphs, concatenated_once
from structpe.encodings.tree_pairs import Rooted
from structpe.errors import EncodingError
from structpe.formats import tree as parsed
from structpe.positions.batch import join
from structpe.structure import Structure
from tests.examples import examples
from tests.strategies import structures, trees
from tests.together import together

SHAPES = ("drawn", "path", "star", "bush")
OF_TREES: list[Encoding] = [
    SPRRelative(), LowestCommonAncestor(), LowestCommonAncestor(max_distance=2), AncestorDistance(),
    AncestorDistance(max_distance=3), SiblingDistance(), SiblingDistance(max_distance=1), ParentChild(), ChildPath(),
    BranchPath(width=300), Depth(), RootDistance(),
]  # fmt: skip


def tree_of(size: int, shape: str, seed: int = 0) -> Structure:
    """Nodes are numbered at random, so that parents come after their children too."""
    generator = np.random.default_rng(seed)
    number = generator.permutation(size)
    least = {"drawn": 0, "path": size, "star": 0, "bush": 0}[shape]
    most = {"drawn": size, "path": size, "star": 1, "bush": 4}[shape]
    parents = [int(generator.integers(min(least, i - 1), min(most, i))) for i in range(1, size)]
    edges = np.array([(number[p], number[i]) for i, p in enumerate(parents, start=1)], dtype=np.int64).reshape(-1, 2)
    order = generator.permutation(size)
    return Structure(("",) * size, edges, order=order, root=int(number[0]))


def ways_up(tree: Structure) -> list[list[int]]:
    """Each node and its ancestors, the root last."""
    parent = {int(target): int(source) for source, target in tree.edges}
    found = []
    for node in range(tree.size):
        way = [node]
        while way[-1] in parent:
            way.append(parent[way[-1]])
        found.append(way)
    return found


def literal(tree: Structure) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(n, n) steps up from one node to the first ancestor of the other, and down."""
    ways = [{node: steps for steps, node in enumerate(way)} for way in ways_up(tree)]
    up, down = np.zeros((2, tree.size, tree.size), dtype=np.int64)
    for t, mine in enumerate(ways):
        for s, other in enumerate(ways):
            meet = next(node for node in mine if node in other)
            up[t, s], down[t, s] = mine[meet], other[meet]
    return up, down


def sides(tree: Structure) -> NDArray[np.int64]:
    """Section 4.3.1 of the survey."""
    (up, down), depth = literal(tree), np.array([len(way) - 1 for way in ways_up(tree)])
    sign = np.sign(tree.order[:, None] - tree.order)
    return np.where((up == 0) | (down == 0), depth[:, None] - depth, sign * (depth[:, None] + depth))


def both(encoding: Encoding, drawn: Sequence[Structure]) -> Column:
    quick = encoding.many(drawn)
    with slow():
        plain = encoding.many(drawn)
    for one, other in ((quick.values, plain.values), (quick.index, plain.index)):
        if one is not None and other is not None:
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
    return plain


def check(drawn: Sequence[Structure]) -> None:
    columns = zip(
        drawn, both(LowestCommonAncestor(), drawn), both(SPRRelative(), drawn), both(AncestorDistance(), drawn),
        both(Depth(), drawn), strict=True,
    )  # fmt: skip
    for tree, ways, relative, ancestors, depths in columns:
        up, down = literal(tree)
        np.testing.assert_array_equal(ways.pairs(), np.stack([up, down], axis=-1))
        np.testing.assert_array_equal(relative.pairs(), sides(tree))
        related = (up == 0) | (down == 0)
        np.testing.assert_array_equal(ancestors.pairs(), np.where(related, down - up, UNREACHABLE))
        np.testing.assert_array_equal(depths.values, [len(way) - 1 for way in ways_up(tree)])


@examples(40)
@given(drawn=st.lists(trees(units=False), max_size=6))
def test_pairs_of_small_trees(drawn: list[Structure]) -> None:
    check(drawn)


@pytest.mark.parametrize("shape", SHAPES)
def test_trees_of_one_word_and_more(shape: str) -> None:
    check([tree_of(size, shape, seed=size) for size in (1, 2, 31, 32, 33, 63, 64, 65, 100)])


def test_depths_beyond_eight_bits() -> None:
    """A path of 300 nodes beside small trees, which then have wider numbers too."""
    deep, small = tree_of(300, "path"), tree_of(40, "drawn")
    ways = both(LowestCommonAncestor(), [small, deep])
    up, down = literal(small)
    np.testing.assert_array_equal(ways[0].pairs(), np.stack([up, down], axis=-1))
    np.testing.assert_array_equal(ways[1].pairs().sum(-1), UndirectedDistance().one(deep).pairs())
    relative = both(SPRRelative(), [small, deep])
    np.testing.assert_array_equal(relative[0].pairs(), sides(small))
    assert relative[1].pairs().max() == 299
    assert len(ways.values) < 1500  # those that occur, of 300 squared


@pytest.mark.parametrize("encoding", OF_TREES, ids=repr)
@examples(20)
@given(drawn=st.lists(trees(), min_size=1, max_size=5))
def test_both_ways_agree(encoding: Encoding, drawn: list[Structure]) -> None:
    for tree, each in zip(drawn, both(encoding, drawn), strict=True):
        assert each.count == tree.unit_count


@examples(60)
@given(drawn=st.lists(structures(units=False), min_size=1, max_size=6))
def test_which_graphs_are_trees(drawn: list[Structure]) -> None:
    for made in (Graphs.of(drawn).rooted, _plain(drawn)):
        assert made.tree.tolist() == [each.is_tree() for each in drawn]
        start = np.cumsum([0, *(each.size for each in drawn)])
        for a, structure in zip(start, drawn, strict=False):
            if structure.is_tree():
                mine = slice(a, a + structure.size)
                parents = structure.parents()
                assert made.parent[mine].tolist() == [p + a if p >= 0 else -1 for p in parents]
                depth = made.depth[mine]
                assert (depth == [len(way) - 1 for way in ways_up(structure)]).all()


def _plain(drawn: Sequence[Structure]) -> Rooted:
    with slow():
        return Graphs.of(drawn).rooted


CYCLE = Structure(("r", "a", "b", "c"), [[1, 2], [2, 3], [3, 1]], root=0, order=range(4), name="cycle:1")
TWO_PARENTS = Structure(("r", "a", "b"), [[0, 1], [0, 2], [2, 1]], root=0, order=range(3), name="both:1")
UPSIDE_DOWN = Structure(("a", "r"), [[1, 0]], root=0, order=range(2), name="down:1")
WRONG = [
    (CYCLE, r"cycle:1: encoding '.*': it needs a tree .*these nodes lie on or below a cycle.*1 \('a'\)"),
    (TWO_PARENTS, r"both:1: encoding '.*': it needs a tree .*node 1 \('a'\) has two parents, 0 and 2"),
    (UPSIDE_DOWN, r"down:1: encoding '.*': it needs a tree; the root is node 0 .*give Structure\(root=1\)"),
]


@together("structure, message", WRONG)
@together("encoding", [SPRRelative(), LowestCommonAncestor(), SiblingDistance(), ChildPath()])
def test_the_first_that_is_no_tree_is_named(encoding: Encoding, structure: Structure, message: str) -> None:
    listed = [tree_of(3, "drawn"), structure, CYCLE]
    with pytest.raises(EncodingError, match=message):
        encoding.many(listed)
    with slow(), pytest.raises(EncodingError, match=message):
        encoding.many(listed)


@examples(40)
@given(drawn=st.lists(structures(), min_size=1, max_size=6))
def test_steps_from_the_root_of_any_graph(drawn: list[Structure]) -> None:
    """Trees, trees with another root, and graphs in pieces."""
    rooted = [each for each in drawn if each.root is not None]
    for structure, each in zip(rooted, both(RootDistance(unreachable=77), rooted), strict=True):
        pairs = UndirectedDistance().one(Structure(structure.nodes, structure.edges)).pairs()[structure.root]
        expected = np.where(pairs == UNREACHABLE, 77, pairs)[structure.unit_owner]
        np.testing.assert_array_equal(each.values, expected)


def test_structures_of_a_list_are_concatenated_once() -> None:
    listed = [tree_of(5, "drawn")]
    assert Graphs.of(listed) is not Graphs.of(listed)
    with concatenated_once():
        assert Graphs.of(listed) is Graphs.of(listed)
        assert Graphs.of(list(listed)) is not Graphs.of(listed)
        with concatenated_once():
            inner = Graphs.of(listed)
        assert inner is not Graphs.of(listed)
    assert Graphs.of(listed) is not inner


@pytest.mark.parametrize("sizes", [[3, 9], [9, 9], [5, 6, 1]])
def test_a_batch_keeps_the_values_of_its_pairs_and_padding_has_the_first_one(sizes: list[int]) -> None:
    """Of more than 64 values of a data set a batch keeps those that it has; what is looked up stays the same."""
    drawn = [parsed([""] * n, [*range(max(1, n - 2)), 1, 2][:n]) for n in (40, *sizes)]  # lines, two leaves beside them
    encoding, most = LowestCommonAncestor(), max(sizes)
    column = encoding.many(drawn)[1:]
    assert len(column.values) > 64
    found = join({encoding: column})[encoding]
    assert len(found.table) < 64
    there = found.dense().numpy()
    for number, (n, encoded) in enumerate(zip(sizes, column, strict=True)):
        np.testing.assert_array_equal(there[number, :n, :n], encoded.pairs())
        padding = np.ones((most, most), dtype=bool)
        padding[:n, :n] = False
        assert (there[number][padding] == column.values[0]).all()
