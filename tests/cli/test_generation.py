"""``structpe train``, ``generate`` and ``evaluate``: a very small model through its life."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from structpe.cli import UsageError
from structpe.cli._inputs import SEARCH
from structpe.cli.base import as_overrides
from structpe.cli.generate import _output
from structpe.formats import read
from structpe.nn.search import SearchConfig
from tests.cli.running import SAMPLE, complaint, output, structpe
from tests.together import together

CONFIG = """
data: {train: %(sample)s/dev.txt, dev: %(sample)s/test.txt}
prepare: {vocabulary: 300}
model: {width: 16, heads: 2, encoder_layers: 1, decoder_layers: 1, feedforward: 16}
training: {steps: 2, batch_size: 4, checkpoint_every: 2, validation: {every: 2}, hardware: {accelerator: cpu}}
search: {beam: 1, longest: 4}
"""
FILE = SAMPLE / "test.txt"


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("config") / "small.yaml"
    file.write_text(CONFIG % {"sample": SAMPLE})
    return file


@pytest.fixture(scope="module")
def run(config: Path) -> Path:
    folder = config.parent / "run"
    done = structpe("train", config, "--out", folder, "--training.steps=3")
    assert done.returncode == 0, done.stderr
    assert "finished: 3 steps" in done.stderr
    return folder


def test_training_goes_on_or_says_why_not(config: Path, run: Path) -> None:
    done = structpe("train", config, "--out", run, "--training.steps", "3")
    assert (done.returncode, "this run is finished" in done.stderr) == (0, True)
    assert "they differ in training.steps" in complaint("train", config, "--out", run)


def test_options_of_the_reader_are_checked_and_used(run: Path, tmp_path: Path) -> None:
    told = complaint("evaluate", run, FILE, "--option", "grahp=1", code=1)
    assert told == "reader 'amr' has no option 'grahp', nor any other; leave it out"
    file = tmp_path / "a.xml"
    file.write_text((SAMPLE.parent / "kg_sample" / "test.xml").read_text(encoding="utf-8"), encoding="utf-8")
    words = ["--reader", "webnlg", "--longest", "2"]
    some = output("generate", run, file, *words, "--json")
    none = output("generate", run, file, *words, "--json", "--option", "comment=no such comment")
    assert json.loads(some.splitlines()[0])["references"]
    assert json.loads(none.splitlines()[0])["references"] == []


@pytest.mark.slow
def test_a_run_keeps_the_reader_of_its_files(run: Path, tmp_path: Path) -> None:
    """The configuration names none, so that the suffix of its files says it once and for all."""
    assert yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))["data"]["reader"] == "amr"
    facts, picture = SAMPLE.parent / "kg_sample" / "test.xml", tmp_path / "a.svg"
    for file in (facts, FILE):
        given, whole = tmp_path / "a.conllu", file.read_text(encoding="utf-8")
        # Of the graphs of the run two are enough.
        given.write_text("\n\n".join(whole.split("\n\n")[:2]) + "\n" if file == FILE else whole, encoding="utf-8")
        for words in (
            ["evaluate", run, given, "--longest", "2"],
            ["generate", run, given, "--longest", "2"],
            ["show", given, "--checkpoint", run, "--out", picture],
            ["figure", "pattern", "--checkpoint", run, "--file", given, "--out", picture],
        ):
            if file == FILE:
                assert output(*words)
            else:
                told = complaint(*words, code=1)
                assert told.startswith(f"{given}: item 1: line 1: "), told
    assert complaint("show", FILE, "--checkpoint", run, "--reader", "conllu", "--out", picture, code=1)


def test_what_a_search_cannot_use_is_refused(run: Path) -> None:
    told = "--length-penalty has no effect on greedy search, which keeps one text; give --beam 2 or more"
    for more in ([], ["--beam", "1"]):  # as the run says, and as the command does
        assert complaint("generate", run, FILE, "--length-penalty", "0.5", *more) == told
    assert output("generate", run, FILE, "--length-penalty", "0.5", "--beam", "2", "--longest", "2")


def test_texts_come_one_per_line(run: Path, tmp_path: Path) -> None:
    lines = output("generate", run, FILE).split("\n")
    items = read(FILE, "amr")
    assert len(lines) == len(items) + 1
    assert output("generate", run, FILE, "--json", "--out", tmp_path / "texts.json") == ""
    rows = [json.loads(line) for line in (tmp_path / "texts.json").read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in rows] == [item.id for item in items]
    assert [row["references"] for row in rows] == [list(item.texts) for item in items]
    assert [" ".join(row["text"].split()) for row in rows] == lines[:-1]
    assert [file.name for file in tmp_path.iterdir()] == ["texts.json"]


def test_an_interrupted_output_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), _output(tmp_path / "texts.txt"):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_scores_come_with_signatures(run: Path) -> None:
    scores = json.loads(output("evaluate", run, FILE, "--json", "--beam", "2"))
    assert scores["items"] == len(read(FILE, "amr"))
    assert 0 <= scores["bleu"] <= 100
    assert "version:" in scores["bleu_signature"]
    shown = output("evaluate", run, FILE)
    assert shown.startswith("BLEU ")
    assert scores["chrf_signature"] in shown
    assert output("evaluate", run, "--split", "valid") == shown  # it is the file of data.dev
    assert complaint("evaluate", run).startswith("the configuration names no test split; set data.test to a file")


def test_every_field_of_the_search_is_an_option() -> None:
    assert tuple(field.name for field in fields(SearchConfig)) == SEARCH


def test_mistakes_are_explained(config: Path, run: Path, tmp_path: Path) -> None:
    assert complaint("train", tmp_path / "none.yaml") == (
        f"there is no configuration file {tmp_path / 'none.yaml'}; check the path"
    )
    assert complaint("train", config, "--training.stepz", "3").startswith(
        "there is no key named 'training.stepz'. Did you mean 'training.steps'?"
    )
    assert (
        complaint("train", config, "--training.steps", "many") == "training.steps takes a whole number; given is 'many'"
    )
    assert complaint("generate", tmp_path, FILE, code=1).startswith(f"{tmp_path} holds no config.yaml; ")
    assert complaint("generate", run, "none.txt", code=1).startswith("none.txt: there is no such file or folder")
    assert complaint("generate", run, FILE, "--out", tmp_path) == f"--out {tmp_path} is a folder; give a file"
    assert complaint("evaluate", run, FILE, "--beam", "0").startswith("search.beam is 0; it must be 1 or more")


@together("command", ["generate", "evaluate"])
@together(
    "beam, message",
    [
        ("0", "search.beam is 0; it must be 1 or more"),
        ("-1", "search.beam is -1; it must be 1 or more"),
        ("1000000000", "search.beam is 1000000000; at most 4096 is allowed, give a smaller number"),
        ("9" * 30, "search.beam is a number of more than 20 digits; at most 4096 is allowed"),
        ("x", "argument --beam: invalid int value: 'x'"),
        ("1.5", "argument --beam: invalid int value: '1.5'"),
    ],
)
def test_beams_that_cannot_be(command: str, beam: str, message: str, run: Path) -> None:
    assert message in complaint(command, run, FILE, f"--beam={beam}")


@pytest.mark.parametrize("command", ["generate", "evaluate"])
def test_a_beam_wider_than_the_vocabulary_is_searched(command: str, run: Path, tmp_path: Path) -> None:
    """There are 300 units, and the first step has one text to go on with."""
    file = tmp_path / "one.txt"
    file.write_text("# ::id a\n# ::snt a lamp\n(l / lamp)\n", encoding="utf-8")
    assert output(command, run, file, "--beam", "400", "--longest", "2")


@pytest.mark.parametrize(
    ("words", "overrides"),
    [
        ([], []),
        (["--out", "runs/a", "--training.steps=3"], ["out=runs/a", "training.steps=3"]),
        (["--model.message_passing", "{a: -1}"], ["model.message_passing={a: -1}"]),
        (["--data.options=", "--search.length_penalty", "-1"], ["data.options=", "search.length_penalty=-1"]),
    ],
)
def test_options_become_overrides(words: list[str], overrides: list[str]) -> None:
    assert as_overrides(words) == overrides


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["3"], "'3' is not an option; write --key value"),
        (["--out"], "option '--out' has no value; write --out VALUE"),
        (["--out", "--name", "a"], "option '--out' has no value"),
        (["--out", "a", "--out=b"], "option '--out' is given twice; give it once"),
    ],
)
def test_what_is_no_override(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        as_overrides(words)
