"""Shortest paths of many graphs at once, with and without numba, beside SciPy's of each graph."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from structpe.encodings import UNREACHABLE, WITHIN, Distance, Encoding, Offset, UndirectedDistance, bfs
from structpe.encodings import distance as distance_module
from structpe.encodings.base import Column
from structpe.encodings.columns import starts_of
from structpe.encodings.compiled import slow
from structpe.encodings.distance import shortest, signed
from structpe.encodings.graphs import Graphs
from structpe.errors import EncodingError
from structpe.positions.batch import encode
from structpe.structure import Structure, path
from structpe.terms import Toeplitz
from tests.examples import examples
from tests.representatives import only
from tests.strategies import structures

LISTS = st.lists(structures(), max_size=6)
NONE = np.zeros((0, 2), dtype=int)


def by_scipy(structure: Structure, directed: bool) -> NDArray[np.float64]:
    ends = (np.ones(len(structure.edges)), structure.edges.T)
    matrix = coo_array(ends, shape=(structure.size, structure.size)).tocsr()
    lengths: NDArray[np.float64] = shortest_path(matrix, directed=directed and structure.directed, unweighted=True)
    return lengths


def literal(structure: Structure, directed: bool) -> NDArray[np.float64]:
    """Equation 31 of the survey for nodes, infinite without a path."""
    there = by_scipy(structure, directed)
    return np.where(there <= there.T, there, -there.T)


def check(drawn: Sequence[Structure]) -> None:
    """Flat lengths, plain and signed, in both ways of computing them."""
    graphs = Graphs.of(drawn)
    for directed in (True, False):
        quick = shortest(graphs, directed)
        with slow():
            plain = shortest(graphs, directed)
        compare(drawn, quick, plain, [by_scipy(each, directed) for each in drawn])
    quick = signed(graphs)
    with slow():
        plain = signed(graphs)
    compare(drawn, quick, plain, [literal(each, True) for each in drawn])


def compare(
    drawn: Sequence[Structure], quick: NDArray[np.integer], plain: NDArray[np.integer], expected: list[NDArray]
) -> None:
    assert quick.dtype == plain.dtype
    np.testing.assert_array_equal(quick, plain)
    top = np.iinfo(plain.dtype).max
    flat = np.concatenate([*(each.reshape(-1) for each in expected), np.zeros(0)])
    np.testing.assert_array_equal(plain, np.where(np.isfinite(flat), flat, top))
    assert flat[np.isfinite(flat)].max(initial=0) < top, "a length is what stands for no path"
    if plain.dtype.kind == "u":
        assert (plain.dtype == np.uint8) == (flat[np.isfinite(flat)].max(initial=0) <= 254)


def ring(size: int, directed: bool = False) -> Structure:
    nodes = np.arange(size)
    return Structure(("",) * size, np.column_stack([nodes, (nodes + 1) % size]), directed=directed)


def drawn_graph(size: int, edges: int, directed: bool, seed: int = 0) -> Structure:
    ends = np.random.default_rng(seed).integers(0, size, (edges, 2))
    return Structure(("",) * size, ends, directed=directed)


def star(size: int, out: bool = True) -> Structure:
    leaves = np.arange(1, size)
    ends = np.column_stack([np.zeros(size - 1, dtype=int), leaves])
    return Structure(("",) * size, ends if out else ends[:, ::-1])


@examples(60)
@given(drawn=LISTS)
def test_lengths_of_small_graphs(drawn: list[Structure]) -> None:
    check(drawn)


SIZES = (1, 3, 63, 64, 65, 100, 128, 129)
LARGE = (512, 513)


@pytest.fixture(params=[64, 512])
def wide(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether graphs of up to 512 nodes are searched by words of 64 targets, one after the other, or by blocks."""
    monkeypatch.setattr(distance_module, "_WIDE", request.param)


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("degree", [0, 1, 3])
def test_lengths_of_graphs_of_all_sizes(degree: int, directed: bool) -> None:
    """Words of 64 targets, and blocks of 8 words, are whole or not; pieces, loops and parallel edges are drawn too."""
    sizes = SIZES + (
        LARGE if (degree, directed) == (1, True) else LARGE[1:] if (degree, directed) == (3, False) else ()
    )
    check([drawn_graph(size, size * degree, directed, seed=size) for size in sizes])


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize(
    "size",
    only([63, 64, 65, 66, 127, 128, 129, 254, 255, 256, 257, 511, 514, 700], 64, 128, 255, 256, 511),
)
def test_lengths_that_eight_bits_do_not_hold(size: int) -> None:
    """A line and a ring with directions have lengths up to size - 1, a ring without up to half; others stay right."""
    line = Structure(("",) * size, ring(size).edges[:-1])
    check([ring(5), ring(size, directed=True), ring(size), line, star(70), drawn_graph(20, 15, directed=True)])


@pytest.mark.usefixtures("wide")
def test_hubs_have_more_neighbours_than_are_visited_one_by_one() -> None:
    hub = star(200)
    assert len(hub.edges) > bfs._SLOTS
    check([hub, star(300, out=False), Structure(("",) * 90, np.argwhere(np.triu(np.ones((90, 90)), 1)))])


def test_large_graphs_may_lie_together_or_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = [drawn_graph(size, size * 2, directed=False, seed=size) for size in (70, 90, 80, 130, 140, 70)]
    for room in (1, 100, 1 << 15):
        monkeypatch.setattr(bfs, "_ROOM", room)
        check(graphs)
    monkeypatch.setattr(bfs, "_LINES", 64 * 17)  # written some rows at a time
    check([*graphs, drawn_graph(600, 1800, directed=True)])


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_long_paths_are_handed_over(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the first search tells that paths are long, or only the search by bits itself."""
    late = np.column_stack([np.arange(1, 80), np.arange(80)[1:] - 1])  # from its first node, nothing is reached
    for module in (bfs, distance_module):
        monkeypatch.setattr(module, "STEPS", steps)
    check([ring(90), Structure(("",) * 80, late), drawn_graph(100, 200, directed=True), star(66)])


@pytest.mark.parametrize("rows", [1, 70, 1 << 13])
def test_small_graphs_are_searched_some_at_a_time(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all sizes from 1 to 64, few or many of each, and larger ones between them; graphs come in any order."""
    monkeypatch.setattr(bfs, "_AT_ONCE", rows)
    generator = np.random.default_rng(0)
    sizes = generator.permutation([*np.repeat(np.arange(1, 65), generator.integers(0, 3, 64)), 70, 130, 200]).tolist()
    check([drawn_graph(n, n, directed=bool(n % 3), seed=n) for n in sizes])


def test_graphs_that_grow_by_nodes_of_several_neighbours() -> None:
    """Trees and graphs with few cycles; a node may join two, three or more that were near each other or far apart."""
    generator, drawn = np.random.default_rng(0), list[Structure]()
    for n in [*generator.integers(1, 16, 300).tolist(), 64, 100, 126, 127, 128]:
        edges = generator.integers(0, n, (int(generator.integers(0, n + n // 2 + 1)), 2))
        drawn.append(Structure(("",) * n, edges, directed=False))
    check(drawn)


# --- the columns ---

BOTH: list[Encoding] = [Distance(), UndirectedDistance(), Distance(max_distance=2), UndirectedDistance(max_distance=1)]


def expected(encoding: Encoding, structure: Structure) -> NDArray[np.int64]:
    found = literal(structure, isinstance(encoding, Distance))
    limit = encoding.options()["max_distance"]
    nodes = np.where(np.isfinite(found), found if limit is None else found.clip(-limit, limit), UNREACHABLE)
    owner = structure.unit_owner
    places = np.arange(len(owner))
    offsets = places[None] - places[:, None]
    inside = (owner[:, None] == owner) & (offsets != 0)
    return np.where(inside, WITHIN + offsets, nodes[owner[:, None], owner]).astype(np.int64)


@pytest.mark.parametrize("encoding", BOTH, ids=repr)
@examples(40)
@given(drawn=LISTS)
def test_a_column_says_what_equation_31_says(encoding: Encoding, drawn: list[Structure]) -> None:
    quick = encoding.many(drawn)
    with slow():
        column = encoding.many(drawn)
    assert len(column) == len(drawn)
    assert quick.index.tobytes() == column.index.tobytes()
    assert quick.values.tolist() == column.values.tolist()
    for structure, each in zip(drawn, column, strict=True):
        np.testing.assert_array_equal(each.pairs(), expected(encoding, structure))


def test_edge_cases_by_hand() -> None:
    loops = Structure(("a", "b"), [[0, 0], [0, 1], [0, 1], [1, 1]])
    assert Distance().one(loops).pairs().tolist() == [[0, 1], [-1, 0]]
    alone = Structure(("a",), [[0, 0]])
    assert Distance().one(alone).pairs().tolist() == [[0]]
    apart = Structure(("a", "b"), NONE)
    assert Distance().one(apart).pairs().tolist() == [[0, UNREACHABLE], [UNREACHABLE, 0]]
    assert Distance().one(ring(3, directed=True)).pairs().tolist() == [[0, 1, -1], [-1, 0, 1], [1, -1, 0]]


def test_values_are_known_beforehand() -> None:
    """All from the least to the largest one, then what is no length: no search among pairs."""
    tree = Structure(("",) * 5, [[0, 2], [0, 1], [2, 3], [3, 4]])
    assert Distance().many([tree]).values.tolist() == [-3, -2, -1, 0, 1, 2, 3, UNREACHABLE]
    units = tree.with_units(list("abcdef"), [0, 1, 2, 3, 3, 4])
    both = UndirectedDistance().many([tree, units])
    assert both.values.tolist() == [0, 1, 2, 3, 4, WITHIN - 1, WITHIN + 1]
    assert both.index.dtype == np.uint8
    assert both[0].values is both[1].values


def test_plain_sequences_beside_graphs_keep_an_index_of_offsets() -> None:
    line, tree = path(("",) * 300), Structure(("",) * 3, [[0, 2], [0, 1]])
    column = Distance().many([tree, line, tree, path("ab"), path("a")])
    assert [each.index.shape for each in column] == [(3, 3), (599,), (3, 3), (3,), (1, 1)]
    np.testing.assert_array_equal(column[1].pairs(), Offset().one(line).pairs())
    for i in (0, 2):
        np.testing.assert_array_equal(column[i].pairs(), expected(Distance(), tree))
    assert Distance(max_distance=2).many([tree, line]).values.tolist() == [-2, -1, 0, 1, 2, UNREACHABLE]


def test_a_batch_of_short_sequences_of_a_column_has_their_values_only() -> None:
    from structpe.positions.batch import join

    encoding = Distance()
    column = encoding.many([path(("",) * 500), path("abc"), path("ab")])
    of_pairs = join({encoding: [column[1], column[2]]})[encoding]
    assert isinstance(of_pairs.index, Toeplitz)
    assert of_pairs.table.tolist() == [-2, -1, 0, 1, 2]
    assert of_pairs.dense()[0].tolist() == encode([path("abc")], [encoding])[encoding].dense()[0].tolist()


def test_all_pairs_of_a_huge_graph_are_refused_at_once() -> None:
    huge = ring(50_000)
    for encoding in (Distance(), UndirectedDistance()):
        with pytest.raises(
            EncodingError, match=r"for 50000 nodes 19 GiB of doubles; 20000 nodes at most\. Encode parts"
        ):
            encoding.many([path("ab"), huge])


# --- padded ---


@examples(60)
@given(
    drawn=st.lists(structures(), min_size=1, max_size=6), more=st.integers(0, 3), limit=st.sampled_from([None, 1, 2])
)
def test_padded_squares(drawn: list[Structure], more: int, limit: int | None) -> None:
    """An index that is written into padded squares has the pairs of that which is not, and zeros elsewhere."""
    for encoding in (UndirectedDistance(limit), Distance(limit)):
        flat, widths = encoding.many(drawn), np.array([each.unit_count + more for each in drawn])
        for way in (nullcontext(), slow()):
            with way:
                column = encoding.padded(drawn, widths)
            for each, other in zip(column, flat, strict=True):
                np.testing.assert_array_equal(each.pairs(), other.pairs())
            if column.widths is not None:
                assert column.index is not None
                np.testing.assert_array_equal(column.starts, starts_of(widths**2))
                inside = np.concatenate([np.pad(np.ones((n, n)), (0, more)).reshape(-1) for n in column.sizes])
                assert not column.index[inside == 0].any()


def test_padded_squares_of_long_paths() -> None:
    """Those whose lengths take more than eight bits, and those that are searched one by one, are padded too."""
    for drawn in (
        [ring(140), star(20)],
        [ring(520), ring(5)],
        [ring(500, directed=True), ring(511), drawn_graph(9, 3, False)],
    ):
        most = max(each.size for each in drawn)
        for way in (nullcontext(), slow()):
            with way:
                column = UndirectedDistance().padded(drawn, np.full(len(drawn), most))
            for each, structure in zip(column, drawn, strict=True):
                expected = by_scipy(structure, directed=False)
                np.testing.assert_array_equal(each.pairs(), np.where(np.isfinite(expected), expected, UNREACHABLE))


def test_a_batch_of_an_encoding_that_redefines_many() -> None:
    """It does not inherit the padded squares of the class from which it is derived."""

    class Doubled(UndirectedDistance):
        def many(self, structures: Sequence[Structure]) -> Column:
            column = super().many(structures)
            return replace(column, values=2 * column.values)

    drawn = [ring(4), ring(7)]
    assert encode(drawn, [Doubled()])[Doubled()].table.tolist() == [0, 2, 4, 6]
    assert encode(drawn, [UndirectedDistance()])["undirected-distance"].table.tolist() == [0, 1, 2, 3]
