"""Trees in brackets: what was read comes back, and so does every tree."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import structpe
from structpe import Structure
from structpe.formats import Item, as_text, read, write
from structpe.formats.brackets import constituents
from structpe.formats.writing import WriteError
from tests.datasets import corpus
from tests.examples import examples
from tests.same import assert_same
from tests.strategies import trees

LARGE = (("train", 10), ("dev", 2), ("test", 4))  # all of them take a minute
SENTENCE = "( (S (NP (DT The) (NN dog)) (VP (VBZ barks) (NP-1 (-NONE- *T*-2))) (-LRB- -LRB-) (CD 1\\/2) too))\n"


@pytest.mark.parametrize("preterminals", ["merge", "keep"])
def test_what_was_read_comes_back(preterminals: str) -> None:
    item = constituents(SENTENCE, preterminals)  # type: ignore[arg-type]
    assert as_text(item, "ptb") == SENTENCE
    for text in ["( (NP a) (VP b))\n", "( word)\n", "( ( (NP a)))\n", "(S a b)\n", "(X (Y (Z a)))\n"]:
        assert as_text(constituents(text, preterminals), "ptb") == text  # type: ignore[arg-type]


def test_a_bare_tree_has_no_tags() -> None:
    tree = Structure(("S", "I", "VP", "saw", "("), np.array([[0, 1], [0, 2], [2, 3], [2, 4]]), root=0)
    assert as_text(tree, "ptb") == "(S I (VP saw -LRB-))\n"
    assert as_text(replace(tree, order=np.array([0, 4, 1, 3, 2])), "ptb") == "(S (VP -LRB- saw) I)\n"


@given(trees(units=False, labels=False))
@examples(60)
def test_every_tree_comes_back(made: Structure) -> None:
    made = replace(made, order=None)
    assume(made.size > 1)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.ptb"
        structpe.write([made], file)
        back = read(file, preterminals="keep", traces="drop")[0].structure
    assert _nested(made) == _nested(back)


def _nested(tree: Structure) -> object:
    parts: dict[int, list[int]] = {}
    for node, parent in enumerate(tree.parents().tolist()):
        parts.setdefault(parent, []).append(node)

    def inside(node: int) -> object:
        return (tree.nodes[node], [inside(part) for part in parts.get(node, [])])

    return inside(int((tree.parents() < 0).argmax()))


@given(st.text(min_size=1, max_size=8))
@examples(100)
def test_a_word_comes_back_or_is_refused(word: str) -> None:
    item = Item(structpe.path([word]), metadata={"categories": ("X",)})
    try:
        text = as_text(item, "ptb")
    except WriteError as error:
        assert "brackets cannot hold" in error.message or "lone surrogate" in error.message  # noqa: PT017
    else:
        assert constituents(text).structure.nodes == (word,)


def test_what_brackets_cannot_hold_is_named() -> None:
    pair = structpe.path(["S", "a"])
    both = Structure(("a", "b"), np.array([[0, 1], [1, 0]]))
    for thing, message in [
        (both, "a tree has one root, this graph has 0: none"),
        (replace(pair, directed=False), "the edges are undirected; brackets need a tree"),
        (
            structpe.path(["S", "a b"]),
            "the word of node 1 is 'a b', which brackets cannot hold; give another label",
        ),
        (structpe.path(["S", ""]), "the word of node 1 is '', which brackets cannot hold"),
        (structpe.path(["S", "-LRB-"]), "the word of node 1 is '-LRB-', which brackets cannot hold"),
        (structpe.path(["N P", "a"]), "the category of node 0 is 'N P'; give one without blanks and brackets"),
        (structpe.path(["a"]), "the tree is one word without a category; give metadata 'categories' with one"),
        (Item(pair, metadata={"categories": ("S",)}), "metadata 'categories' has 1 values for 2 nodes; give one per n"),
        (replace(pair, features={"is_word": np.array([True, True])}), "node 0 ('S') is a word by 'is_word', but has"),
        (
            replace(pair, features={"is_word": np.array([False, False])}),
            "node 1 ('a') is a phrase without parts; remove",
        ),
    ]:
        with pytest.raises(WriteError) as caught:
            as_text(thing, "ptb")
        assert message in str(caught.value)


def test_depth_is_no_danger() -> None:
    deep = structpe.path([f"n{i}" for i in range(5000)])
    assert constituents(as_text(deep, "ptb"), preterminals="keep").structure.size == 5000


@pytest.mark.parametrize(
    ("part", "step"),
    [("dev", 10), *(pytest.param(*each, marks=pytest.mark.slow) for each in LARGE)],
)
def test_the_sentiment_treebank_comes_back_byte_for_byte(tmp_path: Path, part: str, step: int) -> None:
    lines = corpus(f"sst_trees/{part}.txt").read_text(encoding="utf-8").splitlines(keepends=True)[::step]
    (tmp_path / "a.ptb").write_text("".join(lines), encoding="utf-8")
    items = read(tmp_path / "a.ptb")
    write(items, tmp_path / "b.ptb")
    assert (tmp_path / "b.ptb").read_text(encoding="utf-8").splitlines() == "".join(lines).splitlines()
    for item, again in zip(items[:200], read(tmp_path / "b.ptb"), strict=False):
        assert_same(item.structure, again.structure, without=("name",))
