"""Where nodes are drawn, and that edges cross no labels."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.formats import read
from structpe.formats.smiles import molecule
from structpe.pictures.drawing import Drawing, depict
from structpe.pictures.layout import form_of, places_of
from structpe.pictures.plan import levels
from structpe.pictures.style import look
from structpe.structure import Structure, path
from structpe.transforms import grid
from structpe.transforms.nodes import with_class_token
from tests.datasets import SAMPLES
from tests.examples import examples
from tests.pictures.cases import FORMS, MEANING, PARSE, RING
from tests.pictures.measuring import crossings
from tests.representatives import only
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


RANDOM = np.random.default_rng(0)


def tangled(size: int, more: int, form: str) -> Structure:
    """A graph of random edges; a rooted one; or a parse with arcs that cross."""
    heads = [int(RANDOM.integers(0, node)) for node in range(1, size)]
    number = RANDOM.permutation(size) if form == "tree" else np.arange(size)
    edges = [(number[head], number[node]) for node, head in enumerate(heads, 1)]
    edges += [(a, b) for a, b in RANDOM.integers(0, size, (more, 2)).tolist() if a != b or form == "graph"]
    words = tuple(f"{'word' * int(RANDOM.integers(1, 4))}{node}" for node in range(size))
    relations = tuple(("nsubj", "obl:with", "case", "advcl:relcl")[edge % 4] for edge in range(len(edges)))
    if form == "graph":
        return Structure(words, np.array(edges), relations)
    parse = {"order": np.arange(size), "features": {"is_empty": np.zeros(size, dtype=bool)}} if form == "tree" else {}
    return Structure(words, np.array(edges), relations, root=int(number[0]), **parse)


TANGLED = {
    f"{form} {size}": tangled(size, size, form) for form in ("tree", "hierarchy", "graph") for size in (3, 6, 12, 25)
}
SPREAD = {
    **FORMS,
    **TANGLED,
    "all joined": Structure(tuple("abcdefgh"), np.array(list(combinations(range(8), 2))), ("rel",) * 28),
    "star": Structure(tuple(f"satellite {i}" for i in range(16)), np.array([(0, i) for i in range(1, 16)])),
    "loops": Structure(tuple("abcde"), np.array([(0, 0), (0, 0), (0, 1), (1, 0), (3, 4)]), tuple("stuvw"), root=0),
    "cube": grid((2, 3, 2)),
    "class token": with_class_token(grid((3, 4))),
}  # fmt: skip


@pytest.mark.parametrize("name", only(SPREAD, *FORMS, *list(TANGLED)[::3], "class token"))
def test_no_edge_crosses_a_label(name: str) -> None:
    with look():
        assert not crossings(Drawing(SPREAD[name]))


@pytest.mark.parametrize("file", ["amr_sample/test.txt", "kg_sample/test.xml", "trees_sample/sample.conllu"])
def test_no_edge_of_a_sample_crosses_a_label(file: str) -> None:
    reader = {".xml": "webnlg", ".txt": "amr"}.get(Path(file).suffix)
    with look():
        for item in read(SAMPLES / file, reader)[:12]:
            assert not crossings(Drawing(item.structure)), item.id


@given(structures())
@examples(25)
def test_no_edge_of_any_structure_crosses_a_label(structure: Structure) -> None:
    with look():
        assert not crossings(Drawing(structure))
