"""Training of parsers: whole or absent, goes on after an interruption, says what is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import spacy

from structpe.errors import StructPEError
from structpe.parsing import Plan, Progress, evaluate, load_parser, train
from structpe.parsing.gold import as_doc, documents, gold_items
from structpe.readers import read
from tests.corpora import corpus
from tests.parsing.conftest import PLAN, SAMPLE


def test_a_trained_parser_has_learned_something(parser: Path) -> None:
    scores = evaluate([SAMPLE], load_parser(parser))
    assert (scores.sentences, scores.words) == (40, 319)
    assert 10 < scores.las <= scores.uas <= 100  # after 20 steps 19.7 on one processor, above 20 on another
    assert scores.spacy_words == 100
    assert scores.tag > 50


def test_a_trained_parser_names_no_path_of_its_maker(parser: Path) -> None:
    assert not list(parser.parent.glob("*.part"))
    config = (parser / "config.cfg").read_text()
    assert str(parser.parent) not in config
    assert spacy.load(parser).pipe_names == ["tok2vec", "tagger", "parser"]


def test_scores_are_those_of_counting_by_hand(parser: Path) -> None:
    nlp = load_parser(parser)
    found = evaluate([SAMPLE], nlp)
    heads = words = 0
    for item in read(SAMPLE):
        doc = as_doc(item, nlp.vocab)
        given = spacy.tokens.Doc(nlp.vocab, [w.text for w in doc], [bool(w.whitespace_) for w in doc])
        for word in list(given)[1:]:
            word.is_sent_start = False
        given[0].is_sent_start = True
        given = nlp(given)
        assert len(list(given.sents)) == 1
        heads += sum(a.head.i == b.head.i for a, b in zip(doc, given, strict=True))
        words += len(doc)
    assert found.uas == pytest.approx(100 * heads / words)


class Stop(Exception):
    pass


def test_an_interrupted_training_goes_on(tmp_path: Path) -> None:
    told: list[Progress] = []

    def stop(progress: Progress) -> None:
        told.append(progress)
        if progress.step == 3:
            raise Stop

    plan = Plan((str(SAMPLE),), (str(SAMPLE),), steps=5, language="en")
    out, part = tmp_path / "parser", tmp_path / "parser.part"
    with pytest.raises(Stop):
        train(plan, out, stop)
    assert not out.exists()
    assert json.loads((part / "state.json").read_text())["step"] == 0  # scored at the beginning and the end
    with pytest.raises(
        StructPEError, match=r"parser.part: a training with other files or options was interrupted here; give"
    ):
        train(replace(plan, seed=1), out)
    (part / "state.json").write_text(json.dumps({"step": 2, "best": 2.0}))  # as if it had been scored then
    went_on: list[Progress] = []
    assert train(plan, out, went_on.append) == out
    assert [progress.step for progress in went_on] == [2, 3, 4, 5]
    assert went_on[-1].scores is not None
    assert not part.exists()
    assert load_parser(out)
    with pytest.raises(
        StructPEError, match=r"parser: there is something of that name already; remove it, or choose another"
    ):
        train(plan, out)


def test_the_same_seed_gives_the_same_parser(tmp_path: Path) -> None:
    plan = replace(PLAN, steps=3)
    for name in ("one", "two"):
        train(plan, tmp_path / name)
    assert (tmp_path / "one/parser/model").read_bytes() == (tmp_path / "two/parser/model").read_bytes()


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"files": ()}, r"^no file to learn from is given; give one in CoNLL-U at least$"),
        ({"files": ("x",), "steps": 0}, r"^steps are 0; give 1 or more$"),
        ({"files": ("x",), "seed": -1}, r"^the seed is -1; give 0\.\.4294967295$"),
        ({"files": ("nowhere.conllu",)}, r"^nowhere.conllu: there is no such file or folder; check the path$"),
        (
            {"files": (str(SAMPLE),), "language": "qq"},
            r"^spaCy has no tokenizer for the language 'qq': .* Give another code, or",
        ),
    ],
)
def test_bad_plans_are_refused(tmp_path: Path, plan: dict[str, object], message: str) -> None:
    with pytest.raises(StructPEError, match=message):
        train(Plan(**plan), tmp_path / "out")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_bad_sentences_are_named(tmp_path: Path) -> None:
    file = tmp_path / "bad.conllu"
    file.write_text("1\ta\t_\tX\t_\t_\t2\tdep\t_\t_\n2\tb\t_\tX\t_\t_\t1\tdep\t_\t_\n")
    with pytest.raises(StructPEError, match=r"bad.conllu: item 1: line 1: a tree has no cycle, but here is one"):
        train(Plan((str(file),)), tmp_path / "out")
    assert [each.name for each in tmp_path.iterdir()] == ["bad.conllu"]


@pytest.mark.parametrize("tags", ["XX", "XY"])
def test_sentences_that_teach_nothing_are_refused(
    tmp_path: Path, tags: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "few.conllu"
    file.write_text("".join(f"1\ta\t_\t{tag}\t_\t_\t0\troot\t_\t_\n\n" for tag in tags))
    with pytest.raises(
        StructPEError, match=r"^spaCy cannot learn from these sentences \(.*\); give more of them, with two t"
    ):
        train(Plan((str(file),), steps=2), tmp_path / "out")
    assert [each.name for each in tmp_path.iterdir()] == ["few.conllu"]
    assert capsys.readouterr().out == ""


def test_gold_documents_have_the_treebanks_trees() -> None:
    nlp = spacy.blank("cs")
    items = list(gold_items([corpus("ud/CS-CLTT/cs_cltt-ud-dev.conllu")]))[:25]
    docs = list(documents(items, nlp.vocab))
    assert [len(list(doc.sents)) for doc in docs] == [10, 10, 5]
    assert [word.text for doc in docs for word in doc] == [word for item in items for word in item.structure.nodes]
    first = as_doc(items[0], nlp.vocab)
    assert [word.tag_ for word in first] == list(items[0].metadata["xpos"])
    assert first.text.strip() == items[0].metadata["text"]
