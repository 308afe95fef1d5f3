"""Where the subwords of a word stand: with it, below its first, or in a chain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from structpe.encodings import ENCODINGS
from structpe.encodings.base import WITHIN
from structpe.errors import StructPEError
from structpe.formats import tree
from structpe.structure import Structure
from structpe.transforms import expand
from tests.strategies import structures, trees

RULES = ("first", "chain")


def of(structure: Structure, name: str) -> np.ndarray:
    return np.asarray(ENCODINGS[name]().one(structure).values)


def sentence() -> Structure:
    """The keepers lit: keepers is three units."""
    structure = tree(["The", "keepers", "lit"], [2, 3, 0], ["det", "nsubj", "root"])
    return structure.with_units(["The", "keep", "##er", "##s", "lit"], [0, 1, 1, 1, 2])


def test_each_rule_by_hand() -> None:
    structure = sentence()
    assert expand(structure) is structure
    assert of(structure, "depth").tolist() == [2, 1, 1, 1, 0]
    first, chain = expand(structure, "first"), expand(structure, "chain")
    assert first.nodes == chain.nodes == ("The", "keep", "##er", "##s", "lit")
    assert of(first, "depth").tolist() == [2, 1, 2, 2, 0]
    assert of(chain, "depth").tolist() == [2, 1, 2, 3, 0]
    assert first.edges.tolist() == [[1, 0], [4, 1], [1, 2], [1, 3]]
    assert chain.edges.tolist() == [[1, 0], [4, 1], [1, 2], [2, 3]]
    assert chain.relations == ("det", "nsubj", "unit", "unit")
    within = ENCODINGS["spr-relative"]().one(chain).pairs()[1:4, 1:4]
    assert within.tolist() == [[0, -1, -2], [1, 0, -1], [2, 1, 0]]  # offsets, as eq. 31 has them


def test_all_is_equation_31_where_an_encoding_counts_offsets() -> None:
    distances = ENCODINGS["distance"]().one(sentence()).pairs()
    assert distances[1:4, 1:4].tolist() == [
        [0, WITHIN + 1, WITHIN + 2],
        [WITHIN - 1, 0, WITHIN + 1],
        [WITHIN - 2, WITHIN - 1, 0],
    ]


@pytest.mark.parametrize("rule", RULES)
@given(structure=trees())
def test_a_tree_stays_one_and_first_units_keep_their_places(rule: str, structure: Structure) -> None:
    made = expand(structure, rule)  # type: ignore[arg-type]
    assert made.is_tree()
    if structure.owner is None:
        assert made is structure
        return
    kept = sorted(set(structure.owner.tolist()))
    assert made.size == structure.unit_count
    assert sorted(made.order.tolist()) == list(range(made.size))
    if len(kept) < structure.size:
        return
    first = np.searchsorted(structure.owner, np.arange(structure.size))
    expected = np.where(structure.parents() < 0, -1, first[structure.parents()])
    assert made.parents()[first].tolist() == expected.tolist()
    assert (np.argsort(made.order[first]) == np.argsort(structure.order)).all()
    deeper = of(made, "depth") - of(structure, "depth")
    assert (deeper[first] >= 0).all()
    if rule == "first":
        assert set(np.delete(deeper, first).tolist()) <= {1}
        assert (deeper[first] == 0).all()
    else:
        assert (deeper == np.arange(made.size) - first[structure.owner]).all()


@pytest.mark.parametrize("rule", RULES)
@given(structure=structures())
def test_every_graph_can_be_expanded(rule: str, structure: Structure) -> None:
    if structure.owner is not None and len(set(structure.owner.tolist())) == structure.size:
        made = expand(structure, rule)  # type: ignore[arg-type]
        assert len(made.edges) == len(structure.edges) + made.size - structure.size


def test_a_word_without_a_unit_is_left_out() -> None:
    structure = tree(["a", "b", "c", "d"], [2, 3, 0, 3], ["x", "y", "root", "z"])
    made = expand(structure.with_units(["a", "c", "d"], [0, 2, 3]), "first")
    assert (made.nodes, made.edges.tolist(), made.relations) == (("a", "c", "d"), [[1, 0], [1, 2]], ("x", "z"))
    rootless = expand(structure.with_units(["a", "b", "d", "e"], [0, 1, 3, 3]), "chain")
    assert (rootless.root, rootless.parents().tolist()) == (1, [1, -1, 1, 2])
    graph = Structure(("a", "b", "c"), [[0, 2], [1, 2]]).with_units(["a", "b"], [0, 1])
    with pytest.raises(StructPEError, match="has two parents"):
        expand(graph, "first")


def test_features_go_with_their_words() -> None:
    structure = Structure(
        ("a", "b"), [[0, 1]], root=0, features={"x": np.array([[1.0], [2.0]]), "edge_y": np.array([3])}
    )
    made = expand(structure.with_units(["a", "b", "c"], [0, 1, 1]), "first")
    assert made.features["x"].tolist() == [[1.0], [2.0], [2.0]]
    assert made.features["edge_y"].tolist() == [3, 0]
    assert made.relations == ()


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(StructPEError, match=r"^the rule is 'last'; give 'all', 'first' or 'chain'"):
        expand(sentence(), "last")  # type: ignore[arg-type]
