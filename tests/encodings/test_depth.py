from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from structpe.encodings import Depth
from structpe.errors import EncodingError
from structpe.structure import Structure, path
from tests.examples import examples
from tests.strategies import digraphs, trees, undirected


@examples(50)
@given(structure=st.one_of(trees(units=False), digraphs(units=False), undirected(units=False)))
def test_it_is_the_distance_from_the_root_walked_both_ways(structure: Structure) -> None:
    assume(structure.root is not None)
    graph = networkx.Graph(structure.edges.tolist())
    graph.add_nodes_from(range(structure.size))
    lengths = networkx.single_source_shortest_path_length(graph, structure.root)
    if len(lengths) == structure.size:
        assert Depth().one(structure).values.tolist() == [lengths[i] for i in range(structure.size)]
    else:
        with pytest.raises(EncodingError, match="no path leads from the root"):
            Depth().one(structure)


def test_a_long_path_is_deep() -> None:
    assert Depth().one(path(["x"] * 3000)).values.tolist() == list(range(3000))


def test_without_a_root_it_says_what_to_do() -> None:
    with pytest.raises(
        EncodingError, match=r"^f:1: encoding 'depth': the structure has no root to count from; give St"
    ):
        Depth().one(Structure(("a",), np.zeros((0, 2), int), name="f:1"))


def test_the_node_that_is_not_reached_is_named() -> None:
    lost = Structure(("a", "b", "c"), [[0, 1]], root=0, name="g:2")
    expected = r"^g:2: encoding 'depth': no path leads from the root 0 \('a'\) to node 2 \('c'\); connect it, or choose"
    with pytest.raises(EncodingError, match=expected):
        Depth().many([path("abcd"), lost, path("ab")])


def test_of_no_structures_there_are_no_depths() -> None:
    assert list(Depth().many([])) == []
