"""The component of spaCy's pipelines."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin

import structpe
from structpe.encodings import BranchPath, Depth, Distance, SPRRelative
from structpe.errors import EncodingError, PositionError
from structpe.formats.converting import ConversionError
from structpe.parsing.component import TreePositions

WORDS = ["Mira", "lit", "the", "lamp", ".", "\n", "She", "slept", "."]
HEADS = [1, 1, 3, 1, 1, 1, 7, 7, 7]


@pytest.fixture(scope="module")
def nlp() -> Language:
    return spacy.blank("en")


@pytest.fixture
def doc(nlp: Language) -> Doc:
    starts = [i in (0, 6) for i in range(9)]
    return Doc(nlp.vocab, words=WORDS, heads=HEADS, deps=["dep"] * 9, sent_starts=starts)


def test_each_sentence_has_the_values_of_the_encodings(doc: Doc) -> None:
    done = TreePositions()(doc)
    assert done is doc
    trees = structpe.as_structures(doc, whitespace=True)
    assert len(doc._.structpe) == len(trees) == 2
    for found, tree in zip(doc._.structpe, trees, strict=True):
        assert list(found) == ["depth", "spr-relative", "branch-path", "distance"]
        for encoding in (Depth(), BranchPath(binary=True)):
            np.testing.assert_array_equal(found[encoding.name], encoding.one(tree).values)
        for encoding in (SPRRelative(), Distance()):
            np.testing.assert_array_equal(found[encoding.name], encoding.one(tree).pairs())
    assert doc._.structpe[0]["depth"].tolist() == [1, 0, 2, 1, 1, 1]


def test_parts_of_a_sentence_have_their_own(doc: Doc) -> None:
    TreePositions(["depth", {"name": "distance", "max_distance": 4}])(doc)
    first, second = doc.sents
    assert first._.structpe["depth"].tolist() == [1, 0, 2, 1, 1, 1]
    assert second._.structpe["depth"].tolist() == [1, 0, 1]
    whole = second._.structpe["distance"]
    np.testing.assert_array_equal(doc[7:9]._.structpe["distance"], whole[1:, 1:])
    assert doc[7:9]._.structpe["depth"].tolist() == [0, 1]
    assert doc[9:9]._.structpe["depth"].tolist() == []
    with pytest.raises(EncodingError, match=r"is in several sentences, and positions are those of one; take parts of"):
        _ = doc[4:8]._.structpe


def test_a_pipeline_finds_it_by_its_name(nlp: Language) -> None:
    (entry,) = metadata.entry_points(group="spacy_factories", name="structpe")
    assert entry.value == "structpe.parsing.component:create"
    own = spacy.blank("en")

    @Language.component("heads_of_a_test")
    def parsed(doc: Doc) -> Doc:
        heads = [max(0, i - 1) for i in range(len(doc))]
        return Doc(doc.vocab, words=[t.text for t in doc], heads=heads, deps=["dep"] * len(doc),
                   sent_starts=[i == 0 for i in range(len(doc))])  # fmt: skip

    own.add_pipe("heads_of_a_test")
    own.add_pipe("structpe", config={"encodings": ["depth"]})
    docs = list(own.pipe(["one two three", "four"]))
    assert [each._.structpe[0]["depth"].tolist() for each in docs] == [[0, 1, 2], [0]]
    assert own.config["components"]["structpe"]["encodings"] == ["depth"]
    assert own("")._.structpe == []


def test_the_arrays_can_be_stored(doc: Doc, nlp: Language) -> None:
    TreePositions()(doc)
    stored = DocBin(docs=[doc], store_user_data=True).to_bytes()
    (back,) = DocBin(store_user_data=True).from_bytes(stored).get_docs(nlp.vocab)
    for mine, theirs in zip(doc._.structpe, back._.structpe, strict=True):
        assert mine.keys() == theirs.keys()
        for name, values in mine.items():
            np.testing.assert_array_equal(values, theirs[name])


def test_what_cannot_be_is_said(nlp: Language, doc: Doc) -> None:
    with pytest.raises(PositionError, match=r"there is no encoding named 'dept'\. Did you mean 'depth'"):
        TreePositions(["dept"])
    with pytest.raises(EncodingError, match="two encodings are named 'distance'"):
        TreePositions(["distance", {"name": "distance", "max_distance": 3}])
    with pytest.raises(EncodingError, match="lists pairs, which have no matrix; leave it out"):
        TreePositions(["neighbours"])
    with pytest.raises(ConversionError, match="has no dependency parse"):
        TreePositions()(nlp("No parser here."))
    with pytest.raises(EncodingError, match="the Doc has no positions; add the component 'structpe' to the pipeline"):
        _ = doc[:2]._.structpe


def merged(doc: Doc) -> None:
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[2:4])


def merged_and_split(doc: Doc) -> None:
    """As many tokens as before."""
    merged(doc)
    with doc.retokenize() as retokenizer:
        retokenizer.split(doc[0], ["Mi", "ra"], heads=[doc[1], doc[1]])


def reattached(doc: Doc) -> None:
    doc[0].head = doc[3]


def renamed(doc: Doc) -> None:
    doc[0].dep_ = "nsubj"


@pytest.mark.parametrize("change", [merged, merged_and_split, reattached, renamed])
def test_positions_of_a_changed_doc_are_refused(doc: Doc, nlp: Language, change: Callable[[Doc], None]) -> None:
    TreePositions()(doc)
    stored = DocBin(docs=[doc], store_user_data=True, attrs=["ORTH", "HEAD", "DEP", "SENT_START"])
    (back,) = DocBin(store_user_data=True).from_bytes(stored.to_bytes()).get_docs(nlp.vocab)
    copied = doc.copy()
    for each in (doc, back, copied):
        first = next(iter(each.sents))
        assert first._.structpe["depth"].tolist() == [1, 0, 2, 1, 1, 1]
        change(each)
        for thing in (each, each[:2]):
            with pytest.raises(EncodingError, match=r"have been changed since its positions were made, for example by"):
                _ = thing._.structpe
        TreePositions()(each)
        assert len(each[:2]._.structpe["depth"]) == 2
    assert sum(len(sentence["depth"]) for sentence in doc._.structpe) == len(doc)
    assert spacy.blank("en")("no positions")._.structpe is None
