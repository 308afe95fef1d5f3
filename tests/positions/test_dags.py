"""Directed acyclic graphs: who can be reached and how deep, against networkx."""

from __future__ import annotations

from typing import Any

import networkx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from structpe.encodings.dags import Generation
from structpe.errors import PositionError
from structpe.positions import Dims, Site, build
from structpe.positions.batch import encode
from structpe.structure import Structure
from tests.examples import examples
from tests.strategies import digraphs, structures


def graph_of(structure: Structure) -> Any:
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(structure.size))
    graph.add_edges_from(structure.edges.tolist())
    if not structure.directed:
        graph.add_edges_from(structure.edges[:, ::-1].tolist())
    return graph


@examples(40)
@given(several=st.lists(structures(), min_size=1, max_size=4))
def test_generations_are_those_of_the_graph_whose_cycles_are_nodes(several: list[Structure]) -> None:
    for structure, encoded in zip(several, Generation().many(several), strict=True):
        whole = networkx.condensation(graph_of(structure))
        depth = {}
        for number, parts in enumerate(networkx.topological_generations(whole)):
            depth |= {node: number for part in parts for node in whole.nodes[part]["members"]}
        assert encoded.values.tolist() == [depth[node] for node in structure.unit_owner.tolist()]


@pytest.mark.parametrize("itself", [True, False])
@pytest.mark.parametrize("hops", [None, 1, 2])
@examples(15)
@given(structure=digraphs())
def test_units_attend_to_those_of_nodes_before_and_behind_them(
    structure: Structure, hops: int | None, itself: bool
) -> None:
    model = build({"name": "dagra", "hops": hops, "itself": itself}, Dims(8, 2, 1))
    (mask,) = model.terms(model.prepare(encode([structure], model.encodings)), Site(0)).mask
    lengths = dict(networkx.all_pairs_shortest_path_length(graph_of(structure)))
    for i, u in enumerate(structure.unit_owner.tolist()):
        for j, w in enumerate(structure.unit_owner.tolist()):
            ways = [lengths[a][b] for a, b in ((u, w), (w, u)) if b in lengths[a]]
            expected = itself if u == w else bool(ways) and min(ways) <= (hops or structure.size)
            assert bool(mask[0, 0, i, j]) == expected


def test_both_are_what_the_authors_add_to_a_transformer() -> None:
    dag = Structure(tuple("abcd"), [[0, 1], [0, 2], [1, 3], [2, 3]])
    model = build("dagra", Dims(8, 2, 1)) + build("dagpe", Dims(8, 2, 1))
    prepared = model.prepare(encode([dag], model.encodings))
    added = model.inputs(torch.zeros(1, 4, 8), prepared)
    assert torch.equal(added[0, 1], added[0, 2])
    assert not model.terms(prepared, Site(0)).mask[0][0, 0, 1, 2]


def test_an_encoding_that_does_not_know_paths_is_refused() -> None:
    with pytest.raises(PositionError, match="asks which pairs have no path; 'offset' does not tell, give an encoding"):
        build({"name": "dagra", "encoding": "offset"}, Dims(8, 2, 1))
