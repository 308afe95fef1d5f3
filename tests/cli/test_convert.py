"""``structpe convert`` as a person runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from structpe.formats import READERS, WRITERS, read
from tests.cli.running import SAMPLE, complaint, output, structpe
from tests.datasets import SAMPLES
from tests.modules import ROOT

TREES = SAMPLES / "trees_sample" / "sample.conllu"
FACTS = SAMPLES / "kg_sample" / "test.xml"


def test_a_file_becomes_another_format(tmp_path: Path) -> None:
    out = tmp_path / "facts.amr"
    count = len(read(FACTS))
    assert output("convert", FACTS, out) == f"{out}: {count} items, written by 'amr'\n"
    assert [item.structure.nodes for item in read(out)] == [item.structure.nodes for item in read(FACTS)]
    assert [item.texts[0] for item in read(out)] == [item.texts[0] for item in read(FACTS)]


def test_a_file_comes_back(tmp_path: Path) -> None:
    output("convert", TREES, tmp_path / "a.conllu")
    assert (tmp_path / "a.conllu").read_bytes() == TREES.read_bytes()


def test_options_go_to_whom_they_belong(tmp_path: Path) -> None:
    trees = tmp_path / "trees.txt"
    trees.write_text("(S (NP (PRP It)) (VP (VBZ is) (NP (-NONE- *))))\n", encoding="utf-8")
    out = tmp_path / "trees.g6"
    words = ["--reader", "ptb", "--option", "traces=drop", "--option", "labels=drop", "--option", "preterminals=keep"]
    output("convert", trees, out, *words)
    assert read(out)[0].structure.size == 7


def test_what_was_skipped_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "a.tokens"
    file.write_text("a b\n\nc d\n", encoding="utf-8")
    out = tmp_path / "out.conllu"
    assert complaint("convert", file, out, code=1).startswith(f"{file}: item 2: line 2: ")
    assert not out.exists()
    done = structpe("convert", file, out, "--on-error", "skip")
    assert done.returncode == 0
    assert done.stdout == f"{out}: 2 items, written by 'conllu'\n"
    assert done.stderr.startswith(f"skipped 1 of 3 items:\n  {file}: item 2: line 2: ")


def test_what_the_format_cannot_say_is_skipped_too(tmp_path: Path) -> None:
    out = tmp_path / "a.conllu"
    out.write_text("old", encoding="utf-8")
    message = complaint("convert", SAMPLE / "train.txt", out, "--reader", "amr", code=1)
    assert "graph='enhanced' writes any digraph" in message
    assert out.read_text() == "old"
    done = structpe("convert", SAMPLE / "train.txt", out, "--reader", "amr", "--on-error", "skip")
    count = len(read(out))
    assert 0 < count < 612
    assert done.stderr.startswith(f"skipped {612 - count} of 612 items:\n  item ")
    assert done.stderr.rstrip().endswith(f"and {612 - count - 20} more")


def test_nothing_written_is_an_error_with_its_report(tmp_path: Path) -> None:
    file = tmp_path / "a.g6"
    file.write_text("bad line\n", encoding="utf-8")
    done = structpe("convert", file, tmp_path / "b.g6", "--on-error", "skip")
    assert done.returncode == 1
    assert done.stderr.startswith("skipped 1 of 1 items:\n")
    assert "there is no item to write" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ["a.conllu", "b.conllu", "--option", "graphs=basic"],
            2,
            "there is no option 'graphs' of the reader or the wri",
        ),
        (["a.conllu", "b.conllu", "--option", "graph"], 2, "--option 'graph' is not of the form KEY=VALUE"),
        (["a.conllu", "b.conllu", "--option", "graph=["], 2, "--option 'graph=[' cannot be read: the value is not YA"),
        (["a.conllu", "b.xyz"], 1, "no writer claims '.xyz' files; say which with to= or --writer, one of"),
        (["a.conllu", "b.conllu", "--writer", "conll"], 1, "there is no writer named 'conll'. Did you mean 'conllu'?"),
        (["a.conllu", "b.conllu", "--reader", "conll"], 1, "there is no reader named 'conll'. Did you mean 'conllu'?"),
        (["none.conllu", "b.conllu"], 1, "none.conllu: there is no such file or folder; check the path"),
        (["a.conllu", "none/b.conllu"], 1, "none/b.conllu: the file cannot be made, as there is no folder none"),
        (["a.conllu"], 2, "convert: the following arguments are required: OUT"),
    ],
)
def test_mistakes_are_explained(
    words: list[str], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.conllu").write_bytes(TREES.read_bytes())
    assert message in complaint("convert", *words, code=code)
    assert [path.name for path in tmp_path.iterdir()] == ["a.conllu"]


def test_it_lists_all_formats() -> None:
    header, _, *rows = output("convert", "--formats").splitlines()
    assert header.split() == ["format", "suffixes", "read", "written", "options", "about"]
    assert [row.split()[0] for row in rows] == sorted({*READERS, *WRITERS})
    assert next(row for row in rows if row.startswith("ptb ")).split()[:5] == ["ptb", ".ptb", ".mrg", "yes", "yes"]


def test_help_has_an_example() -> None:
    assert "structpe convert datasets/kg_sample/test.xml facts.amr" in output("convert", "--help")


@pytest.mark.slow
def test_a_file_larger_than_the_memory_it_takes(tmp_path: Path) -> None:
    """5,000 graphs need hardly more memory than 300: a graph takes two kilobytes."""
    peaks = []
    for count in (300, 5_000):
        file = tmp_path / f"{count}.g6"
        file.write_text("DQc\n" * count, encoding="ascii")
        code = (
            "import sys\nfrom structpe.cli.main import main\nfrom tests.memory import peak\n"
            f"code = main(['convert', {str(file)!r}, {str(tmp_path / 'out.g6')!r}])\n"
            "print(peak())\nsys.exit(code)"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout.split()[-1]))
    assert peaks[1] - peaks[0] < 4096  # KiB
