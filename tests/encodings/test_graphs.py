"""Concatenated graphs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from structpe.encodings import WITHIN
from structpe.encodings import graphs as graphs_module
from structpe.encodings.graphs import Graphs
from structpe.structure import Structure
from tests.examples import examples
from tests.strategies import structures

LISTS = st.lists(structures(), max_size=5)


@examples(50)
@given(drawn=LISTS)
def test_each_structure_is_a_part(drawn: list[Structure]) -> None:
    graphs = Graphs.of(drawn)
    assert len(graphs.sizes) == len(graphs.directed) == len(graphs.units) == len(drawn)
    owner = np.arange(graphs.start[-1]) if graphs.owner is None else graphs.owner
    for i, structure in enumerate(drawn):
        first, units = graphs.start[i], slice(graphs.unit_start[i], graphs.unit_start[i + 1])
        assert (graphs.sizes[i], graphs.directed[i]) == (structure.size, structure.directed)
        edges = graphs.edges[graphs.edge_start[i] : graphs.edge_start[i + 1]]
        np.testing.assert_array_equal(edges - first, structure.edges)
        np.testing.assert_array_equal(owner[units] - first, structure.unit_owner)
        np.testing.assert_array_equal(graphs.graph[first : first + structure.size], i)


def within(structure: Structure, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """From pairs of nodes to pairs of units: two units of one node have ``WITHIN + k``."""
    owner, places = structure.unit_owner, np.arange(structure.unit_count)
    offset = places[None, :] - places[:, None]
    same = (owner[:, None] == owner[None, :]) & (offset != 0)
    return np.where(same, WITHIN + offset, nodes[owner[:, None], owner[None, :]])


@examples(50)
@given(drawn=LISTS, cells=st.sampled_from([1, 7, 1 << 20]))
def test_pairs_of_units_are_those_of_their_nodes(drawn: list[Structure], cells: int) -> None:
    graphs, usual = Graphs.of(drawn), graphs_module._CELLS
    pairs = np.random.default_rng(0).integers(0, 1000, graphs.pair_start[-1])
    graphs_module._CELLS = cells
    try:
        found = graphs.pairs_of_units(pairs)
    finally:
        graphs_module._CELLS = usual
    places, offsets = graphs.inside()
    found = found.copy()
    found[places] = WITHIN + offsets
    bounds = zip(drawn, graphs.pair_start, strict=False)
    expected = [within(s, pairs[a : a + s.size**2].reshape(s.size, s.size)).reshape(-1) for s, a in bounds]
    np.testing.assert_array_equal(found, np.concatenate([*expected, np.zeros(0, dtype=np.int64)]))


def test_values_of_units_are_those_of_their_nodes() -> None:
    one = Structure(("a", "b"), np.zeros((0, 2)).astype(int))
    graphs = Graphs.of([one, one.with_units(["x", "y", "z"], [0, 1, 1])])
    np.testing.assert_array_equal(graphs.of_units(np.array([5, 6, 7, 8])), [5, 6, 7, 8, 8])
