"""Graph language models: triples as texts, unit by unit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from structpe.encodings import UNREACHABLE, Distance, Offset, TripleOffset
from structpe.errors import PositionError
from structpe.positions import MODELS, Dims, Site
from structpe.positions.batch import encode
from structpe.positions.buckets import bucket
from structpe.structure import Structure, path
from structpe.transforms import levi, with_virtual_node
from tests.positions.cases import made

WORDS = {"black poodle": 3, "dog": 1, "is a": 2, "animal": 2, "cat": 1, "likes": 1}
TRIPLES = [("black poodle", "is a", "dog"), ("dog", "is a", "animal"), ("cat", "likes", "dog"), ("cat", "is a", "dog")]


def graph(triples: list[tuple[str, str, str]] = TRIPLES) -> Structure:
    """The Levi graph of triples, each node split into as many units as its words say."""
    nodes = sorted({end for head, _, tail in triples for end in (head, tail)})
    edges = [(nodes.index(head), nodes.index(tail)) for head, _, tail in triples]
    made = levi(Structure(tuple(nodes), edges, tuple(relation for _, relation, _ in triples)))
    owner = [node for node, label in enumerate(made.nodes) for _ in range(WORDS[label])]
    return made.with_units([f"{made.nodes[node]}" for node in owner], owner)


def by_the_paper(triples: list[tuple[str, str, str]], structure: Structure) -> np.ndarray:
    """Write out each triple as a text, and read off how far its units are apart."""
    units = len(structure.unit_owner)
    where = [np.flatnonzero(structure.unit_owner == node).tolist() for node in range(structure.size)]
    found = np.full((units, units), UNREACHABLE)
    for node in where:
        for a in range(len(node)):
            for b in range(len(node)):
                found[node[a], node[b]] = b - a
    concepts = structure.size - len(triples)
    for number, (head, _, tail) in enumerate(triples):
        text = where[structure.nodes.index(head)] + where[concepts + number] + where[structure.nodes.index(tail)]
        for a, first in enumerate(text):
            for b, second in enumerate(text):
                found[first, second] = b - a
    return found


def test_offsets_are_those_of_the_texts_of_triples() -> None:
    structure = graph()
    pairs = TripleOffset().one(structure).pairs()
    np.testing.assert_array_equal(pairs, by_the_paper(TRIPLES, structure))
    assert (pairs == UNREACHABLE).any()
    inside = pairs != UNREACHABLE
    np.testing.assert_array_equal(pairs[inside], -pairs.T[inside])


def test_the_relation_of_each_triple_has_its_own_units() -> None:
    structure = graph()
    labels = [structure.nodes[node] for node in structure.unit_owner]
    assert labels.count("is a") == 3 * WORDS["is a"]
    pairs = TripleOffset().one(structure).pairs()
    owner = structure.unit_owner
    first, second = (owner == structure.size - 4), (owner == structure.size - 3)  # poodle is a dog, dog is an animal
    assert (pairs[first][:, second] == UNREACHABLE).all()


def test_the_last_of_two_triples_decides_between_head_and_tail() -> None:
    structure = graph()
    owner = [structure.nodes[node] for node in structure.unit_owner]
    pairs = TripleOffset().one(structure).pairs()
    assert pairs[owner.index("cat"), owner.index("dog")] == 3
    turned = graph([*TRIPLES[:2], TRIPLES[3], TRIPLES[2]])
    owner = [turned.nodes[node] for node in turned.unit_owner]
    assert TripleOffset().one(turned).pairs()[owner.index("cat"), owner.index("dog")] == 2


def test_a_node_that_is_head_and_tail_keeps_its_own_offsets() -> None:
    pairs = TripleOffset().one(graph([("animal", "likes", "animal")])).pairs()
    assert pairs[:2, :2].tolist() == [[0, 1], [-1, 0]]


def test_without_relations_as_nodes_an_edge_is_a_text_of_two() -> None:
    line = path("abc").with_units("aabc", [0, 0, 1, 2])
    expected = [[0, 1, 2, UNREACHABLE], [-1, 0, 1, UNREACHABLE], [-2, -1, 0, 1], [UNREACHABLE, UNREACHABLE, -1, 0]]
    assert TripleOffset().one(line).pairs().tolist() == expected


@pytest.mark.parametrize("name", ["glm-local", "glm-global"])
def test_what_is_added_and_what_is_masked(name: str) -> None:
    structure = graph()
    model = made(name)
    terms = model.terms(model.prepare(encode([structure], model.encodings)), Site(1))
    (bias,) = terms.bias
    r = torch.from_numpy(by_the_paper(TRIPLES, structure))
    none = r == UNREACHABLE
    table = model.table.weight[0]
    expected = table[bucket(r.where(~none, 0), 32, 128, True)]
    if name == "glm-local":
        assert table.shape == (32, 2)
        assert torch.equal(terms.mask[0][0, 0], ~none)
        torch.testing.assert_close(bias.dense()[0][~none], expected[~none], rtol=0, atol=0)
    else:
        assert table.shape == (33, 2)
        assert not terms.mask
        torch.testing.assert_close(bias.dense()[0], expected.where(~none[..., None], table[32]), rtol=0, atol=0)


def test_the_extra_bucket_starts_as_the_one_for_infinity() -> None:
    table = MODELS["glm-global"](Dims(8, 2, 2)).table.weight
    assert torch.equal(table[:, 32], table[:, 31])
    assert bucket(torch.tensor([10**6]), 32, 128, True).item() == 31


@pytest.mark.parametrize("name", ["glm-local", "glm-global"])
def test_an_end_mark_is_infinitely_far_behind_everything(name: str) -> None:
    structure = with_virtual_node(graph(), "</s>")
    model = made(name)
    terms = model.terms(model.prepare(encode([structure], model.encodings)), Site(0))
    bias, table = terms.bias[0].dense()[0], model.table.weight[0]
    assert torch.equal(bias[1:, 0], table[31].expand_as(bias[1:, 0]))
    assert torch.equal(bias[0, 1:], table[15].expand_as(bias[0, 1:]))
    assert torch.equal(bias[0, 0], table[0])
    if name == "glm-local":
        assert terms.mask[0][..., 0].all()
        assert terms.mask[0][:, :, 0].all()


def test_on_a_sentence_of_one_triple_it_is_t5() -> None:
    """The graph of a single triple is its text, whose order the sequence has too."""
    triple = graph([("black poodle", "is a", "animal")])
    where = {"black poodle": 0, "is a": 1, "animal": 2}
    order = np.array([where[label] for label in triple.nodes])
    model, t5 = made("glm-local"), made("t5")
    t5.load_state_dict(model.state_dict())
    for other in (model, t5):
        terms = other.terms(other.prepare(encode([replace(triple, order=order)], other.encodings)), Site(0))
        found = terms.bias[0].dense()
        if other is model:
            mine = found
            assert terms.mask[0].all()
    assert torch.equal(mine, found)


def test_other_encodings_of_pairs_do_too() -> None:
    """Distances have rows for units of one node, which follow the buckets."""
    model = made("glm-local", encoding=Distance())
    assert len(model.table.weight[0]) == 32 + 17
    structure = Structure(("a", "b", "c"), [[0, 1]]).with_units("aabc", [0, 0, 1, 2])
    prepared = model.prepare(encode([structure], model.encodings))
    assert prepared.mask[0, 0].tolist() == [[True] * 3 + [False]] * 3 + [[False] * 3 + [True]]
    rows = prepared.rows.dense()[0]
    assert rows[0, 1] == 32 + 9
    assert rows[1, 0] == 32 + 7
    assert rows[0, 2] == 17
    with pytest.raises(PositionError, match="given are 7 buckets and max_distance 128"):
        MODELS["glm-local"](Dims(8, 2, 1), encoding=Offset(), num_buckets=7)
