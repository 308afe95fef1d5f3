"""What people see holds nothing that a terminal obeys; what programs read is as it was, to the byte."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from structpe.cli.base import print_table
from structpe.cli.main import main
from structpe.system.printing import escaping, printable, say, show_error, unescaped
from structpe.system.progress import progress_bar
from tests.representatives import only

CLEAR = "\x1b[2J\x1b]0;mine\x07"
DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
AMR = "# ::id a\n(w / {name} :ARG0 (b / boy)"


class Terminal(io.StringIO):
    """As a person sees it."""

    def isatty(self) -> bool:
        return True


def obeyed(letter: str) -> bool:
    """By what Unicode says of a character."""
    kind = unicodedata.category(letter)
    return (kind in ("Cc", "Zl", "Zp", "Cs") and letter not in "\n\t") or unicodedata.bidirectional(
        letter
    ) in DIRECTIONS


@pytest.mark.parametrize("step", only([1, 61], 61))
def test_every_character_there_is(step: int) -> None:
    """Of all planes but the first two some are enough: there, Unicode has given few of them a meaning."""
    letters = [chr(code) for code in (*range(0x20000), *range(0x20000, sys.maxunicode + 1, step))]
    acting = [letter for letter in letters if obeyed(letter)]
    assert not [f"U+{ord(letter):04X}" for letter in acting if printable(letter) == letter]
    others = "".join({*letters} - {*acting})
    assert not {*others} - {*printable(others)}
    assert len(others) == len(printable(others))


@given(st.text())
def test_nothing_is_obeyed_and_nothing_is_lost(text: str) -> None:
    shown = printable(text)
    assert not any(map(obeyed, shown))
    assert printable(shown) == shown
    if "\\" not in text:
        assert shown.encode("latin-1", "backslashreplace").decode("unicode_escape") == text
    if not any(map(obeyed, text)):
        assert shown == text


def test_errors_are_escaped_wherever_they_lead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (f"a{CLEAR}.amr", "a\x9b2J.amr", "a\u202e.amr", "a\r.amr", "a\udcff.amr"):
        assert main(["convert", name, "b.amr"]) == 1
        told = capsys.readouterr().err
        assert told.startswith("structpe: a")
        assert not any(map(obeyed, told))
        assert printable(name) in told


def test_what_a_file_says_is_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.amr"
    file.write_text(
        "# ::id x" + CLEAR + "\n(a / b :ARG0 (a / c" + CLEAR + ") :ARG1 (" + CLEAR + "))\n\n(a / b)\n", encoding="utf-8"
    )
    main(["convert", str(file), str(tmp_path / "b.amr"), "--reader", "amr", "--on-error", "skip"])
    told = capsys.readouterr()
    assert not any(map(obeyed, told.err + told.out))


def test_a_message_is_escaped_in_a_pipe_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / f"b{CLEAR}.conllu"
    source = Path(__file__).parents[1] / "datasets" / "trees_sample" / "sample.conllu"
    assert main(["convert", str(source), str(target)]) == 0
    assert printable(str(target)) in capsys.readouterr().out
    assert target.exists()


def test_data_are_not_touched(tmp_path: Path) -> None:
    """A file that is converted, and a folder that is printed for another program."""
    source, name = tmp_path / "a.conllu", "x\x1b[2J\x85\u202ey"
    source.write_text(f"1\t{name}\t_\t_\t_\t_\t0\troot\t_\t_\n\n", encoding="utf-8", newline="\n")
    assert main(["convert", str(source), str(tmp_path / "b.conllu")]) == 0
    assert name in (tmp_path / "b.conllu").read_text(encoding="utf-8")
    words = [sys.executable, "-c", f"from structpe.system.printing import escaping\nwith escaping(): print({name!r})"]
    done = subprocess.run(words, capture_output=True, check=True, env=os.environ | {"PYTHONIOENCODING": "utf-8"})
    assert done.stdout == f"{name}\n".encode()


def test_on_a_terminal_data_are_escaped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with escaping():
        print("a\tb" + CLEAR)
        print("c\u2028d", file=sys.stderr)
        sys.stdout.writelines(["\x9b\n"])
        assert sys.stdout.isatty()
    assert (sys.stdout, sys.stderr) == (out, err)
    assert out.getvalue() == "a\tb\\x1b[2J\\x1b]0;mine\\x07\n\\x9b\n"
    assert err.getvalue() == "c\\u2028d\n"


def test_a_log_is_escaped_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    with escaping(everything=True):
        print(CLEAR)
    assert "\x1b" not in out.getvalue()


def test_what_training_says_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"run{CLEAR}")
    assert capsys.readouterr().err == "run\\x1b[2J\\x1b]0;mine\\x07\n"


def test_tables_are_bold_and_their_cells_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", Terminal())
    with escaping():
        print_table(["name"], [[CLEAR], ["plain"]])
        assert unescaped(sys.stdout) is not sys.stdout
    shown = sys.stdout.getvalue()  # type: ignore[attr-defined]
    assert "\\x1b[2J" in shown
    assert "\x1b[2J" not in shown
    assert "\x1b[1m" in shown


def test_bars_move_and_what_is_printed_meanwhile_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    err = Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    with escaping(), progress_bar("doing") as tell:
        tell(1, 2)
        print("\x9b2J" + CLEAR, file=sys.stderr)
    assert sys.stderr is err
    assert "\\x9b2J\\x1b[2J" in err.getvalue()
    assert "\x9b" not in err.getvalue()
    assert "\x1b[2J" not in err.getvalue()
    assert "\x1b[" in err.getvalue(), "the bar moves"


def test_traces_are_escaped(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    with pytest.raises(Exception, match=r"no such file"):
        main(["convert", f"a{CLEAR}.amr", "b.amr", "--debug"])
    assert sys.excepthook is show_error
    error = ValueError(CLEAR)
    show_error(ValueError, error, None)
    assert capsys.readouterr().err == "ValueError: \\x1b[2J\\x1b]0;mine\\x07\n"


def test_rich_finds_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    err = Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    with escaping():
        assert Console(stderr=True).file is err
