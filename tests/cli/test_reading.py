"""``--reader``, ``--option`` and ``--on-error``: every command that reads has them, and they mean one thing."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest
import yaml

from structpe.cli import COMMANDS
from structpe.cli._inputs import InputFile, check_file, parse_options
from structpe.cli.app import first_view
from structpe.cli.base import UsageError
from structpe.cli.main import parser
from structpe.cli.train import _of_data
from structpe.errors import ReadError
from structpe.tasks.runs import load_config
from tests.cli.running import complaint, output, structpe
from tests.together import together

READING = ("app", "convert", "encode", "evaluate", "figure", "generate", "show", "train")
ENHANCED = """# text = birds sing and fly
1\tbirds\tbird\tNOUN\t_\t_\t2\tnsubj\t2:nsubj|4:nsubj\t_
2\tsing\tsing\tVERB\t_\t_\t0\troot\t0:root\t_
3\tand\tand\tCCONJ\t_\t_\t4\tcc\t4:cc\t_
4\tfly\tfly\tVERB\t_\t_\t2\tconj\t2:conj\t_

"""


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    """A sentence whose enhanced graph has an edge more than its tree."""
    file = tmp_path / "a.conllu"
    file.write_text(ENHANCED, encoding="utf-8")
    return file


@together("name", READING)
def test_every_command_that_reads_has_the_three(name: str) -> None:
    words = {"convert": ["a", "b"], "evaluate": ["a", "b"], "generate": ["a", "b"], "app": ["a"], "figure": ["rank"]}
    more = ["--out", "o", "--encoding", "depth"] if name == "encode" else []
    said = ["--reader", "conllu", "--option", "graph=enhanced", "--option", "x=1", "--on-error", "skip"]
    given = parser().parse_args([name, *words.get(name, ["a"]), *more, *said])
    assert (given.reader, given.options, given.on_error) == ("conllu", ["graph=enhanced", "x=1"], "skip")


@pytest.mark.parametrize("name", sorted(set(READING) - {"figure"}))
def test_the_examples_show_an_option(name: str) -> None:
    assert "--option " in COMMANDS[name].example


def test_encode_takes_options(trees: Path, tmp_path: Path) -> None:
    from structpe.data.store import load

    found = {}
    for name, words in {"basic": [], "enhanced": ["--option", "graph=enhanced"]}.items():
        output("encode", trees, "--encoding", "degree", "--out", tmp_path / name, *words)
        ((degrees,),) = (tuple(each.values()) for each in load(tmp_path / name))
        found[name] = degrees.values.sum()
    assert found["enhanced"] > found["basic"]


def test_show_and_figure_take_options(trees: Path, tmp_path: Path) -> None:
    made = {}
    for name, words in {"basic": [], "enhanced": ["--option", "graph=enhanced"]}.items():
        out = tmp_path / f"{name}.html"
        output("show", trees, "--encoding", "degree", "--out", out, *words)
        made[name] = out.read_bytes()
    assert made["basic"] != made["enhanced"]
    output("figure", "pattern", "--position", "t5", "--file", trees, "--option", "graph=enhanced", "--width", "16",
           "--heads", "2", "--out", tmp_path / "a.svg")  # fmt: skip


def test_show_can_skip_bad_items(tmp_path: Path) -> None:
    file = tmp_path / "a.tokens"
    file.write_text("a b\n\nc d e\n", encoding="utf-8")
    out = tmp_path / "a.svg"
    assert "item 2" in complaint("show", file, "--index", "1", "--out", out, code=1)
    output("show", file, "--index", "1", "--out", out, "--on-error", "skip")
    assert "has 2 structures, 0..1" in complaint("show", file, "--index", "2", "--out", out, "--on-error", "skip")


@pytest.mark.parametrize(
    ("command", "rest"),
    [("encode", ["--encoding", "depth", "--out", "x"]), ("show", []), ("app", []), ("convert", ["b.conllu"])],
)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["graphs=basic"], "graph"),
        (["graph"], "--option 'graph' is not of the form KEY=VALUE"),
        (["=3"], "--option '=3' is not of the form KEY=VALUE"),
        (["graph=["], "--option 'graph=[' cannot be read: "),
        (["graph=basic", "graph=enhanced"], "--option graph is given twice; give it once"),
    ],
)
def test_mistakes_name_what_the_reader_has(
    command: str, rest: list[str], words: list[str], message: str, trees: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trees.parent)
    options = [word for option in words for word in ("--option", option)]
    code = 1 if words == ["graphs=basic"] and command != "convert" else 2
    told = complaint(command, trees, *rest, *options, code=code)
    assert message in told
    if words == ["graphs=basic"]:
        assert "reader 'conllu' has" in told
    assert sorted(path.name for path in trees.parent.iterdir()) == ["a.conllu"]


def test_train_brings_them_into_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(yaml.safe_dump({"data": {"train": "a.xml", "options": {"comment": "good"}}}))
    given = Namespace(reader="webnlg", options=["lang=de"], on_error="skip")
    data = load_config(file, _of_data(given)).data
    assert (data.reader, data.on_error, data.options) == ("webnlg", "skip", {"comment": "good", "lang": "de"})
    assert load_config(file, _of_data(Namespace(reader=None, options=[], on_error=None))).data.reader is None


def test_the_app_begins_with_them(trees: Path) -> None:
    start = first_view(Namespace(file=trees, reader="conllu", options=["graph=enhanced"], on_error="skip"))
    assert (start.form, start.file, start.reader, start.on_error) == ("file", str(trees), "conllu", "skip")
    assert json.loads(start.options) == {"graph": "enhanced"}


def test_the_app_reads_as_it_is_told(trees: Path) -> None:
    from structpe.pictures.given import item_of_file

    plain, more = item_of_file(str(trees), 0), item_of_file(str(trees), 0, "conllu", graph="enhanced")
    assert len(more.structure.edges) > len(plain.structure.edges)
    with pytest.raises(ReadError, match=r"there is no item 7; items are counted from 0"):
        item_of_file(str(trees), 7)


@pytest.mark.parametrize("name", ["reader", "options", "on_error"])
def test_how_to_read_without_a_file_is_refused(name: str) -> None:
    given = Namespace(file=None, reader=None, options=[], on_error=None)
    check_file(given)
    setattr(given, name, {"reader": "amr", "options": ["a=1"], "on_error": "skip"}[name])
    with pytest.raises(UsageError, match="is an option of reading, and no file is given; give one, or leave"):
        check_file(given)


def test_values_are_yaml_and_names_may_have_hyphens(trees: Path) -> None:
    assert parse_options(["a-b=3", "c=[x, y]", "d=", "e=no"]) == {"a_b": 3, "c": ["x", "y"], "d": None, "e": False}
    with pytest.raises(ReadError, match=r"no reader named 'conll'\. Did you mean 'conllu'"):
        InputFile.of(trees, Namespace(reader="conll", options=[], on_error=None))


def test_what_is_skipped_is_said(tmp_path: Path) -> None:
    file = tmp_path / "a.tokens"
    file.write_text("a b\n\nc d\n", encoding="utf-8")
    done = structpe("encode", file, "--encoding", "order", "--out", tmp_path / "out", "--on-error", "skip")
    assert done.returncode == 0
    assert done.stderr.startswith("skipped 1 of 3 items:")
