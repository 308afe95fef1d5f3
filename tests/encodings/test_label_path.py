"""Paths of labels: against all shortest paths one by one, and by laws."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from structpe.encodings import ENCODINGS, Encoding, label_path_search
from structpe.encodings.compiled import slow
from structpe.encodings.distance import UndirectedDistance
from structpe.encodings.label_path import LabelPath, PathToken
from structpe.errors import EncodingError
from structpe.formats.amr import graph
from structpe.positions.batch import join
from structpe.structure import Structure, path
from tests.datasets import corpus
from tests.encodings.asking import unpadded
from tests.examples import examples
from tests.strategies import relabelled, structures
from tests.together import together

MANY = examples(50)
SELF, UNREACHABLE, TOO_LONG = (1,), (2,), (3,)


def all_shortest(structure: Structure, labels: tuple[str, ...], start: int) -> dict[int, list[tuple[int, ...]]]:
    """Every shortest walk from ``start``, edge by edge, as symbols: extends all walks of one length by all edges."""
    found, walks = {start: [()]}, [(start, ())]
    while walks:
        longer = []
        for (at, steps), (edge, (source, target)) in itertools.product(walks, enumerate(structure.edges.tolist())):
            name = structure.relation(edge)
            down = 4 + 2 * labels.index(name) if name in labels else 0
            up = down + 1 if structure.directed and name in labels else down
            for here, there, symbol in ((source, target, down), (target, source, up)):
                if here == at and there not in found:
                    longer.append((there, (*steps, symbol)))
        for at, steps in longer:
            found.setdefault(at, []).append(steps)
        walks = longer
    return {node: sorted(each) for node, each in found.items()}


def expected(structure: Structure, encoding: LabelPath, t: int, s: int) -> list[tuple[int, ...]]:
    """What units t and s must have, straight from the definition."""
    owner = structure.unit_owner
    if owner[t] == owner[s]:
        return [SELF]
    found = all_shortest(structure, encoding.labels, int(owner[t])).get(int(owner[s]))
    if found is None:
        return [UNREACHABLE]
    if encoding.max_length is not None and len(found[0]) > encoding.max_length:
        if encoding.longer == "symbol":
            return [TOO_LONG]
        return [steps[: encoding.max_length] for steps in found][: encoding.paths]
    return found[: encoding.paths]


def read(value: np.ndarray) -> list[tuple[int, ...]]:
    rows = value.reshape(-1, value.shape[-1])
    return [tuple(int(x) for x in row if x >= 0) for row in rows if row[0] >= 0]


@st.composite
def encodings(draw: st.DrawFn) -> LabelPath:
    limit, longer = draw(st.sampled_from([None, 1, 2, 4])), draw(st.sampled_from(["cut", "symbol"]))
    return LabelPath(max_length=limit, longer=longer, paths=draw(st.sampled_from([1, 2, 5])))


@MANY
@given(structures(most=7), encodings())
def test_it_is_what_listing_all_shortest_paths_says(structure: Structure, encoding: LabelPath) -> None:
    fitted = encoding.fit([structure])
    pairs = fitted.one(structure).pairs()
    for t, s in itertools.product(range(structure.unit_count), repeat=2):
        assert read(pairs[t, s]) == expected(structure, fitted, t, s), (t, s)


@MANY
@given(structures(most=8))
def test_the_set_of_label_sequences_is_that_of_networkx(structure: Structure) -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.MultiGraph()
    graph.add_nodes_from(range(structure.size))
    for edge, (source, target) in enumerate(structure.edges.tolist()):
        graph.add_edge(source, target, key=edge)
    encoding = LabelPath(paths=1000).fit([structure])
    encoded = encoding.one(Structure(structure.nodes, structure.edges, structure.relations, structure.directed)).pairs()
    for t, s in itertools.permutations(range(structure.size), 2):
        nodes = list(networkx.all_shortest_paths(graph, t, s)) if networkx.has_path(graph, t, s) else []
        steps = [[_steps(structure, encoding, a, b) for a, b in itertools.pairwise(each)] for each in nodes]
        walks = [walk for each in steps for walk in itertools.product(*each)]
        assert read(encoded[t, s]) == (sorted(walks) or [UNREACHABLE])


def _steps(structure: Structure, encoding: LabelPath, a: int, b: int) -> list[int]:
    down = {e: 4 + 2 * encoding.labels.index(structure.relation(e)) for e in range(len(structure.edges))}
    along = [down[e] for e, (x, y) in enumerate(structure.edges.tolist()) if (x, y) == (a, b)]
    against = [down[e] + structure.directed for e, (x, y) in enumerate(structure.edges.tolist()) if (x, y) == (b, a)]
    return along + against


@MANY
@given(structures(), encodings(), st.randoms(use_true_random=False))
def test_numbering_nodes_otherwise_changes_nothing(structure: Structure, encoding: LabelPath, random) -> None:
    number = np.array(random.sample(range(structure.size), structure.size))
    other, places = relabelled(structure, number)
    for each in (encoding.fit([structure]), PathToken(max_length=encoding.max_length).fit([structure])):
        here, there = each.one(structure).pairs(), each.one(other).pairs()
        assert np.array_equal(here[places][:, places], there)


@MANY
@given(st.lists(structures(most=6), min_size=1, max_size=4), encodings())
def test_many_at_once_are_as_one_by_one(batch: list[Structure], encoding: LabelPath) -> None:
    for each in (encoding.fit(batch), PathToken(max_length=encoding.max_length).fit(batch)):
        for joined, structure in zip(each.many(batch), batch, strict=True):
            assert np.array_equal(unpadded(joined.pairs()), unpadded(each.one(structure).pairs()))


@MANY
@given(structures(), encodings())
def test_values_are_distinct_and_all_in_use(structure: Structure, encoding: LabelPath) -> None:
    encoded = encoding.fit([structure]).one(structure)
    assert encoded.index is not None
    assert len(np.unique(encoded.values, axis=0)) == len(encoded.values)
    assert set(encoded.index.ravel().tolist()) == set(range(len(encoded.values)))


@MANY
@given(structures(), st.sampled_from([None, 2]))
def test_a_token_is_the_path_in_words(structure: Structure, limit: int | None) -> None:
    steps, tokens = (
        LabelPath(max_length=limit).fit([structure]),
        PathToken(max_length=limit, max_tokens=None).fit([structure]),
    )
    words = ["?", "self", "unreachable", *tokens.tokens]
    names = [f"{sign}:{label}" for label in steps.labels for sign in "-+"]
    values = steps.one(structure).pairs().reshape(structure.unit_count**2, -1)
    for value, token in zip(values, tokens.one(structure).pairs().ravel(), strict=True):
        whole = {SELF: "self", UNREACHABLE: "unreachable"}.get(read(value)[0])
        assert words[token] == (whole or " ".join(names[symbol - 4] for symbol in read(value)[0]))


@MANY
@given(st.lists(structures(most=8), min_size=1, max_size=5), encodings())
def test_with_numba_and_without_it_are_equal_byte_by_byte(batch: list[Structure], encoding: LabelPath) -> None:
    pytest.importorskip("numba")
    assert_same_by_both_ways(encoding.fit(batch), batch)
    assert_same_by_both_ways(PathToken(max_length=encoding.max_length).fit(batch), batch)


def assert_same_by_both_ways(encoding: Encoding, batch: list[Structure]) -> None:
    fast = encoding.many(batch)
    with slow():
        plain = encoding.many(batch)
    for mine, other in ((fast.values, plain.values), (fast.index, plain.index)):
        assert mine is not None
        assert other is not None
        assert mine.dtype == other.dtype
        assert np.array_equal(mine, other)


@pytest.mark.parametrize("together", [1, 700])
@pytest.mark.parametrize("encoding", [LabelPath(), LabelPath(max_length=2), LabelPath(max_length=2, longer="symbol")])
def test_nodes_that_are_searched_together_and_one_by_one(
    encoding: LabelPath, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More labels and more steps from one sequence than are sorted as they come."""
    generator, graphs = np.random.default_rng(0), []
    for size, count in ((60, 90), (1, 0), (70, 69), (40, 300)):
        relations = generator.choice(["a", "b", "c"], count).tolist()
        graphs.append(Structure(("x",) * size, generator.integers(0, size, (count, 2)), relations))
    fitted = encoding.fit(graphs)
    whole = fitted.many(graphs)
    monkeypatch.setattr(label_path_search, "_TOGETHER", together)
    parts = fitted.many(graphs)
    assert np.array_equal(whole.values, parts.values)
    assert np.array_equal(whole.index, parts.index)  # type: ignore[arg-type]
    assert_same_by_both_ways(fitted, graphs)


def test_a_path_graph_reads_as_steps_down_and_up() -> None:
    encoding = LabelPath(max_length=2).fit([path("abc")])
    assert encoding.labels == ("",)
    assert encoding.size == 6
    assert [read(v)[0] for v in encoding.one(path("abc")).pairs()[1]] == [(5,), SELF, (4,)]
    assert read(encoding.one(path("abcde")).pairs()[0, 4]) == [(4, 4)]


def test_labels_never_seen_are_unknown() -> None:
    seen = Structure(("a", "b", "c"), [(0, 1), (2, 1)], ("x", "y"))
    new = Structure(("a", "b", "c"), [(0, 1), (2, 1)], ("x", "z"))
    assert read(LabelPath().fit([seen]).one(new).pairs()[0, 2]) == [(4, 0)]
    tokens = PathToken().fit([seen])
    assert tokens.tokens == ("+:x", "+:y", "-:x", "-:x +:y", "-:y", "-:y +:x")
    assert tokens.one(new).pairs()[0].tolist() == [1, 3 + tokens.tokens.index("-:x"), 0]


def test_a_vocabulary_of_tokens_keeps_the_most_frequent() -> None:
    often, once = Structure(("a", "b"), [(0, 1)], ("x",)), Structure(("a", "b"), [(0, 1)], ("a",))
    assert PathToken(max_tokens=2).fit([often, often, once]).tokens == ("+:x", "-:x")
    assert PathToken(max_tokens=None).fit([often, often, once]).size == 7


def many_labels(nodes: int) -> Structure:
    """A drawn tree, nearly all of whose paths have labels of their own."""
    generator = np.random.default_rng(0)
    edges = [(int(generator.integers(node)), node) for node in range(1, nodes)]
    return Structure(("x",) * nodes, edges, tuple(f"r{edge}" for edge in range(nodes - 1)))


@pytest.mark.slow
def test_more_sequences_than_two_bytes_number() -> None:
    pytest.importorskip("numba")
    tree = many_labels(260)
    encoding = LabelPath().fit([tree])
    column = encoding.many([tree])
    assert column.values.shape[0] == 260 * 259 + 1
    assert column.index is not None
    assert (column.index.dtype, column.values.dtype) == (np.uint32, np.int16)


@pytest.mark.slow
def test_more_sequences_than_two_bytes_number_with_numba_and_without() -> None:
    pytest.importorskip("numba")
    tree = many_labels(300)
    assert_same_by_both_ways(LabelPath().fit([tree]), [tree, tree])


def test_a_batch_has_its_own_paths_of_a_large_column() -> None:
    """Whether the column has more paths than the batch has pairs, or fewer."""
    small = [Structure(("x",) * 3, [(0, 1), (1, 2)], ("r0", "r1")), Structure(("x", "y"), [(1, 0)], ("r9",))]
    for nodes in (60, 12):
        data = [many_labels(nodes), *small]
        encoding = LabelPath().fit(data)
        column = encoding.many(data)
        found = join({encoding: [column[1], column[2]]})[encoding]
        assert found.table.dtype == torch.int64
        for structure, index in zip(small, found.index, strict=True):
            n = structure.unit_count
            mine = found.table[found.rows[0][index[:n, :n].long()]].numpy()
            assert np.array_equal(unpadded(mine), unpadded(encoding.one(structure).pairs()))


@pytest.mark.parametrize("way", [nullcontext, slow])
def test_structures_share_their_sequences(way: Callable[[], AbstractContextManager[None]]) -> None:
    """Of many small graphs the same few paths come again and again."""
    with way():
        chain = Structure(("x",) * 4, [(0, 1), (1, 2), (2, 3)], ("a", "b", "a"), directed=False)
        column = LabelPath().fit([chain]).many([chain] * 300)
    assert column.values.tolist() == [[1, -1, -1], [4, -1, -1], [6, -1, -1], [4, 6, -1], [6, 4, -1], [4, 6, 4]]
    assert column.index is not None
    assert column.index.dtype == np.uint8
    assert (
        column.index.reshape(300, 4, 4)[[0, 299]].tolist()
        == [[[0, 1, 3, 5], [1, 0, 2, 4], [4, 2, 0, 1], [5, 3, 1, 0]]] * 2
    )


@together("way", [nullcontext, slow])
@together(
    "graph, pairs",
    [
        (Structure(("x",), []), [[[1]]]),
        (Structure(("x", "y"), [(0, 0), (1, 1)], ("a", "a")), [[[1], [2]], [[2], [1]]]),
        (Structure(("x", "y"), [(0, 1), (0, 1), (1, 0)], ("b", "c", "a")), [[[1], [5]], [[4], [1]]]),
        (
            Structure(("x", "y", "z"), [(0, 1), (1, 2), (2, 0)], ("a", "a", "a")),  # a directed cycle
            [[[1], [4], [5]], [[5], [1], [4]], [[4], [5], [1]]],
        ),
        (
            # two ways around a square: 0 -a- 1 -c- 2 and 0 -b- 3 -a- 2
            Structure(("x",) * 4, [(0, 1), (1, 2), (0, 3), (3, 2)], ("a", "c", "b", "a"), directed=False),
            [
                [[1, -1], [4, -1], [4, 8], [6, -1]],
                [[4, -1], [1, -1], [8, -1], [4, 6]],
                [[4, 6], [8, -1], [1, -1], [4, -1]],
                [[6, -1], [4, 8], [4, -1], [1, -1]],
            ],
        ),
    ],
)
def test_small_graphs(way: Callable[[], AbstractContextManager[None]], graph: Structure, pairs: list[Any]) -> None:
    with way():
        found = LabelPath(labels=("a", "b", "c")).one(graph)
    assert found.pairs().tolist() == pairs
    assert found.values.dtype == np.int8


def test_a_node_without_a_unit_is_walked_through_and_has_no_path() -> None:
    chain = Structure(("x", "y", "z"), [(0, 1), (1, 2)], ("a", "b")).with_units(["x", "z"], [0, 2])
    found = LabelPath().fit([chain]).one(chain)
    assert found.values.tolist() == [[1, -1], [4, 6], [7, 5]]
    assert found.index is not None
    assert found.index.tolist() == [[0, 1], [2, 0]]


def test_no_structure() -> None:
    assert len(LabelPath(labels=("a",)).many([])) == len(PathToken(tokens=("+:a",)).many([])) == 0


def test_what_has_no_edge_needs_no_label() -> None:
    lone = Structure(("a", "b"), np.zeros((0, 2), dtype=int))
    assert [read(v)[0] for v in LabelPath().one(lone).pairs()[0]] == [SELF, UNREACHABLE]
    assert PathToken().one(lone).pairs().tolist() == [[1, 2], [2, 1]]


@pytest.mark.parametrize("encoding", [LabelPath(), LabelPath(labels=()), PathToken()])
def test_an_encoding_that_was_not_fitted_says_so(encoding: LabelPath | PathToken) -> None:
    loops = Structure(("a", "b"), [(0, 0), (0, 1)], ("", "x"))
    with pytest.raises(EncodingError, match=r"knows no (label|path) yet; fit .*: encoding = encoding\.fit\("):
        encoding.many([Structure(("a",), []), loops])


@pytest.mark.parametrize("directed", [True, False])
def test_graphs_without_labels_need_no_fit(directed: bool) -> None:
    generator = np.random.default_rng(1)
    for nodes in (1, 2, 7, 12):
        graph = Structure(("x",) * nodes, generator.integers(nodes, size=(nodes, 2)), directed=directed)
        assert LabelPath().fit([graph]) == LabelPath()
        paths = LabelPath().one(graph).pairs()
        for query in range(nodes):
            walks = all_shortest(graph, ("",), query)
            smallest = {key: min(found) or SELF for key, found in walks.items()}
            assert [read(paths[query, key])[0] for key in range(nodes)] == [
                smallest.get(key, UNREACHABLE) for key in range(nodes)
            ]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"max_length": 0}, "max_length is 0; give 1 or more, or None"),
        ({"paths": 0}, "paths is 0; give 1 or more"),
        ({"longer": "no"}, "option 'longer' of encoding 'label-path' takes one of 'cut', 'symbol'; given is 'no'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict, text: str) -> None:
    with pytest.raises(EncodingError, match=text):
        LabelPath(**options)


def test_a_vocabulary_of_no_tokens_is_refused() -> None:
    with pytest.raises(EncodingError, match="max_tokens is 0; give 1 or more, or None for no limit"):
        PathToken(max_tokens=0)


@pytest.mark.parametrize("encoding", [LabelPath(max_length=3, paths=2), PathToken()])
def test_its_options_make_it_again(encoding: LabelPath | PathToken) -> None:
    fitted = encoding.fit([path("abc")])
    assert ENCODINGS[fitted.name](**fitted.options()) == fitted
    lists = {k: list(v) if isinstance(v, tuple) else v for k, v in fitted.options().items()}
    assert ENCODINGS[fitted.name](**lists) == fitted


def test_a_far_pair_of_a_wide_graph_has_no_more_paths_than_asked_for() -> None:
    # 2^20 shortest paths: they are never listed
    edges = [(2 * i + a, 2 * i + 2 + b) for i in range(20) for a in (0, 1) for b in (0, 1)]
    wide = Structure(tuple("x" * 42), edges, tuple("ab"[e % 2] for e in range(len(edges))))
    encoding = LabelPath(paths=4).fit([wide])
    assert encoding.one(wide).pairs()[0, 41].shape[0] == 4
    assert read(encoding.one(wide).pairs()[0, 40])[0] == (4,) * 20


def test_paths_of_real_graphs_are_as_long_as_their_distances() -> None:
    text = corpus("amr/little_prince/amr-bank-struct-v1.6-dev.rebuilt.txt").read_text(encoding="utf-8")
    graphs = [graph(block[block.index("\n(") :]) for block in text.split("\n\n") if "\n(" in block]
    assert len(graphs) > 100
    steps, distances = LabelPath().fit(graphs).many(graphs), UndirectedDistance().many(graphs)
    for mine, length, structure in zip(steps, distances, graphs, strict=True):
        far = (mine.pairs() >= 4).sum(-1)
        other = length.pairs()
        assert np.array_equal(far, np.where((other > 0) & (other < 1000), other, 0)), structure.name


def test_more_paths_than_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a deep tree with many labels nearly every path is one of its own."""
    monkeypatch.setattr(label_path_search, "_MOST", 60)
    long = Structure(tuple("abcdefghi"), [[i, i + 1] for i in range(8)], tuple("stuvwxyz"))
    with pytest.raises(
        EncodingError, match=r"the shortest paths have \d+ different sequences of labels, of up to \d s"
    ):
        LabelPath().fit([long]).one(long)
    assert LabelPath(max_length=1).fit([long]).one(long).values.shape == (17, 1)
