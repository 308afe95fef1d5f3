"""Batches of graphs: every node, message and target where it belongs; padding is seen by nobody."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import is_dataclass, replace
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from structpe.attention import Layout
from structpe.data.batch import Batch, CSRAdjacency, EdgeIndex, Example, Grouping, collate, cut, padded
from structpe.encodings.base import UNREACHABLE
from structpe.encodings.compiled import at_once, slow
from structpe.encodings.distance import UndirectedDistance
from structpe.encodings.graphs import Graphs
from structpe.positions import Positions
from structpe.positions.batch import encode
from structpe.structure import Structure
from tests.together import together

SIZES = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=4), min_size=1, max_size=3)
DISTANCE = UndirectedDistance()


def example(size: int, number: int = 0, directed: bool = False, features: bool = True) -> Example:
    """A path whose nodes, edges and target tell which graph they are of."""
    edges = np.stack([np.arange(size - 1), np.arange(1, size)], axis=1)
    told = {"x": 100 * number + np.arange(size)[:, None], "edge_x": 1000 * number + np.arange(size - 1)[:, None]}
    structure = Structure(("",) * size, edges, directed=directed, root=size - 1, features=told if features else {})
    return Example.of(structure, {DISTANCE: DISTANCE.one(structure)}, np.array([float(number)]))


@pytest.mark.parametrize("kind", [Example, Layout, Batch])
def test_every_attribute_has_its_line(kind: type) -> None:
    told = re.findall(r"^ {4}(\w+(?:, \w+)*): ", inspect.getdoc(kind) or "", re.MULTILINE)
    assert [name for line in told for name in line.split(", ")] == list(inspect.signature(kind).parameters)


@given(SIZES)
def test_rows_put_nodes_into_their_places_and_flat_takes_them_out(sizes: list[list[int]]) -> None:
    layout = laid_out(sizes)
    count = sum(map(sum, sizes))
    x = torch.randn(count, 3, dtype=torch.float64, requires_grad=True)
    rows = layout.padded(x)
    first = 0
    for each, part in zip(sizes, rows, strict=True):
        assert part.shape == (len(each), max(each), 3)
        for size, row in zip(each, part, strict=True):
            assert torch.equal(row[:size], x[first : first + size])
            first += size
    assert torch.equal(layout.flat(rows), x)
    assert torch.autograd.gradcheck(lambda x: layout.flat([2 * row for row in layout.padded(x)]), x)


def laid_out(sizes: list[list[int]]) -> Layout:
    """The layout of buckets of structures of these sizes."""
    return Layout.of([size for each in sizes for size in each], np.cumsum([len(each) for each in sizes]).tolist())


@given(SIZES)
def test_a_part_of_a_layout_is_the_layout_of_its_buckets(sizes: list[list[int]]) -> None:
    layout = laid_out(sizes)
    for first in range(len(sizes)):
        part, alone = layout.part(first, len(sizes)), laid_out(sizes[first:])
        assert part.shapes == alone.shapes
        x = torch.randn(part.units, 2)
        assert all(torch.equal(a, b) for a, b in zip(part.padded(x), alone.padded(x), strict=True))
    assert layout.counts() == [sum(each) for each in sizes]
    assert layout.units == sum(map(sum, sizes))


def test_what_padding_holds_has_no_gradient() -> None:
    layout = laid_out([[1, 3], [4]])
    rows = [torch.randn(*shape, 2, requires_grad=True) for shape in layout.shapes]
    layout.flat(rows).sum().backward()
    padded, full = (row.grad for row in rows)
    assert padded[..., 0].tolist() == [[1, 0, 0], [1, 1, 1]]
    assert full.all()


def test_graphs_of_one_size_are_not_moved_at_all() -> None:
    layout = laid_out([[2, 2], [3]])
    assert layout.places is None
    assert layout.present == (None, None)
    x = torch.randn(7, 2)
    assert layout.padded(x)[0].data_ptr() == x.data_ptr()


def test_a_batch_holds_each_graph_smallest_first() -> None:
    batch = collate([example(3, 0), example(1, 1), example(2, 2)])
    assert batch.order.tolist() == [1, 2, 0]
    assert batch.sizes.tolist() == [1, 2, 3]
    assert batch.target.tolist() == [[1], [2], [0]]
    assert batch.graph.tolist() == [0, 1, 1, 2, 2, 2]
    assert batch.x[:, 0].tolist() == [100, 200, 201, 0, 1, 2]
    assert batch.roots.tolist() == [0, 2, 5]
    assert batch.adjacency.source.tolist() == [2, 1, 4, 3, 5, 4]
    assert batch.adjacency.target.tolist() == [1, 2, 3, 4, 4, 5]
    assert batch.edge_x[:, 0].tolist() == [2000, 2000, 0, 0, 1, 1]
    assert batch.reverse is None
    assert batch.target_mask is None


def test_messages_against_a_direction_are_told_apart_where_there_is_one() -> None:
    batch = collate([example(2, directed=True), example(2)])
    assert batch.reverse.tolist() == [True, False, False, False]  # to the source of the edge, then to its target


def test_without_features_there_are_none() -> None:
    batch = collate([example(2, features=False), example(1, features=False)])
    assert batch.x is None
    assert batch.edge_x is None


def test_of_counted_nodes_only_there_are_targets() -> None:
    def labelled(size: int, counted: list[bool]) -> Example:
        structure = Structure(("",) * size, [], directed=False)
        return Example.of(structure, {}, np.arange(size) + 10 * size, np.array(counted))

    batch = collate([labelled(3, [True, False, True]), labelled(2, [False, True])])
    assert batch.target.tolist() == [21, 30, 32]
    assert batch.target_mask.tolist() == [1, 2, 4]


@pytest.mark.parametrize(("grouping", "buckets", "asked"), [("buckets", 2, 2), ("together", 1, 1), ("separate", 2, 1)])
def test_positions_are_where_the_grouping_says(grouping: Grouping, buckets: int, asked: int) -> None:
    sizes = [2] * 3 + [60] * 3
    batch = collate([example(size) for size in sizes], grouping)
    assert len(batch.layout) == buckets
    assert len(batch.position_layout) == len(batch.positions) == asked
    assert (batch.layout is batch.position_layout) == (grouping != "separate")
    expected = encode([Structure(("",) * 2, [[0, 1]], directed=False)], [DISTANCE])[DISTANCE]
    index = batch.positions[0][DISTANCE].dense().expand(3, -1, -1)[:, :2, :2]
    assert index.shape == (3, 2, 2)
    assert all(torch.equal(each, expected.dense()[0]) for each in index)


def test_all_batches_of_one_bucket_have_the_same_form() -> None:
    """A compiled model is compiled once then; a mask says that nothing is padded."""
    unpadded, padded = (collate([example(size) for size in sizes], "together") for sizes in ([2, 2], [2, 3]))
    for batch, there in ((unpadded, [[True, True], [True, True]]), (padded, [[True, True, False], [True] * 3])):
        (present,) = batch.layout.present
        assert present.tolist() == batch.positions[0].present.tolist() == there
        assert batch.layout.places is not None
        assert batch.one_bucket is batch.layout
    x = torch.randn(4, 3)
    assert torch.equal(unpadded.layout.flat(unpadded.layout.padded(x)), x)
    assert collate([example(2), example(2)]).layout.present == (None,)


def test_texts_are_padded_in_the_order_of_the_batch() -> None:
    def read(size: int, text: list[int]) -> Example:
        return replace(example(size), target=np.array(text))

    batch = collate([read(3, [1, 5, 2]), read(1, [1, 2])], padding=0)
    assert batch.target.tolist() == [[1, 2, 0], [1, 5, 2]]
    assert collate([read(3, [1, 2]), replace(example(2), target=None)], padding=0).target is None


def test_units_of_a_node_have_its_features_and_edges() -> None:
    graph = Structure(("a", "b"), [[0, 1]], features={"x": np.array([[3], [4]])}).with_units(("a", "b", "c"), (0, 1, 1))
    batch = Batch.of([graph], [DISTANCE])
    assert batch.x.tolist() == [[3], [4], [4]]
    assert sorted(zip(batch.adjacency.source.tolist(), batch.adjacency.target.tolist(), strict=True)) == [
        *((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1))
    ]


def test_all_of_it_moves_to_another_device() -> None:
    batch = collate([example(3), example(1), example(60, directed=True)], "separate").to(torch.device("meta"))
    assert batch.x.is_meta
    assert batch.adjacency.source.is_meta
    assert batch.reverse.is_meta
    assert batch.layout.places.is_meta
    assert batch.positions[0].present.is_meta


# --- devices ---


def tensors(value: object) -> Iterator[torch.Tensor]:
    """All tensors in a batch and its parts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Positions):
        yield from (each for part in (*value.values(), value.present) for each in tensors(part))
    elif isinstance(value, tuple):
        yield from (each for part in value for each in tensors(part))
    elif isinstance(value, Batch) or is_dataclass(value):
        names = inspect.signature(type(value)).parameters
        yield from (each for name in names for each in tensors(getattr(value, name)))


def test_a_batch_moves_once_and_with_all_its_tensors() -> None:
    batch, there = collate([example(2), example(5, 1, directed=True), example(3, 2)]), torch.device("meta")
    assert batch.to(torch.device("cpu")) is batch
    moved = batch.to(there)
    assert moved is batch.to(there) is batch.to("meta")
    assert batch.to("cpu") is batch
    assert moved.position_layout is moved.layout
    own, theirs = list(tensors(batch)), list(tensors(moved))
    assert len(own) > 15
    assert [x.shape for x in own] == [x.shape for x in theirs]
    assert {x.device.type for x in own} == {"cpu"}
    assert {x.device.type for x in theirs} == {"meta"}


def test_all_tensors_are_pinned_and_none_but_those(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no pinned memory without a GPU: a copy stands for it."""
    monkeypatch.setattr(torch.Tensor, "pin_memory", torch.Tensor.clone)
    batch = collate([example(2), example(5, 1, directed=True), example(3, 2)])
    pinned = batch.pin_memory()
    pairs = list(zip(tensors(batch), tensors(pinned), strict=True))
    assert all(torch.equal(a, b) and a is not b for a, b in pairs)
    assert pinned.position_layout is pinned.layout
    assert pinned.layout.shapes == batch.layout.shapes


def test_a_gpu_gets_fewer_buckets_of_the_same_units() -> None:
    examples = [example(size, number) for number, size in enumerate([5, 300, 7, 250, 400, 6])]
    here, there = (collate(examples, device=device) for device in ("cpu", "cuda"))
    assert len(here.layout) == 4
    assert there.layout.shapes == ((6, 400),)
    assert here.layout.units == there.layout.units
    assert torch.equal(here.order, there.order)
    assert torch.equal(here.adjacency.source, there.adjacency.source)


@pytest.mark.parametrize("way", [at_once, slow])
def test_messages_are_those_of_a_loop(way: Callable[[], AbstractContextManager[None]]) -> None:
    """Self-loops, parallel edges, graphs without edges, both kinds of direction; compiled and by NumPy."""
    random = np.random.default_rng(0)
    for _ in range(30):
        graphs = [
            Structure(("",) * n, random.integers(0, n, (int(random.integers(0, 9)), 2)), directed=bool(n % 2))
            for n in random.integers(1, 6, 4).tolist()
        ]
        with way():
            made, edge, reverse = CSRAdjacency.of(Graphs.of(graphs))
            joined, against = CSRAdjacency.join(list(map(EdgeIndex.of, graphs)), [graph.size for graph in graphs])
        assert np.array_equal(against, reverse)
        expected, first, number = [], 0, 0
        for graph in graphs:
            for s, t in graph.edges.tolist():
                expected.append((t + first, s + first, 0, number, False))
                if graph.directed or s != t:
                    expected.append((s + first, t + first, 1, number, graph.directed))
                number += 1
            first += graph.size
        expected.sort(key=lambda each: each[:4])
        found = zip(made.target.tolist(), made.source.tolist(), edge.tolist(), reverse.tolist(), strict=True)
        assert [*found] == [(t, s, e, back) for t, s, _, e, back in expected]
        by_source = sorted(range(len(expected)), key=lambda i: expected[i][1])
        assert made.by_source.tolist() == by_source
        assert made.target_by_source.tolist() == [expected[i][0] for i in by_source]
        for starts, end in ((made.starts, 0), (made.source_starts, 1)):
            assert starts.tolist() == [sum(each[end] < i for each in expected) for i in range(first + 1)]
        for name, values in vars(made).items():
            assert values is None or torch.equal(values, getattr(joined, name))


@together("way", [at_once, slow])
@together("near", [3, 1000])
@together("table", ["of all", "of each"])
def test_pairs_of_all_buckets_are_those_of_networkx(
    table: str, near: int, way: Callable[[], AbstractContextManager[None]]
) -> None:
    """Of sizes from 1 to 300, with self-loops and in pieces, a plain sequence among them; few values and many."""
    random = np.random.default_rng(1)
    graphs = [Structure(("",) * 4, np.array([[0, 1], [1, 2], [2, 3]]), directed=False)]
    for n in (1, 2, 3, 130, 17, 300, 2, 131):
        drawn = [(int(random.integers(max(0, i - near), max(i, 1))), i) for i in range(n) if random.random() < 0.995]
        edges = [*drawn, (n - 1, n - 1)]
        graphs.append(Structure(("",) * n, np.array(edges).reshape(-1, 2), directed=False))
    with way():
        column = DISTANCE.many(graphs) if table == "of all" else list(map(DISTANCE.one, graphs))
        batch = collate([Example.of(g, {DISTANCE: column[i]}) for i, g in enumerate(graphs)])
    assert len(batch.positions) > 1
    assert (max(len(of[DISTANCE].table) for of in batch.positions) > 64) == (near == 3)
    order, place = batch.order.tolist(), 0
    for positions, (count, width) in zip(batch.positions, batch.position_layout.shapes, strict=True):
        lookup = positions[DISTANCE]
        assert tuple(lookup.index.shape) == (count, width, width)
        for row in range(count):
            graph, place = graphs[order[place]], place + 1
            rows = lookup.rows[row if len(lookup.rows) > 1 else 0]
            found = lookup.table[rows[lookup.index[row, : graph.size, : graph.size].long()]]
            plain = nx.Graph(graph.edges.tolist())
            plain.add_nodes_from(range(graph.size))
            expected = np.full((graph.size, graph.size), UNREACHABLE)
            for node, lengths in nx.all_pairs_shortest_path_length(plain):
                expected[node, list(lengths)] = list(lengths.values())
            assert np.array_equal(found.numpy(), expected)


@pytest.mark.parametrize("way", [at_once, slow])
def test_buckets_cost_least(way: Callable[[], AbstractContextManager[None]]) -> None:
    random = np.random.default_rng(0)
    for _ in range(40):
        sizes = sorted(random.integers(1, 9, int(random.integers(1, 9))).tolist())
        overhead = int(random.integers(0, 60))
        with way():
            ends = cut(sizes, overhead)

        def cost(ends: Sequence[int], sizes: list[int] = sizes, overhead: int = overhead) -> int:
            return padded(sizes, ends) + overhead * len(ends)

        inner = range(1, len(sizes))
        every = ([*cuts, len(sizes)] for count in range(len(sizes)) for cuts in combinations(inner, count))
        assert ends[-1] == len(sizes)
        assert cost(ends) == min(map(cost, every))
