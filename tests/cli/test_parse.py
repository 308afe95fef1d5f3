"""``structpe parse``: from a text to its tree positions, and parsers of one's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from structpe.cli.main import main
from structpe.cli.parse import _write
from structpe.formats import read
from structpe.parsing import load_parser
from structpe.system.files import Busy
from tests.cli.running import complaint, structpe
from tests.datasets import SAMPLES
from tests.parsing.conftest import parser as parser
from tests.together import together

SAMPLE = SAMPLES / "trees_sample" / "sample.conllu"
TEXT = "The keeper lit the lamp."


def output(*words: str | Path) -> str:
    """What a run that must succeed prints; in this process, as spaCy takes its time to load."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        assert main([str(word) for word in words]) == 0, err.getvalue()
    return out.getvalue()


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each byte is a unit."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({letter: id for id, letter in enumerate(alphabet)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    file = tmp_path_factory.mktemp("parse") / "tokenizer.json"
    made.save(str(file))
    return file


@pytest.mark.slow
def test_training_says_how_far_it_is(tmp_path: Path) -> None:
    few, out = tmp_path / "few.conllu", tmp_path / "parser"
    few.write_text("\n\n".join(SAMPLE.read_text(encoding="utf-8").split("\n\n")[:8]) + "\n\n", encoding="utf-8")
    words = ["--train", few, "--dev", few, "--language", "en", "--steps", "2", "--out", out]
    done = structpe("parse", *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{out}: a parser for 'structpe parse --model {out}'\n"
    # Where it takes longer there are lines in between, which say how long it will take.
    first, last = (line for line in done.stderr.splitlines() if line.startswith("step "))
    assert first.startswith("step 0 of 2: LAS ")
    assert last.startswith("step 2 of 2: LAS ")
    assert load_parser(str(out))


@pytest.mark.slow
def test_a_table_shows_words(parser: Path) -> None:
    done = structpe("parse", TEXT, "--model", parser)
    assert (done.returncode, done.stderr) == (0, "")  # and spaCy says nothing
    title, header, _, *rows, end = done.stdout.split("\n")[:-1]
    assert (title, end) == (TEXT, "")
    assert header.split() == ["word", "head", "relation", "upos", "xpos", "depth", "branches", *"123456"]
    assert [row.split()[1] for row in rows] == ["The", "keeper", "lit", "the", "lamp", "."]


@pytest.mark.slow
def test_json_and_files(parser: Path, tokenizer: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "text.txt", tmp_path / "out.json"
    file.write_text(f"{TEXT}\n\nMira\nslept.\n", encoding="utf-8")
    words = ["--file", file, "--model", parser, "--tokenizer", tokenizer, "--expand", "chain", "--binary"]
    assert output("parse", *words, "--format", "json", "--out", out) == f"{out}: written\n"
    document = json.loads(out.read_text(encoding="utf-8"))
    assert document["model"] == str(parser)
    assert [each["id"].split(".")[0] for each in document["sentences"]] == ["1", "2"]
    assert document["sentences"][1]["text"] == "Mira\nslept."
    for sentence in document["sentences"]:
        units = sentence["subwords"]["units"]
        assert sentence["subwords"]["expand"] == "chain"
        assert len(sentence["subwords"]["relative"]) == len(units) == len(sentence["text"])
        assert all(branch in (0, 1) for word in sentence["words"] for branch in word["branches"])


@pytest.mark.slow
def test_other_formats_and_tables_of_subwords(parser: Path, tokenizer: Path, tmp_path: Path) -> None:
    conllu = tmp_path / "out.conllu"
    conllu.write_text(output("parse", TEXT, "--model", parser, "--format", "conllu"), encoding="utf-8")
    (item,) = read(conllu)
    assert item.structure.nodes == ("The", "keeper", "lit", "the", "lamp", ".")
    given = ["parse", TEXT, "--model", parser, "--tokenizer", tokenizer]
    assert len(output(*given, "--format", "tsv").splitlines()) == 1 + len(TEXT)
    shown = output(*given)
    assert "(relative positions of more than 25: --format tsv or json)" not in shown
    assert shown.splitlines()[1].split()[:3] == ["word", "subword", "id"]
    assert "(relative positions of more than 25: --format tsv or json)" in output(
        *given[:2], "--model", parser
    ) + output("parse", f"{TEXT[:-1]} and lit it again.", *given[2:])


@pytest.mark.slow
def test_scores_are_shown(parser: Path) -> None:
    shown = output("parse", "--evaluate", SAMPLE, "--model", parser)
    assert shown.startswith(
        "40 sentences, 319 words\n100.0 % of the words that spaCy's tokenizer makes of the text are w"
    )
    assert "words and sentences given, all words" in shown
    assert "running text, by spaCy's scorer, without punctuation" in shown
    assert output("evaluate", parser, SAMPLE) == shown
    scores = json.loads(output("evaluate", parser, SAMPLE, "--json"))
    assert (scores["items"], scores["words"]) == (40, 319)
    assert f" {scores['las']:.1f}  {scores['uas']:.1f} " in shown


def test_a_parser_is_scored_on_a_file_in_conllu(tmp_path: Path) -> None:
    (tmp_path / "config.cfg").touch()  # by which it is known; the rest is read later
    assert complaint("evaluate", tmp_path).startswith("a parser keeps no data; give a file in CoNLL-U: structpe evalu")
    told = complaint("evaluate", tmp_path, SAMPLE, "--beam", "2")
    assert told == "--beam has no effect on a parser, which is scored on CoNLL-U; leave it out"
    assert complaint("evaluate", tmp_path, "none", code=1) == "none: there is no such file or folder; check the path"


@pytest.mark.slow
def test_another_language_is_suspected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "words.conllu"
    text = SAMPLE.read_text(encoding="utf-8").replace("SpaceAfter=No", "_")
    joined = "\n".join(line[:-1] + "SpaceAfter=No" if line.endswith("\t_") else line for line in text.split("\n"))
    file.write_text(joined, encoding="utf-8")
    assert main(["parse", "--train", str(file), "--steps", "1", "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    assert " % of words are words of spaCy's tokenizer too; is --language right?" in printed.err
    assert printed.out.count("\n") == 1
    assert load_parser(tmp_path / "out").lang == "xx"


@together(
    "words, code, message",
    [
        ([], 2, 'parse: give either a text or a file: structpe parse "TEXT", or structpe parse --file FILE'),
        (
            ["a", "--file", "b"],
            2,
            'parse: give either a text or a file: structpe parse "TEXT", or structpe parse --file FILE',
        ),
        (["a", "--steps", "3"], 2, "parse: --steps has no effect here: use it with --train"),
        (
            ["--train", "a", "--out", "b", "--model", "c"],
            2,
            "parse: --model has no effect here: leave it out with --train",
        ),
        (["a", "--evaluate", "b"], 2, "parse: TEXT has no effect here: leave it out with --evaluate"),
        (["--train", "a"], 2, "parse: --train needs --out, the folder of the new parser"),
        (["--train", "nowhere", "--out", "b"], 1, "nowhere: there is no such file or folder; check the path"),
        (
            ["a", "--format", "conllu", "--tokenizer", "b"],
            2,
            "parse: CoNLL-U has words and no subwords; leave --tokenizer",
        ),
        (["a"], 1, "the pipeline 'en_core_web_sm' is not installed: python -m spacy download en_core_web_sm; or train"),
        (
            ["a", "--model", "nowhere"],
            1,
            "there is no folder 'nowhere', and no pipeline of that name is installed; check",
        ),
    ],
)
def test_what_is_wrong_is_said(words: list[str], code: int, message: str) -> None:
    assert complaint("parse", *words, code=code).startswith(message)


@pytest.mark.slow
def test_bad_texts_and_tokenizers(parser: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"caf\xe9\n")
    model = ["--model", parser]
    assert complaint("parse", "--file", bad, *model, code=1).startswith(
        f"{bad}: line 1: byte 0xe9 at column 4 is not UTF-8"
    )
    assert complaint("parse", "--file", tmp_path / "no", *model, code=1).endswith(
        "there is no such file; check the path"
    )
    assert complaint("parse", " ", *model, code=1) == "there is no sentence in the text; give at least one word"
    assert complaint("parse", "a", *model, "--tokenizer", bad, code=1).startswith(
        f"{bad}: the file is not a tokenizer ("
    )
    out = tmp_path / "out.tsv"
    complaint("parse", "--file", bad, *model, "--out", out, "--format", "tsv", code=1)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bad.txt"]


def test_an_output_is_whole_or_absent_and_has_one_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.tsv"

    def stopped() -> Iterator[str]:
        yield "half a line"
        raise KeyboardInterrupt

    def two() -> Iterator[str]:
        yield "a whole "
        monkeypatch.setattr("structpe.system.files.PATIENCE", 0.0)
        with pytest.raises(Busy, match="another writer is at work there"):
            _write(out, ["of another"])
        yield "line\n"

    with pytest.raises(KeyboardInterrupt):
        _write(out, stopped())
    assert list(tmp_path.iterdir()) == []
    with redirect_stdout(StringIO()):
        _write(out, two())
    with pytest.raises(KeyboardInterrupt):
        _write(out, stopped())
    assert [each.name for each in tmp_path.iterdir()] == ["out.tsv"]
    assert out.read_text(encoding="utf-8") == "a whole line\n"


@pytest.mark.slow
def test_losses_are_told(parser: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Tokenizer(models.WordLevel({"The": 0}, unk_token="The"))
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("removed")])
    made.save(str(tmp_path / "tokenizer.json"))
    assert main(["parse", TEXT, "--model", str(parser), "--tokenizer", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert printed.err == "structpe: 1 of 1 sentences could not be aligned without loss\n"
    assert "(1 nodes without a unit: 5; 1 pieces of text in no unit: '.')" in printed.out


def test_an_interruption_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("structpe.parsing.train", stop)
    err = StringIO()
    with redirect_stderr(err):
        assert main(["parse", "--train", str(SAMPLE), "--out", str(tmp_path / "out")]) == 130
    assert err.getvalue() == "structpe: the same command resumes the training\nstructpe: interrupted\n"
