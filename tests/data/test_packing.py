"""Packing many graphs into one row gives the numbers of one by one."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from structpe.data.edges import Edges, EdgeTypes
from structpe.data.encode import encode, join
from structpe.data.packing import fill, graphs_of, pack
from structpe.encodings.distance import Distance
from structpe.encodings.expander import Expander
from structpe.encodings.neighbours import Neighbours
from structpe.encodings.order import Order
from structpe.errors import EncodingError
from structpe.nn.encoder import Encoder
from structpe.nn.layers import LayerConfig
from structpe.positions import MODELS, Dims
from structpe.structure import path
from tests.strategies import trees

DIMS = Dims(16, 2, 2)


@pytest.mark.parametrize("name", ["t5", "exphormer"])
@settings(max_examples=20, deadline=None)
@given(graphs=st.lists(trees(most=8), min_size=2, max_size=4))
def test_one_row_of_many_graphs_equals_one_by_one(name: str, graphs: list) -> None:
    torch.manual_seed(0)
    types = EdgeTypes.fit(graphs)
    encoding = Distance() if name == "t5" else Expander(itself=True).fit(graphs)
    position = MODELS[name](DIMS, encoding=encoding) + MODELS["sinusoidal"](DIMS, encoding=Order())
    layers = LayerConfig(DIMS, 32, dropout=0.0, convolution="gine", edge_types=types.size)
    encoder = Encoder(layers, position).double().eval()
    units = [torch.randn(1, g.unit_count, 16, dtype=torch.float64) for g in graphs]
    sizes = [g.unit_count for g in graphs]
    packed = join({e: [pack(e.many(graphs))] for e in position.encodings})
    starts = torch.tensor([0, *sizes]).cumsum(0)
    each = [types.join([g], n) for g, n in zip(graphs, sizes, strict=True)]
    index = [torch.stack([e.near.source, e.near.target]) + start for e, start in zip(each, starts, strict=False)]
    edges = Edges.of(torch.cat(index, dim=1).numpy(), torch.cat([e.types for e in each]).numpy(), sum(sizes))
    numbers = graphs_of([sizes])
    together = encoder(torch.cat(units, dim=1), numbers >= 0, packed, edges, numbers)
    for graph, x, mine, got in zip(graphs, units, each, together.split(sizes, dim=1), strict=True):
        there = torch.ones(1, graph.unit_count, dtype=torch.bool)
        alone = encoder(x, there, encode([graph], position.encodings), mine)
        torch.testing.assert_close(got, alone, rtol=0, atol=1e-9)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=30))
def test_every_structure_has_a_place_and_no_row_overflows(sizes: list[int]) -> None:
    rows = fill(sizes, room=20)
    assert sorted(i for row in rows for i in row) == list(range(len(sizes)))
    assert all(sum(sizes[i] for i in row) <= 20 for row in rows)


def test_a_structure_larger_than_a_row_is_refused() -> None:
    with pytest.raises(EncodingError, match="a structure has 21 units, a row has room for 20; give more room"):
        fill([3, 21], room=20)


def test_what_cannot_be_packed() -> None:
    with pytest.raises(EncodingError, match="there is nothing to pack"):
        pack([])
    with pytest.raises(EncodingError, match="of units, of pairs and of listed pairs do not share a row"):
        pack([Order().one(path("ab")), Neighbours().one(path("ab"))])
    with pytest.raises(EncodingError, match="there is no row; give the sizes"):
        graphs_of([])
