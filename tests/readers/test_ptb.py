"""Constituency trees in brackets."""

from __future__ import annotations

import pytest

import structpe.formats.text
from structpe.errors import ReadError
from structpe.formats import read
from structpe.formats.brackets import constituents
from tests.datasets import corpus
from tests.together import together

SENTENCE = "(S (NP (DT The) (NN dog)) (VP (VBZ barks) (NP-1 (-NONE- *T*-2))) (. .))"


def test_phrases_are_labelled_by_their_category_and_words_by_themselves():
    item = constituents(SENTENCE, name="a:1")
    tree = item.structure
    assert tree.nodes == ("S", "NP", "The", "dog", "VP", "barks", "NP-1", "*T*-2", ".")
    assert tree.edges.tolist() == [[0, 1], [1, 2], [1, 3], [0, 4], [4, 5], [4, 6], [6, 7], [0, 8]]
    assert tree.relations == ()
    assert (tree.root, tree.order.tolist(), tree.name) == (0, list(range(9)), "a:1")
    assert tree.features["is_word"].nonzero()[0].tolist() == [2, 3, 5, 7, 8]
    assert tree.features["is_trace"].nonzero()[0].tolist() == [7]
    assert item.metadata["categories"] == ("S", "NP", "DT", "NN", "VP", "VBZ", "NP-1", "-NONE-", ".")
    assert item.metadata["text"] == "The dog barks ."


def test_preterminals_may_be_nodes_and_traces_left_out():
    item = constituents(SENTENCE, preterminals="keep", traces="drop")
    assert item.structure.nodes == ("S", "NP", "DT", "The", "NN", "dog", "VP", "VBZ", "barks", ".", ".")
    assert item.structure.parents().tolist() == [-1, 0, 1, 2, 1, 4, 0, 6, 7, 0, 9]
    assert item.structure.features["is_word"].nonzero()[0].tolist() == [3, 5, 8, 10]
    assert "is_trace" not in item.structure.features
    assert item.metadata["categories"][2:4] == ("DT", None)
    kept = constituents(SENTENCE, preterminals="keep").structure
    assert [kept.nodes[node] for node in kept.features["is_trace"].nonzero()[0]] == ["*T*-2"]


def test_a_phrase_with_the_tag_of_traces_has_words_that_are_none():
    for text in ("(S (NP a) (-NONE- b c))", "(S (NP a) (X (-NONE- (-NONE- b))))"):
        assert constituents(text, traces="drop").structure.nodes == ("S", "a")
    # What is in a bracket with that tag, and has one of its own, is said.
    assert constituents("(S (-NONE- (NP a) b))", traces="drop").structure.nodes == ("S", "-NONE-", "a")


def test_an_empty_bracket_around_the_whole_is_no_node():
    for text, outer in [(SENTENCE, False), (f"( {SENTENCE} )", True), ("((NN dog))", True)]:
        item = constituents(text)
        assert item.metadata["outer"] is outer
        assert item.structure.nodes[0] in ("S", "dog")
    two = constituents("( (NP a) (VP b))")
    assert two.structure.nodes == ("", "a", "b")
    assert constituents("( word)").metadata["categories"] == ("",)


def test_escapes_stand_for_letters():
    item = constituents("(NP (-LRB- -LRB-) (CD 1\\/2) (SYM \\*) (-RRB- -RCB-) (X a-LRB-b))")
    assert item.structure.nodes[1:] == ("(", "1/2", "*", "}", "a(b")
    assert item.metadata["categories"][1] == "-LRB-"
    assert item.metadata["escaped"][2] == "1\\/2"


def test_words_may_stand_beside_phrases():
    item = constituents("(S (NP I) (VP saw him) too)")
    assert item.structure.nodes == ("S", "I", "VP", "saw", "him", "too")
    assert item.metadata["categories"] == ("S", "NP", "VP", None, None, None)


def test_labels_may_be_classes():
    tree = constituents("(4 (2 It) (3 (2 's) (3 good)))", classes=True).structure
    assert tree.nodes == ("", "It", "", "'s", "good")
    assert tree.features["class"].tolist() == [4, 2, 3, 2, 3]
    assert constituents("(4 (3 (2 a) b) c)", classes=True).structure.features["class"].tolist() == [4, 3, 2, -1, -1]


def test_trees_span_lines_and_share_them(write):
    file = write(
        "a.mrg", f"\n( (S\n    (NP (NN dog))\n  (VP barks) ))\n(X a) (X b)\n(S (NP c)\n (VP d))\n\n( {SENTENCE} )"
    )
    items = read(file)
    assert [item.structure.nodes[0] for item in items] == ["S", "a", "b", "S", "S"]
    assert [item.id for item in items] == ["1", "2", "3", "4", "5"]
    assert items[3].structure.name == "a.mrg:4"


def test_lines_need_no_indent(write):
    items = read(write("a.ptb", "(S\n(NP a)\n(VP b)\n)\n(S\n(NP c)\n(VP d))\n"))
    assert [item.structure.nodes for item in items] == [("S", "a", "b"), ("S", "c", "d")]


@pytest.mark.parametrize(
    "text",
    [
        "(S (NP a) (VP b))\n(S (NP a) (VP b)\n(S (NP c) (VP d))\n",
        "(S (NP a)\n  (VP b))\n(S (NP a)\n  (VP b)\n(S (NP c)\n  (VP d))\n",
        "(S (NP a) (VP b)\n(S (NP c) (VP d))\n(S (NP e) (VP f))\n",
        "(S (NP a) (VP b)\n\n(S (NP c) (VP d))\n(S (NP e) (VP f))\n",
    ],
)
def test_a_tree_that_is_not_closed_spoils_no_other(write, text):
    file = write("a.ptb", text)
    with pytest.raises(
        ReadError, match=r"item \d: line \d: the tree is not closed: 1 '\(' still open after line \d; cl"
    ):
        read(file)
    reading = read(file, on_error="skip")
    assert len(reading) == 2
    assert len(reading.skipped) == 1


@together(
    "text, message",
    [
        (
            "(S a) b (S c)\n(S d)",
            "item 2: line 1: 'b' is outside of every tree; a tree is (label word) or (label p",
        ),
        (") (S a)\n(S d)", "item 1: line 1: ')' is outside of every tree"),
        ("(S a)\n(S (NP))", "item 2: line 2: a node has neither a word nor parts; remove it"),
        ("(S a)\n()", "item 2: line 2: a node has neither a word nor parts; remove it"),
        ("(S (S a)\n  (X b)", "item 1: line 1: the tree is not closed: 1 '(' still open after line 2; close each, or"),
        ("plain text", "item 1: line 1: 'plain' is outside of every tree"),
        ("", "there is no item in the file; reader 'ptb' reads: Constituency trees in brackets"),
        (b"(S a)\n(S caf\xe9)", "line 2: byte 0xe9 at column 7 is not UTF-8"),
    ],
)
def test_bad_brackets_are_named(write, text, message):
    with pytest.raises(ReadError) as caught:
        read(write("a.ptb", text))
    assert message in str(caught.value)


def test_options_are_checked(write):
    file = write("a.ptb", "(S (-NONE- *))")
    with pytest.raises(ReadError, match="'preterminals' of reader 'ptb' takes one of 'merge', 'keep'; given is 'drop'"):
        read(file, preterminals="drop")
    with pytest.raises(ReadError, match="'traces' of reader 'ptb' takes one of 'keep', 'drop'; given is 'no'"):
        read(file, traces="no")
    with pytest.raises(ReadError, match="line 1: the tree has no word but traces; read it with traces='keep'"):
        read(file, traces="drop")
    with pytest.raises(ReadError, match="a node has the class 'S'; give numbers, or read the file with classes=False"):
        read(file, classes=True)


def test_depth_and_size_are_no_danger(write, monkeypatch):
    deep = "(X " * 20_000 + "a" + ")" * 20_000
    (item,) = read(write("a.ptb", deep))
    assert item.structure.size == 20_000
    monkeypatch.setattr(structpe.formats.text, "LIMIT", 1000)
    with pytest.raises(ReadError, match=r"a\.ptb: line 2: the tree is longer than 1000 bytes, too long for a graph"):
        read(write("a.ptb", "(X a)\n(X\n" + " (X a)\n" * 500))


# Sizes of the standard splits, as Socher et al. (2013) give them.
@pytest.mark.parametrize(("part", "count"), [("dev", 1101), pytest.param("test", 2210, marks=pytest.mark.slow)])
def test_the_sentiment_treebank_has_its_published_size(part, count):
    items = read(corpus(f"sst_trees/{part}.txt"), "ptb", classes=True)
    assert len(items) == count
    for item in items:
        words = item.structure.features["is_word"].sum()
        assert item.structure.size == 2 * words - 1
        assert set(item.structure.features["class"].tolist()) <= {0, 1, 2, 3, 4}
