"""Batches of graphs: every node, message and target where it belongs; padding is seen by nobody."""

from __future__ import annotations

import re
from dataclasses import fields

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from structpe.data.encode import encode
from structpe.data.graphs import Bucket, Buckets, GraphBatch, GraphExample, Layout, collate
from structpe.encodings.distance import UndirectedDistance
from structpe.structure import Structure

SIZES = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=4), min_size=1, max_size=3)
DISTANCE = UndirectedDistance()


def example(size: int, number: int = 0, directed: bool = False, features: bool = True) -> GraphExample:
    """A path whose nodes, edges and target tell which graph they are of."""
    edges = np.stack([np.arange(size - 1), np.arange(1, size)], axis=1)
    told = {"x": 100 * number + np.arange(size)[:, None], "edge_x": 1000 * number + np.arange(size - 1)[:, None]}
    structure = Structure(("",) * size, edges, directed=directed, root=size - 1, features=told if features else {})
    return GraphExample.of(structure, {DISTANCE: DISTANCE.one(structure)}, np.array([float(number)]))


@pytest.mark.parametrize("kind", [GraphExample, Bucket, Buckets, GraphBatch])
def test_every_attribute_has_its_line(kind: type) -> None:
    told = re.findall(r"^ {8}(\w+(?:, \w+)*): ", kind.__doc__ or "", re.MULTILINE)
    assert [name for line in told for name in line.split(", ")] == [field.name for field in fields(kind)]


@given(SIZES)
def test_rows_put_nodes_into_their_places_and_flat_takes_them_out(sizes: list[list[int]]) -> None:
    buckets = Buckets.of([Bucket.of(each, {}) for each in sizes])
    count = sum(map(sum, sizes))
    x = torch.randn(count, 3, dtype=torch.float64, requires_grad=True)
    rows = buckets.rows(x)
    first = 0
    for each, part in zip(sizes, rows, strict=True):
        assert part.shape == (len(each), max(each), 3)
        for size, row in zip(each, part, strict=True):
            assert torch.equal(row[:size], x[first : first + size])
            first += size
    assert torch.equal(buckets.flat(rows), x)
    assert torch.autograd.gradcheck(lambda x: buckets.flat([2 * row for row in buckets.rows(x)]), x)


def test_what_padding_holds_has_no_gradient() -> None:
    buckets = Buckets.of([Bucket.of([1, 3], {}), Bucket.of([4], {})])
    rows = [torch.randn(*bucket.shape, 2, requires_grad=True) for bucket in buckets]
    buckets.flat(rows).sum().backward()
    padded, full = (row.grad for row in rows)
    assert padded[..., 0].tolist() == [[1, 0, 0], [1, 1, 1]]
    assert full.all()


def test_graphs_of_one_size_are_not_moved_at_all() -> None:
    buckets = Buckets.of([Bucket.of([2, 2], {}), Bucket.of([3], {})])
    assert buckets.places is None
    assert [bucket.present for bucket in buckets] == [None, None]
    x = torch.randn(7, 2)
    assert buckets.rows(x)[0].data_ptr() == x.data_ptr()


def test_a_batch_holds_each_graph_smallest_first() -> None:
    batch = collate([example(3, 0), example(1, 1), example(2, 2)])
    assert batch.order.tolist() == [1, 2, 0]
    assert batch.sizes.tolist() == [1, 2, 3]
    assert batch.target.tolist() == [[1], [2], [0]]
    assert batch.graph.tolist() == [0, 1, 1, 2, 2, 2]
    assert batch.x[:, 0].tolist() == [100, 200, 201, 0, 1, 2]
    assert batch.roots.tolist() == [0, 2, 5]
    assert batch.near.source.tolist() == [2, 1, 4, 3, 5, 4]
    assert batch.near.target.tolist() == [1, 2, 3, 4, 4, 5]
    assert batch.edge_x[:, 0].tolist() == [2000, 2000, 0, 0, 1, 1]
    assert batch.against is None
    assert batch.counted is None


def test_messages_against_a_direction_are_told_apart_where_there_is_one() -> None:
    batch = collate([example(2, directed=True), example(2)])
    assert batch.against.tolist() == [True, False, False, False]  # to the source of the edge, then to its target


def test_without_features_there_are_none() -> None:
    batch = collate([example(2, features=False), example(1, features=False)])
    assert batch.x is None
    assert batch.edge_x is None


def test_of_counted_nodes_only_there_are_targets() -> None:
    def labelled(size: int, counted: list[bool]) -> GraphExample:
        structure = Structure(("",) * size, [], directed=False)
        return GraphExample.of(structure, {}, np.arange(size) + 10 * size, np.array(counted))

    batch = collate([labelled(3, [True, False, True]), labelled(2, [False, True])])
    assert batch.target.tolist() == [21, 30, 32]
    assert batch.counted.tolist() == [1, 2, 4]


@pytest.mark.parametrize(("layout", "buckets", "whole"), [("buckets", 1, None), ("one", 1, None), ("beside", 0, 1)])
def test_positions_are_where_the_layout_says(layout: Layout, buckets: int, whole: int | None) -> None:
    sizes = [2] * 3 + [60] * 3
    batch = collate([example(size) for size in sizes], layout)
    assert len(batch.buckets) == (1 if layout == "one" else 2)
    assert {len(bucket.positions) for bucket in batch.buckets} == {buckets}
    assert (None if batch.whole is None else len(batch.whole[0].positions)) == whole
    expected = encode([Structure(("",) * 2, [[0, 1]], directed=False)], [DISTANCE])[DISTANCE]
    if layout == "buckets":
        index = batch.buckets[0].positions[DISTANCE].index
        assert index.shape == (3, 2, 2)
        assert (index[0] == index[1]).all()
        assert (index[0] == expected.index[0]).all()


def test_all_of_it_moves_to_another_device() -> None:
    batch = collate([example(3), example(1), example(60, directed=True)], "beside").to(torch.device("meta"))
    assert batch.x.is_meta
    assert batch.near.source.is_meta
    assert batch.against.is_meta
    assert batch.buckets.places.is_meta
    assert batch.whole[0].present.is_meta
