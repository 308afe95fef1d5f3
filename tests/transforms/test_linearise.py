from __future__ import annotations

from collections import Counter

import numpy as np
import penman
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.errors import StructureError
from structpe.formats import read, tree, triples
from structpe.formats.amr import graph
from structpe.formats.smiles import molecule
from structpe.structure import Structure, path
from structpe.transforms import levi, linearise
from tests import strategies
from tests.datasets import corpus


def text(structure):
    return " ".join(linearise(structure).nodes)


def without_variables(branch, concepts, top=True):
    """The tokens of a PENMAN text as it stands, variables replaced by their concepts."""
    variable, content = branch
    tokens = [concepts[variable]]
    for role, target in content[1:]:
        nested = isinstance(target, tuple)
        tokens += [role, *(without_variables(target, concepts, False) if nested else [concepts.get(target, target)])]
    return tokens if top or len(content) == 1 else ["(", *tokens, ")"]


def mentions_early(tree):
    """Whether a variable stands in the text before it is introduced."""
    introduced: set[str] = set()
    variables = {variable for variable, _ in tree.nodes()}

    def early(branch):
        introduced.add(branch[0])
        return any(
            early(target) if isinstance(target, tuple) else target in variables - introduced
            for role, target in branch[1]
            if role != "/"
        )

    return early(tree.node)


def test_brackets_re_entrancies_and_inverse_roles():
    assert text(
        graph("""(w / want-01
        :ARG0 (b / boy :ARG1-of (k / know-01))
        :ARG1 (g / go-02 :ARG0 b :polarity -))""")
    ) == ("want-01 :ARG0 ( boy :ARG1-of know-01 ) :ARG1 ( go-02 :ARG0 boy :polarity - )")


def test_a_tree_reads_from_its_root():
    sentence = tree(["the", "dog", "barks", "."], [2, 3, 0, 3], ["det", "nsubj", "root", "punct"])
    assert text(sentence) == "barks nsubj ( dog det the ) punct ."


def test_parts_that_are_not_connected_follow_one_another():
    facts = triples([("a", "r", "b"), ("c", "s", "d"), ("b", "t", "a")])
    assert text(facts) == "( a r ( b t a ) ) ( c s d )"


def test_tokens_know_where_they_come_from():
    made = linearise(graph("(w / want-01 :ARG0 (b / boy :mod (s / small) :ARG0-of w))"))
    assert made.nodes == ("want-01", ":ARG0", "(", "boy", ":mod", "small", ":ARG0-of", "want-01", ")")
    assert made.features["origin"].tolist() == [0, -1, -1, 1, -1, 2, -1, 0, -1]
    assert made.features["is_relation"].tolist() == [False, True, False, False, True, False, True, False, False]
    assert made.edges.tolist() == path(made.nodes).edges.tolist()


@given(st.one_of(strategies.trees(units=False), strategies.digraphs(units=False)))
def test_every_node_and_edge_is_said(structure):
    if structure.order is None:
        with pytest.raises(StructureError, match=r"no reading order; give Structure\(order=\.\.\.\)"):
            linearise(structure)
        return
    made = linearise(structure)
    origins = [o for o in made.features["origin"].tolist() if o >= 0]
    assert set(origins) == set(range(structure.size))
    assert made.nodes.count("(") == made.nodes.count(")")
    said = [t.removesuffix("-of") for t, is_one in zip(made.nodes, made.features["is_relation"], strict=True) if is_one]
    assert Counter(said) == Counter(structure.relations)
    starts = len(origins) - len(structure.edges)
    assert 1 <= starts <= structure.size


def test_a_long_path_needs_no_recursion():
    assert linearise(path(["w"] * 5000)).size == 5000 + 2 * 4998


def test_a_molecule_has_no_reading_order():
    with pytest.raises(StructureError, match="x: the structure has no reading order"):
        linearise(molecule("CO", name="x"))


def test_units_come_after():
    structure = Structure(("a b",), [], order=[0], units=("a", "b"), owner=[0, 0], name="x")
    with pytest.raises(StructureError, match="x: the nodes are already split into units; linearise first, then split"):
        linearise(structure)


@pytest.mark.parametrize(
    ("file", "exact"),
    [
        pytest.param("little_prince/amr-bank-struct-v1.6.txt", 1463, marks=pytest.mark.slow),
        pytest.param("bio/amr-release-dev-bio.txt", 464, marks=pytest.mark.slow),
        pytest.param("massive/massive_amr.txt", 1680, marks=pytest.mark.slow),
        ("qald9/qald-9-amr-train.txt", 408),
    ],
)
def test_an_amr_is_its_text_without_variables(file, exact):
    """Where no variable stands before its introduction: there, its edge is read after the introduction."""
    source, checked = corpus(f"amr/{file}"), 0
    for item, parsed in zip(read(source, "amr"), penman.iterparse(source.read_text()), strict=True):
        if not mentions_early(parsed):
            concepts = {variable: dict(content[:1])["/"] for variable, content in parsed.nodes()}
            expected = [token.strip('"') for token in without_variables(parsed.node, concepts)]
            assert list(linearise(item.structure).nodes) == expected
            checked += 1
    assert checked == exact


@pytest.mark.parametrize(
    ("file", "least"),
    [("qald9/qald-9-amr-train.txt", 100), pytest.param("massive/massive_amr.txt", 1000, marks=pytest.mark.slow)],
)
def test_the_levi_graph_in_order_is_the_linearisation_without_brackets_and_repetitions(file, least):
    exact = 0
    for structure in read(corpus(f"amr/{file}"), "amr").structures:
        made, flat = levi(structure), linearise(structure)
        if len(structure.edges) == structure.size - 1:
            assert made.order is not None
            said = [made.nodes[i] for i in np.argsort(made.order)]
            flat_said = [t.removesuffix("-of") for t in flat.nodes if t not in "()"]
            assert [t.removesuffix("-of") for t in said] == flat_said
            exact += 1
    assert exact > least
