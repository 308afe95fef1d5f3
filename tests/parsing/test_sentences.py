"""Positions of words and subwords: the library's encodings, by hand, and of texts as users have them."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from tokenizers import Tokenizer, models, pre_tokenizers

from structpe.encodings import BranchPath
from structpe.errors import StructPEError
from structpe.formats import read, stream, tree
from structpe.parsing import Options, load_parser, parse, parse_texts, places, with_places
from structpe.parsing.formats import COLUMNS, as_conllu, as_json, as_tsv, record
from structpe.structure import Structure
from tests.datasets import SAMPLES, corpus
from tests.strategies import trees

ITEMS = read(SAMPLES / "trees_sample" / "sample.conllu")


def letters() -> Tokenizer:
    """Each byte is a unit."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: id for id, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer


def test_positions_by_hand() -> None:
    structure = tree(["Mira", "lit", "the", "lamp"], [2, 0, 4, 2])
    found = places(structure)
    assert found.depth.tolist() == [1, 0, 2, 1]
    assert found.branches == ((0,), (), (0, 1), (1,))
    assert found.relative.tolist() == [[0, 1, -3, -2], [-1, 0, -2, -1], [3, 2, 0, 1], [2, 1, -1, 0]]
    # lit -left-> Mira -right-> lamp -left-> the
    assert places(structure, binary=True).branches == ((0,), (), (0, 1, 0), (1, 0))


@given(trees())
def test_branches_are_the_encoding(structure: Structure) -> None:
    for binary in (False, True):
        found = places(structure, binary)
        steps = max(max(map(len, found.branches)), 1)
        width = 2 if binary else max([1, *(1 + max(each) for each in found.branches if each)])
        vectors = np.zeros((structure.unit_count, steps, width), dtype=np.float32)
        for unit, branches in enumerate(found.branches):
            vectors[unit, np.arange(len(branches)), list(branches)] = 1
        encoded = BranchPath(depth=steps, width=width, binary=binary).one(structure).values
        np.testing.assert_array_equal(vectors.reshape(structure.unit_count, -1), encoded)
        if not binary:
            assert [len(each) for each in found.branches] == found.depth.tolist()


def test_long_sentences_of_a_treebank() -> None:
    items = itertools.islice(stream(corpus("ud/CS-CLTT/cs_cltt-ud-dev.conllu")), 40)
    for item in sorted(items, key=lambda item: -item.structure.size)[:1]:
        parsed = with_places(item, Options(letters()))
        assert parsed.words.relative.shape == (item.structure.size,) * 2
        assert parsed.subwords is not None
        assert parsed.split is not None
        owner = parsed.split.structure.unit_owner
        assert (parsed.subwords.depth == parsed.words.depth[owner]).all()
        np.testing.assert_array_equal(parsed.subwords.relative, parsed.words.relative[owner[:, None], owner])


@pytest.fixture(scope="module")
def nlp(parser: Path) -> Any:
    """The parser, loaded once."""
    return load_parser(parser)


def test_a_text_is_parsed(parser: Path, nlp: Any) -> None:
    text = "The keeper  lit the lamp.\n Mira slept."
    sentences = parse(text, parser)
    words = [word for each in sentences for word in each.structure.nodes]
    assert words == ["The", "keeper", "lit", "the", "lamp", ".", "Mira", "slept", "."]
    for each in sentences:
        start, told = each.item.metadata["start"], each.item.metadata["text"]
        assert text[start : start + len(told)] == told
        for word, (a, b) in zip(each.structure.nodes, each.structure.features["span"], strict=True):
            assert told[a:b] == word
    assert [each.item.id for each in sentences] == [f"1.{number}" for number in range(1, len(sentences) + 1)]
    assert parse("", nlp) == parse(" \n ", nlp) == []
    assert [len(list(parse_texts(["a", "", "c"], nlp)))] == [2]


@pytest.mark.parametrize("rule", ["all", "first", "chain"])
def test_subwords_get_positions_by_the_rule(nlp: Any, rule: str) -> None:
    words = []
    for parsed in parse("Mira slept", nlp, Options(letters(), rule)):  # type: ignore[arg-type]
        assert parsed.split is not None
        assert parsed.subwords is not None
        assert parsed.split.ids.tolist() == letters().encode(parsed.item.metadata["text"]).ids
        owner = parsed.split.structure.unit_owner
        within = np.arange(len(owner)) - np.searchsorted(owner, owner)  # how many of the word come before
        more = {"all": 0 * within, "first": np.minimum(within, 1), "chain": within}[rule]
        assert (parsed.subwords.depth == parsed.words.depth[owner] + more).all()
        words += parsed.structure.nodes
    assert words == ["Mira", "slept"]


def test_json_is_as_documented() -> None:
    parsed = [with_places(item, Options(letters())) for item in ITEMS[:3]]
    document = json.loads("".join(as_json(parsed, "none")))
    assert list(document) == ["format", "version", "model", "sentences"]
    assert (document["format"], document["version"]) == ("structpe.parse", 1)
    assert document["sentences"] == [json.loads(json.dumps(record(each))) for each in parsed]
    third = document["sentences"][2]
    assert third["text"] == "Mira lit the lamp at dusk."
    assert third["words"][3] == {
        "form": "lamp",
        "start": 13,
        "end": 17,
        "upos": "NOUN",
        "xpos": "_",
        "head": 1,
        "relation": "obj",
        "depth": 1,
        "branches": [1],
    }
    assert third["words"][1]["head"] is None
    assert third["relative"] == parsed[2].words.relative.tolist()
    unit = third["subwords"]["units"][5]
    assert (unit["text"], unit["word"], unit["start"], unit["end"], unit["depth"], unit["branches"]) == (
        "l",
        1,
        5,
        6,
        0,
        [],
    )
    assert third["subwords"]["alignment"]["complete"]
    assert record(with_places(ITEMS[0]))["subwords"] is None
    assert json.loads("".join(as_json([], "none")))["sentences"] == []


def test_conllu_is_read_back(tmp_path: Path) -> None:
    file = tmp_path / "out.conllu"
    file.write_text("".join(as_conllu(map(with_places, ITEMS))), encoding="utf-8")
    for item, back in zip(ITEMS, read(file), strict=True):
        assert back.structure.nodes == item.structure.nodes
        assert back.structure.edges.tolist() == item.structure.edges.tolist()
        assert back.structure.relations == item.structure.relations
        assert back.metadata["text"] == item.metadata["text"]
        assert back.metadata["space_after"][:-1] == item.metadata["space_after"][:-1]


def test_tables_of_text_have_all_columns() -> None:
    parsed = [with_places(item, Options(letters())) for item in ITEMS[:3]]
    header, *lines = "".join(as_tsv(parsed)).splitlines()
    assert header.split("\t") == list(COLUMNS)
    assert len(lines) == sum(each.structure.size for each in parsed)
    assert lines[-1].split("\t") == ["island-3", "7", ".", "2", "punct", "PUNCT", "_", "1", "3", "2,1,3,2,3,2,0"]
    header, *lines = "".join(as_tsv(parsed, subwords=True)).splitlines()
    assert header.split("\t")[2:5] == ["form", "subword", "id"]
    assert len(lines) == sum(each.structure.unit_count for each in parsed)
    assert {len(line.split("\t")) for line in lines} == {len(COLUMNS) + 2}


def test_models_that_are_not_there_or_do_not_parse(tmp_path: Path, parser: Path) -> None:
    import spacy

    with pytest.raises(
        StructPEError,
        match=r"^the pipeline 'de_core_news_sm' is not installed: python -m spacy download de_core_news_sm; or train a "
        r"parser: structpe parse --train FILE.conllu --dev FILE.conllu --out FOLDER$",
    ):
        parse("a", "de_core_news_sm")
    with pytest.raises(
        StructPEError, match=r"^there is no folder 'nowhere', and no pipeline of that name is installed; chec"
    ):
        load_parser("nowhere")
    with pytest.raises(
        StructPEError, match=r"^\S+: the pipeline cannot be loaded \(OSError: .*meta.json.*\); give a folder"
    ):
        load_parser(tmp_path)
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(
        StructPEError, match=r"blank: the pipeline has no parser, it has: nothing; choose one that has$"
    ):
        load_parser(tmp_path / "blank")


def test_texts_that_are_too_long_are_refused(nlp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nlp, "max_length", 10)
    with pytest.raises(
        StructPEError, match=r"^text 2 has 11 characters, 10 at most; divide it, blank lines do so in a file$"
    ):
        list(parse_texts(["a", "b" * 11], nlp))
    with pytest.raises(
        StructPEError, match=r"^text 1 has '.udcff' at character 2, which is no character but a byte that"
    ):
        parse("a\udcff", nlp)
    monkeypatch.setattr("structpe.parsing.sentences.LONGEST", 2)
    with pytest.raises(
        StructPEError,
        match=r"^sentence island-2 has 4 words, but 2 are allowed at most, as positions of pairs fill the mem",
    ):
        with_places(ITEMS[1])


def test_imports_stay_lazy() -> None:
    code = "import sys, structpe.parsing, structpe.formats.spacy; assert not {'spacy', 'tokenizers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
