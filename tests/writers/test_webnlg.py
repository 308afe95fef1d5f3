"""WebNLG: entries come back with all that is said of them, and graphs of facts can be written."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import structpe
from structpe import Structure
from structpe.formats import Item, as_text, read, triples, write
from structpe.formats.writing import WriteError
from tests.datasets import SAMPLES, corpus
from tests.examples import examples
from tests.readers.test_webnlg import ENRICHED, ENTRY, RUSSIAN, document
from tests.same import assert_same


def assert_back(before: list[Item], file: Path) -> None:
    write(before, file)
    after = read(file)
    assert len(before) == len(after)
    for one, other in zip(before, after, strict=True):
        assert (one.texts, one.id, one.metadata) == (other.texts, other.id, other.metadata)
        assert_same(one.structure, other.structure, without=("name",))


def test_every_version_comes_back(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(document(ENTRY, RUSSIAN, ENRICHED), encoding="utf-8")
    assert_back(list(read(tmp_path / "a.xml")), tmp_path / "b.xml")
    text = (tmp_path / "b.xml").read_text(encoding="utf-8")
    assert '      <lex comment="good" lang="ru" lid="Id1">Лидер Орхуса - Й Б.</lex>\n' in text
    assert "<mtriple>Aarhus_Airport | elevation | Tom &amp; Jerry</mtriple>" in text


@pytest.mark.parametrize(
    "path",
    [
        SAMPLES / "kg_sample" / "train.xml",
        "challenge2017/dev/5triples",
        pytest.param("challenge2017/test/testdata_unseen_with_lex.xml", marks=pytest.mark.slow),
        pytest.param("v3.0_en/en/dev/4triples", marks=pytest.mark.slow),
    ],
)
def test_corpora_come_back(tmp_path: Path, path: Path | str) -> None:
    assert_back(list(read(path if isinstance(path, Path) else corpus(f"webnlg/{path}"))), tmp_path / "a.xml")


def test_other_graphs_become_entries() -> None:
    item = Item(triples([("a<b", "is", 'c "d"')]), ("A & b.", "So it is."), "one")
    assert as_text(item, "webnlg") == (
        '    <entry eid="one" size="1">\n'
        "      <modifiedtripleset>\n"
        '        <mtriple>a&lt;b | is | c "d"</mtriple>\n'
        "      </modifiedtripleset>\n"
        '      <lex comment="" lid="Id1">A &amp; b.</lex>\n'
        '      <lex comment="" lid="Id2">So it is.</lex>\n'
        "    </entry>\n"
    )


def test_changed_texts_are_written_with_their_change(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(document(RUSSIAN), encoding="utf-8")
    item = read(tmp_path / "a.xml")[0]
    changed = Item(item.structure, ("New.",), item.id, item.metadata)
    assert '      <lex comment="" lid="Id1">New.</lex>\n' in as_text(changed, "webnlg")


@given(st.lists(st.tuples(*[st.text(min_size=1, max_size=6)] * 3), min_size=1, max_size=3), st.text(max_size=8))
@examples(100)
def test_facts_come_back_or_are_refused(rows: list[tuple[str, str, str]], text: str) -> None:
    try:
        made = triples(rows)
        item = Item(made, (text,) if text.strip() else (), "one")
        with tempfile.TemporaryDirectory() as folder:
            structpe.write([item], Path(folder) / "a.xml")
            back = read(Path(folder) / "a.xml")[0]
    except structpe.StructPEError as error:
        assert any(word in str(error) for word in ("cannot be written", "forbids", "lone surrogate", "not empty"))  # noqa: PT017
    else:
        assert_same(made, back.structure, without=("name",))
        assert back.texts == tuple(each.strip() for each in item.texts)


def test_what_cannot_be_said_is_named() -> None:
    fact = triples([("a", "r", "b")])
    for thing, message in [
        (
            structpe.path(["a", "b"]),
            "'' cannot be written in WebNLG; give a text without ' | ' and outer spaces",
        ),
        (triples([("a | b", "r", "c")]), "'a | b' cannot be written in WebNLG"),
        (
            Structure(("a", "a"), np.array([[0, 1]]), ("r",)),
            "two nodes are labelled 'a'; WebNLG knows entities by their",
        ),
        (structpe.path(["a"]), "node 0 ('a') is in no edge; triples are edges only"),
        (Item(fact, ("a\x00",)), "'a\\x00' has '\\x00', which XML forbids; remove the character"),
        (
            Item(fact, ("a",), metadata={"lexes": ({"my lid": "1", "text": "a"},)}),
            "'my lid' cannot be the name of an XML attribute; give letters, digits and _",
        ),
    ]:
        with pytest.raises(WriteError) as caught:
            as_text(thing, "webnlg")
        assert message in str(caught.value)
