from __future__ import annotations

from collections import Counter
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from structpe.errors import StructureError
from structpe.formats import read, tree
from structpe.formats.amr import graph
from structpe.formats.smiles import molecule
from structpe.structure import Structure, path
from structpe.transforms import levi
from tests import strategies
from tests.datasets import SAMPLES, corpus

labelled = st.one_of(
    strategies.trees(units=False), strategies.digraphs(units=False), strategies.undirected(units=False)
)


def in_order(structure):
    return [structure.nodes[i] for i in np.argsort(structure.order)]


@given(labelled)
def test_edges_become_nodes(structure):
    assume(structure.relations or not len(structure.edges))
    made, n, e = levi(structure), structure.size, len(structure.edges)
    assert made.size == n + e
    assert len(made.edges) == 2 * e
    assert made.relations == ()
    assert made.nodes[:n] == structure.nodes
    assert made.nodes[n:] == structure.relations
    assert made.features["is_relation"].tolist() == [False] * n + [True] * e
    assert (made.directed, made.root, made.name) == (structure.directed, structure.root, structure.name)


@given(labelled)
def test_the_graph_comes_back(structure):
    assume(structure.relations or not len(structure.edges))
    made, n = levi(structure), structure.size
    back = [
        (source, target, made.nodes[middle])
        for middle in range(n, made.size)
        for source in (a for a, b in made.edges.tolist() if b == middle)
        for target in (b for a, b in made.edges.tolist() if a == middle)
    ]
    assert back == [(s, t, r) for (s, t), r in zip(structure.edges.tolist(), structure.relations, strict=True)]


@given(labelled)
def test_nodes_keep_their_order_and_relations_stand_between_what_they_relate(structure):
    assume(structure.relations or not len(structure.edges))
    made = levi(structure)
    if structure.order is None:
        assert made.order is None
        return
    kept = np.argsort(made.order)
    assert kept[kept < structure.size].tolist() == np.argsort(structure.order).tolist()


@given(strategies.trees(units=False))
def test_in_a_tree_each_relation_is_read_right_before_its_dependent(structure):
    assume(structure.relations or structure.size == 1)
    made = levi(structure)
    assert made.order is not None
    for edge, (_, dependent) in enumerate(structure.edges.tolist()):
        assert made.order[structure.size + edge] == made.order[dependent] - 1


@given(strategies.digraphs(units=False))
def test_distances_double(structure):
    assume(structure.relations)
    before = nx.MultiDiGraph(structure.edges.tolist())
    after = dict(nx.all_pairs_shortest_path_length(nx.DiGraph(levi(structure).edges.tolist())))
    for source, reached in nx.all_pairs_shortest_path_length(before):
        for target, length in reached.items():
            assert after[source][target] == 2 * length


def test_a_sentence_reads_with_its_relations():
    sentence = tree(["the", "dog", "barks"], [2, 3, 0], ["det", "nsubj", "root"])
    assert in_order(levi(sentence)) == ["det", "the", "nsubj", "dog", "barks"]


def test_an_amr_reads_like_its_text_and_names_a_re_entrant_node_once():
    structure = graph("""(w / want-01
        :ARG0 (b / boy :ARG1-of (k / know-01))
        :ARG1 (g / go-02 :ARG0 b :polarity -))""")
    assert " ".join(in_order(levi(structure))) == "want-01 :ARG0 boy :ARG1 know-01 :ARG1 go-02 :ARG0 :polarity -"


def test_features_of_nodes_and_edges_are_joined_and_others_left_out():
    structure = graph("(w / want-01~e.2 :ARG0~e.1 (b / boy~e.0))")
    made = levi(structure)
    assert made.features["alignment"].tolist() == [2, 0, 1]
    assert set(made.features) == {"alignment", "is_relation"}


def test_a_molecule_stays_without_order_and_direction():
    made = levi(molecule("C=O"))
    assert made.nodes == ("C", "O", "double")
    assert not made.directed
    assert made.order is None


def test_edges_without_relations_are_an_error():
    with pytest.raises(StructureError, match="x: the edges have no relations, which become nodes in a Levi graph"):
        levi(path(["a", "b"], name="x"))
    assert levi(path(["a"])).nodes == ("a",)


def test_units_come_after():
    structure = Structure(("a b",), [], units=("a", "b"), owner=[0, 0], name="x")
    with pytest.raises(StructureError, match="x: the nodes are already split into units; make the Levi graph first"):
        levi(structure)


@pytest.mark.parametrize("file", ["amr_sample/train.txt", "kg_sample/train.xml", "trees_sample/sample.conllu"])
def test_the_samples_have_levi_graphs(file):
    for structure in read(SAMPLES / file).structures:
        assert Counter(levi(structure).nodes) == Counter(structure.nodes + structure.relations)


def test_the_order_survives_a_relabelling_of_the_corpus():
    for structure in read(corpus("amr/little_prince/amr-bank-struct-v1.6-test.txt"), "amr").structures:
        shuffled = np.random.permutation(structure.size)
        nodes = tuple(structure.nodes[i] for i in np.argsort(shuffled))
        assert structure.order is not None
        moved = replace(
            structure,
            nodes=nodes,
            edges=shuffled[structure.edges],
            order=structure.order[np.argsort(shuffled)],
            root=int(shuffled[structure.root or 0]),
            features={},
        )
        assert in_order(levi(moved)) == in_order(levi(structure))
