"""Overlaps of neighbourhoods, by sets of nodes."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.encodings import HopOverlap
from structpe.errors import EncodingError
from structpe.structure import Structure, path
from tests.examples import examples
from tests.strategies import structures


@examples(30)
@given(drawn=st.lists(structures(), min_size=1, max_size=3))
def test_nodes_that_are_near_both(drawn: list[Structure]) -> None:
    for structure, encoded in zip(drawn, HopOverlap(hops=2).many(drawn), strict=True):
        graph = nx.Graph(structure.edges.tolist())
        graph.add_nodes_from(range(structure.size))
        near = [[set(nx.single_source_shortest_path_length(graph, v, k)) for k in (1, 2)] for v in structure.unit_owner]
        expected = [[[len(k & el) for k in t for el in s] for s in near] for t in near]
        np.testing.assert_array_equal(encoded.pairs(), expected)


def test_parts_that_do_not_meet_have_zeros() -> None:
    pairs = HopOverlap(hops=1).one(Structure(("x",) * 4, [[0, 1], [2, 3]])).pairs()[..., 0]
    assert pairs.tolist() == [[2, 2, 0, 0], [2, 2, 0, 0], [0, 0, 2, 2], [0, 0, 2, 2]]


def test_what_takes_too_much_memory() -> None:
    with pytest.raises(
        EncodingError, match="takes a matrix with 9 numbers for each pair of nodes, for 6700 nodes 3 GiB"
    ):
        HopOverlap().one(path([""] * 6700))
    with pytest.raises(EncodingError, match="hops is 0; give 1 or more"):
        HopOverlap(hops=0)
