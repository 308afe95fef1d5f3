"""Where nodes are drawn."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.formats.smiles import molecule
from structpe.pictures.drawing import depict
from structpe.pictures.layout import form_of, places_of
from structpe.pictures.plan import levels
from structpe.structure import Structure, path
from structpe.transforms import grid
from structpe.transforms.nodes import with_class_token
from tests.examples import examples
from tests.pictures.cases import FORMS, MEANING, PARSE, RING
from tests.strategies import structures, trees


@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_a_structure(form: str) -> None:
    assert form_of(FORMS[form]) == form


def test_forms_at_the_edges() -> None:
    assert form_of(path(["one"])) == "sequence"
    assert form_of(molecule("O")) == "molecule"
    assert form_of(grid((4,))) == "sequence"
    assert form_of(grid((2, 2, 2))) == "grid"
    assert form_of(replace(RING, nodes=tuple("CCCCC"))) == "graph", "no relation says that these are bonds"
    assert form_of(replace(PARSE, order=None)) == "hierarchy"
    assert form_of(replace(MEANING, directed=False)) == "graph"
    pieces = replace(MEANING, edges=MEANING.edges[:1], relations=("ARG0",))
    assert form_of(pieces) == "hierarchy", "few graphs of a corpus are in pieces"
    assert form_of(replace(pieces, root=None)) == "graph"
    fact = Structure(("a", "b"), np.array([(0, 1)]), ("birthPlace",), order=np.arange(2), root=0)
    assert form_of(fact) == "hierarchy", "its relation is to be seen"
    assert form_of(replace(fact, relations=("nsubj",))) == "tree"
    assert form_of(replace(fact, relations=())) == "sequence"


@given(structures())
@examples(60)
def test_no_two_nodes_are_at_one_place(structure: Structure) -> None:
    form = form_of(structure)
    places = places_of(structure, form)
    assert places.shape == (structure.size, 2)
    assert np.isfinite(places).all()
    for a, b in combinations(places, 2):
        assert np.abs(a - b).max() > 1e-3
    np.testing.assert_array_equal(places, places_of(structure, form))


def test_a_sequence_goes_on_in_the_next_line() -> None:
    places = places_of(path(["word"] * 60), "sequence")
    assert places[0, 1] == 0
    assert places[-1, 1] < 0
    assert places[:, 0].max() < 11
    for line in np.unique(places[:, 1]):
        assert (np.diff(places[places[:, 1] == line, 0]) > 0.3).all()


def test_a_grid_is_drawn_as_it_is() -> None:
    np.testing.assert_array_equal(places_of(grid((2, 3)), "grid"), [(x, -y) for y in range(2) for x in range(3)])
    frames = places_of(grid((2, 1, 2)), "grid")
    np.testing.assert_array_equal(frames, [(0, 0), (1, 0), (3, 0), (4, 0)])
    beside = places_of(with_class_token(grid((2, 2))), "grid")
    assert len(np.unique(beside, axis=0)) == 5


def test_a_hierarchy_leads_down_and_inverse_edges_up() -> None:
    places = places_of(MEANING, "hierarchy")
    np.testing.assert_array_equal(places[:, 1], [0, -1, -1, -2])


@given(trees(units=False))
@examples(60)
def test_arcs_do_not_lie_upon_each_other(tree: Structure) -> None:
    assert tree.order is not None
    spans = np.sort(tree.order[tree.edges].reshape(-1, 2), axis=1)
    arcs = list(zip(spans.tolist(), levels(spans).tolist(), strict=True))
    for ((a, b), one), ((c, d), other) in combinations(arcs, 2):
        if a < d and c < b:
            assert one != other
        if a <= c and d <= b:
            assert one > other
        if c <= a and b <= d:
            assert one < other


@given(
    st.sampled_from(["C", "CC", "c1ccccc1", "CC(=O)[O-]", "[NH4+]", "C1CC1.O", "N#N", "[Na+].[Cl-]", "C[Si](C)(C)C"])
)
def test_molecules_are_drawn_by_rdkit(smiles: str) -> None:
    structure = molecule(smiles)
    drawing = depict(structure)
    assert drawing.atoms.shape == (structure.size, 2)
    assert (drawing.atoms >= 0).all()
    assert (drawing.atoms <= drawing.size).all()
    for outline in drawing.outlines():
        assert len(outline.points) == len(outline.codes)
        assert outline.codes[0] == 1
    assert drawing.data_uri().startswith("data:image/svg+xml;base64,")
