"""Distances to random sets of nodes, against networkx; and places among siblings."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.encodings.anchors import AnchorDistances
from structpe.encodings.trees import SiblingIndex
from structpe.errors import EncodingError
from structpe.structure import Structure, path
from tests.examples import examples
from tests.strategies import structures, trees


@examples(30)
@given(several=st.lists(structures(), min_size=1, max_size=3), sets=st.integers(1, 7), seed=st.integers(0, 2))
def test_they_are_the_nearest_of_each_set(several: list[Structure], sets: int, seed: int) -> None:
    """The nodes of a set are those that are nearest to it: their sizes halve, and each other node is as far as they."""
    encoding = AnchorDistances(sets, seed)
    for structure, encoded in zip(several, encoding.many(several), strict=True):
        graph = networkx.Graph(structure.edges.tolist())
        graph.add_nodes_from(range(structure.size))
        alone, owner = encoding.one(structure).values, structure.unit_owner.tolist()
        assert np.array_equal(encoded.values, alone)
        first = alone[[owner.index(node) for node in range(structure.size)]]
        for which in range(sets):
            anchors = set(np.flatnonzero(first[:, which] == 1).tolist())
            assert len(anchors) == max(1, structure.size // 2 ** (1 + which % max(1, int(np.log2(structure.size)))))
            steps = networkx.multi_source_dijkstra_path_length(graph, anchors)
            expected = [1 / (1 + steps[node]) if node in steps else 0 for node in owner]
            np.testing.assert_allclose(alone[:, which], expected, rtol=1e-6)


def test_another_seed_draws_other_sets() -> None:
    assert not np.array_equal(
        AnchorDistances().one(path("abcdefgh")).values, AnchorDistances(seed=1).one(path("abcdefgh")).values
    )
    with pytest.raises(EncodingError, match="the seed is -1; give 0 or more"):
        AnchorDistances(seed=-1)


@examples(20)
@given(tree=trees())
def test_siblings_are_numbered_in_reading_order(tree: Structure) -> None:
    children: dict[int, list[int]] = {}
    for source, target in tree.edges.tolist():
        children.setdefault(source, []).append(target)
    place = {tree.root: 0}
    for each in children.values():
        place |= {node: i for i, node in enumerate(sorted(each, key=lambda node: tree.order[node]))}
    assert SiblingIndex().one(tree).values.tolist() == [place[node] for node in tree.unit_owner.tolist()]
