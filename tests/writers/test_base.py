"""Writing: whole files or none, and what is said where it cannot be done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import structpe
from structpe import StructPEError
from structpe.formats import WRITERS, as_text, triples
from structpe.structure import Structure
from tests.same import assert_same
from tests.together import together

FACTS = triples([("Orrin", "partOf", "Isles"), ("Isles", "in", "Sea")])


def test_there_and_back(tmp_path: Path) -> None:
    file = tmp_path / "facts.tsv"
    assert structpe.write([FACTS], file) == 1
    assert_same(FACTS, structpe.read(file)[0].structure, without=("name",))
    assert as_text(FACTS, "triples") == file.read_text(encoding="utf-8") == "Orrin\tpartOf\tIsles\nIsles\tin\tSea\n"


def test_a_bad_item_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "facts.tsv"
    file.write_text("old")
    with pytest.raises(StructPEError, match=r"^item 2: '' cannot be written in a line of triples"):
        structpe.write([FACTS, structpe.path(["a", "b"])], file)
    with pytest.raises(StructPEError, match="there is no item to write to"):
        structpe.write([], file)
    assert [path.name for path in tmp_path.iterdir()] == ["facts.tsv"]
    assert file.read_text() == "old"


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    with pytest.raises(
        StructPEError, match=r"no writer claims '\.doc' files; say which with to= or --writer, one of .*'triples'"
    ):
        structpe.write([FACTS], tmp_path / "facts.doc")
    with pytest.raises(StructPEError, match="writer 'triples' has no option 'header', nor any other; leave it out"):
        as_text(FACTS, "triples", header=True)
    with pytest.raises(StructPEError, match=r"two nodes are labelled 'a'; triples know nodes by their labels"):
        as_text(structpe.path(["a", "a"]), "triples")
    with pytest.raises(StructPEError, match=r"node 0 \('a'\) is in no edge"):
        as_text(structpe.path(["a"]), "triples")


def test_directions_are_not_made_up() -> None:
    """Formats of undirected graphs are graph6 and SMILES; the others would give back another graph."""
    undirected = replace(FACTS, directed=False)
    for name in set(WRITERS) - {"graph6", "smiles"}:
        with pytest.raises(StructPEError, match=r"the edges are undirected|the structure is undirected"):
            as_text(undirected, name)


@pytest.mark.parametrize("name", ["tokens", "triples", "webnlg", "conllu", "amr", "ptb"])
def test_a_character_that_no_reader_takes_is_not_written(name: str, tmp_path: Path) -> None:
    both = Structure(("a\0b", "c"), np.array([[0, 1]]), ("r",), order=np.arange(2), root=0)
    with pytest.raises(StructPEError, match=r"has the character 0, by which|which XML forbids"):
        structpe.write([both], tmp_path / "file", to=name)


@together("name", list(WRITERS))
def test_what_is_written_can_be_read(name: str) -> None:
    assert name in structpe.formats.READERS
