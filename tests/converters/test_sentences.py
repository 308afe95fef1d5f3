"""Objects of the penman and conllu libraries, there and back."""

from __future__ import annotations

import conllu
import penman
import pytest
from hypothesis import given

import structpe
from structpe import StructPEError, Structure, as_structure, convert, path
from tests.datasets import SAMPLES
from tests.same import assert_same
from tests.strategies import trees


def test_graphs_of_penman() -> None:
    file = SAMPLES / "amr_sample" / "test.txt"
    for item, graph in zip(structpe.read(file), penman.load(file), strict=True):
        structure = as_structure(graph)
        assert_same(item.structure, structure, without=("name",))
        assert structure.name == item.id
        assert_same(structure, as_structure(convert(structure, "penman")), without=("name",))
    tree = penman.parse("(g / go-02 :ARG0 (b / boy))")
    assert as_structure(tree).nodes == ("go-02", "boy")


@given(trees(units=False))
def test_sentences_of_conllu(tree: Structure) -> None:
    sentence = convert(tree, "conllu")
    back = as_structure(sentence)
    assert back.is_tree()
    assert {tree.nodes[i] for i in range(tree.size)} == set(back.nodes)
    assert_same(back, as_structure(convert(back, "conllu")))


def test_sentences_of_files() -> None:
    file = SAMPLES / "trees_sample" / "sample.conllu"
    sentences = conllu.parse(file.read_text(encoding="utf-8"))
    for item, sentence in zip(structpe.read(file), sentences, strict=True):
        assert_same(item.structure, as_structure(sentence), without=("name", "features"))


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(StructPEError, match="penman cannot write the Graph: "):
        as_structure(penman.Graph([("a", ":instance", "x"), ("b", ":instance", "y")]))
    with pytest.raises(StructPEError, match="word 1 has id 2, form 'x' and head 0; ids count 1, 2, 3"):
        as_structure(conllu.TokenList([{"id": 2, "form": "x", "head": 0}]))
    with pytest.raises(StructPEError, match=r"token 2 has no id; ids count 1, 2, 3, \.\.\., and each word has one"):
        as_structure(conllu.TokenList([{"id": 1, "form": "x", "head": 0}, {"form": "y"}]))
    with pytest.raises(StructPEError, match="the sentence has no token"):
        as_structure(conllu.TokenList([]))
    with pytest.raises(StructPEError, match="two parents"):
        convert(Structure(("a", "b", "c"), [[0, 2], [1, 2]], order=[0, 1, 2]), "conllu")
    assert as_structure(convert(path(["a", "b"]), "conllu")).size == 2
