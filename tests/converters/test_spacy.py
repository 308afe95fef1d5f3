"""spaCy: trees of sentences there and back, and Docs as users have them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.vocab import Vocab

from structpe import StructPEError, Structure, as_structure, as_structures, convert, path
from structpe.formats import read, stream, tree
from structpe.formats.spacy import sentences
from tests.datasets import SAMPLES, corpus
from tests.representatives import only
from tests.same import assert_same
from tests.strategies import trees

NLP = spacy.blank("en")
AFRIKAANS = "AF-AfriBooms/af_afribooms"


def parsed(words: str, heads: list[int], deps: list[str] | None = None, spaces: list[bool] | None = None) -> Doc:
    """A Doc of words apart by '|', with heads by place."""
    split = words.split("|")
    deps = deps or ["ROOT" if head == place else "dep" for place, head in enumerate(heads)]
    return Doc(NLP.vocab, words=split, spaces=spaces, heads=heads, deps=deps)


@given(trees(units=False, labels=True))
def test_there_and_back(structure: Structure) -> None:
    """The words come back in their order, as spaCy numbers them so."""
    reading = np.argsort(structure.order)
    place = np.argsort(reading)
    doc = convert(structure, "spacy")
    back = as_structure(doc)
    assert back.nodes == tuple(structure.nodes[node] for node in reading)
    assert back.root == place[structure.root]
    expected = {
        int(place[b]): (int(place[a]), structure.relation(k) or "dep") for k, (a, b) in enumerate(structure.edges)
    }
    assert {int(b): (int(a), back.relation(k)) for k, (a, b) in enumerate(back.edges)} == expected
    assert_same(back, as_structure(convert(back, "spacy")))


def test_a_word_of_whitespace_is_one_to_spacy() -> None:
    doc = convert(tree(["\r"], [0]), "spacy")
    assert doc[0].is_space
    assert not list(sentences(doc))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1), st.data())
def test_any_words_and_blanks_come_back(words: list[str], data: st.DataObject) -> None:
    spaces = data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
    heads = [0, *(data.draw(st.integers(0, i - 1)) + 1 for i in range(1, len(words)))]
    doc = convert(tree(words, heads), "spacy", spaces=spaces)
    assert [word.text for word in doc] == words
    assert [bool(word.whitespace_) for word in doc] == spaces
    for item in sentences(doc, whitespace=True):
        assert_same(item.structure, as_structure(doc, whitespace=True))
        for word, (start, end) in zip(item.structure.nodes, item.structure.features["span"], strict=True):
            assert item.metadata["text"][start:end] == word
    for item in sentences(doc):
        assert item.structure.is_tree()
        assert not any(word.isspace() for word in item.structure.nodes)


def test_a_doc_is_a_tree_for_each_sentence() -> None:
    doc = parsed("Mira|slept|.|The|dog|barked", [1, 1, 1, 4, 5, 5], ["nsubj", "ROOT", "punct", "det", "nsubj", "ROOT"])
    first, second = as_structures(doc)
    assert first.nodes == ("Mira", "slept", ".")
    assert first.edges.tolist() == [[1, 0], [1, 2]]
    assert first.relations == ("nsubj", "punct")
    assert (first.root, second.root) == (1, 2)
    assert second.nodes == ("The", "dog", "barked")
    assert second.features["span"].tolist() == [[0, 3], [4, 7], [8, 14]]
    items = list(sentences(doc))
    assert [(item.id, item.metadata["start"], item.metadata["text"]) for item in items] == [
        ("1", 0, "Mira slept ."),
        ("2", 13, "The dog barked"),
    ]
    whole = Doc.from_docs([convert(each, "spacy", vocab=doc.vocab) for each in (first, second)])
    assert [word.is_sent_start for word in whole] == [True, False, False, True, False, False]
    assert [word.head.i for word in whole] == [word.head.i for word in doc]
    assert [word.dep_ for word in whole] == [word.dep_ for word in doc]


def test_docs_without_a_vocabulary_can_be_joined() -> None:
    one, other = convert(path(["a", "b"]), "spacy"), convert(path(["c"]), "spacy")
    assert [word.text for word in Doc.from_docs([one, other])] == ["a", "b", "c"]


def test_a_span_is_the_sentences_in_it() -> None:
    doc = parsed("a|b|c|d|e", [1, 1, 1, 4, 4])
    assert [each.nodes for each in as_structures(doc[1:5])] == [("b", "c"), ("d", "e")]
    assert as_structure(doc[2:3]).nodes == ("c",)
    assert as_structures(doc[2:2]) == []
    with pytest.raises(
        StructPEError, match=r"^sentence 1: a tree has one root, this one has 2: tokens 1 \('a'\), 2 \('c'\)"
    ):
        as_structures(parsed("a|c|r", [2, 2, 2])[0:2])


def test_whitespace_is_no_word() -> None:
    doc = parsed("a|\n|b|c| |d", [2, 0, 2, 5, 3, 5], spaces=[True, False, True, False, False, False])
    assert [each.nodes for each in as_structures(doc)] == [("a", "b"), ("c", "d")]
    assert as_structures(doc)[0].edges.tolist() == [[1, 0]]
    assert as_structures(doc, whitespace=True)[0].nodes == ("a", "\n", "b")
    (item,) = sentences(parsed("a|\n\n|b", [0, 0, 1], spaces=[False, False, False]))
    assert item.structure.edges.tolist() == [[0, 1]]  # b hung on the line break, which hangs on a
    assert item.structure.features["span"].tolist() == [[0, 1], [3, 4]]
    assert item.metadata["space_after"] == (True, False)
    led = as_structure(parsed("\n|a|b", [0, 0, 0]))
    assert (led.root, led.edges.tolist()) == (0, [[0, 1]])
    assert as_structures(parsed("\n| ", [0, 0])) == []


def test_what_has_no_parse_is_refused() -> None:
    assert as_structures(NLP("")) == []
    for doc in (NLP("The dog barks"), NLP("Listen"), NLP("Listen")[0:1]):
        with pytest.raises(
            StructPEError, match=r"^the Doc has no dependency parse; make it with a pipeline that has a pa"
        ):
            as_structures(doc)
    with pytest.raises(StructPEError, match=r"^converter 'spacy' has no option named 'spaces'.* Known: whitespace"):
        as_structures(parsed("a", [0]), spaces=True)


def test_what_no_doc_can_be_made_of_is_refused() -> None:
    with pytest.raises(
        StructPEError, match=r"^node 1 has an empty label, and spaCy allows no empty word; give it a text"
    ):
        convert(path(["a", ""]), "spacy")
    with pytest.raises(
        StructPEError, match=r"^node 0 \('.ud800'\) has half of a character \(a surrogate\); correct its text"
    ):
        convert(path(["\ud800"]), "spacy")
    with pytest.raises(StructPEError, match=r"^1 tags for 2 nodes; give one per node"):
        convert(path(["a", "b"]), "spacy", tags=["X"])
    with pytest.raises(StructPEError, match="the edges are undirected; those of a Doc lead from head to dependent"):
        convert(Structure(("a", "b"), [[0, 1]], directed=False), "spacy")
    with pytest.raises(StructPEError, match="has two parents"):
        convert(Structure(("a", "b", "c"), [[0, 2], [1, 2]]), "spacy")


def test_tags_blanks_and_vocabularies_are_the_callers() -> None:
    vocab = Vocab()
    structure = tree(["dogs", "bark", "."], [2, 0, 2], ["nsubj", "root", "punct"])
    tags, pos = ["NNS", "VBP", "."], ["NOUN", "VERB", "PUNCT"]
    doc = convert(structure, "spacy", vocab=vocab, spaces=[True, False, False], tags=tags, pos=pos)
    assert doc.vocab is vocab
    assert doc.text == "dogs bark."
    (item,) = sentences(doc)
    assert (item.metadata["upos"], item.metadata["xpos"]) == (("NOUN", "VERB", "PUNCT"), ("NNS", "VBP", "."))
    assert item.metadata["space_after"] == (True, False, False)
    assert convert(as_structure(doc), "spacy").text == "dogs bark."  # what the spans say


def test_the_sample_comes_back() -> None:
    for item in read(SAMPLES / "trees_sample" / "sample.conllu"):
        doc = convert(item.structure, "spacy", spaces=item.metadata["space_after"])
        assert doc.text.strip() == item.metadata["text"]
        assert_same(as_structure(doc), item.structure, without=("name",))


@pytest.mark.parametrize("file", only(["CS-CLTT/cs_cltt", AFRIKAANS], AFRIKAANS))
def test_treebanks_come_back(file: str) -> None:
    crossing = False
    for item in itertools.islice(stream(corpus(f"ud/{file}-ud-dev.conllu")), 200):
        doc = convert(item.structure, "spacy", spaces=item.metadata["space_after"])
        assert_same(as_structure(doc), item.structure, without=("name", "features"))
        edges = item.structure.edges.tolist()
        crossing = crossing or any(_crosses(*pair) for pair in itertools.product(edges, edges))
    assert crossing


def _crosses(one: list[int], other: list[int]) -> bool:
    (a, b), (c, d) = sorted(one), sorted(other)
    return a < c < b < d
