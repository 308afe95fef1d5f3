"""Edges among units: every unit of a node has the node's edges, both ways, and neighbours in a node are linked."""

from __future__ import annotations

from hypothesis import given

from structpe.data.batch import Batch, EdgeTypes
from structpe.structure import Structure
from tests.examples import examples
from tests.strategies import structures


def literal(types: EdgeTypes, structure: Structure) -> list[tuple[int, int, int]]:
    """(source, target, label) by loops over units."""
    found = []
    owner = structure.unit_owner.tolist()
    for e, (s, t) in enumerate(structure.edges.tolist()):
        relation = structure.relation(e)
        label = 2 * (types.relations.index(relation) if relation in types.relations else len(types.relations))
        for i, mine in enumerate(owner):
            for j, other in enumerate(owner):
                if mine == s and other == t:
                    found += [(i, j, label), (j, i, label + 1)]
    for i in range(len(owner) - 1):
        if owner[i] == owner[i + 1]:
            found += [(i, i + 1, types.size - 2), (i + 1, i, types.size - 1)]
    return sorted(found)


@examples(50)
@given(structures())
def test_edges_among_units_are_those_of_the_loops(structure: Structure) -> None:
    types = EdgeTypes(("obj", ":ARG0"))
    index, labels = types.of(structure)
    assert sorted(zip(*index.tolist(), labels.tolist(), strict=True)) == literal(types, structure)


def test_labels_not_seen_in_training_have_a_number_of_their_own() -> None:
    seen = Structure(("a", "b"), [[0, 1]], ("x",))
    new = Structure(("a", "b"), [[0, 1]], ("y",))
    types = EdgeTypes.fit([seen])
    assert types.of(seen)[1].tolist() == [0, 1]
    assert types.of(new)[1].tolist() == [2, 3]
    assert types.size == 6


def test_a_batch_numbers_the_units_of_each_graph_on() -> None:
    graph = Structure(("a", "b"), [[0, 1]], ("x",))
    batch = Batch.of([graph, graph], edge_types=EdgeTypes.fit([graph]))
    assert batch.adjacency.source.tolist() == [1, 0, 3, 2]
    assert batch.adjacency.target.tolist() == [0, 1, 2, 3]
    assert batch.edge_x is not None
    assert batch.edge_x.tolist() == [[1], [0], [1], [0]]
    assert batch.adjacency.count == 4
