"""Help, version, completion, exit codes: what all commands share."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from argparse import Namespace

import pytest

import structpe
from structpe.cli import COMMANDS, main
from structpe.cli.base import Command
from structpe.errors import ConfigError, PositionError, ReadError
from tests.cli.running import complaint, complaint_of_process, new_process, output
from tests.together import together

NAMES = tuple(COMMANDS)


def test_help_lists_every_command() -> None:
    shown = output("--help")
    assert all(f"\n    {name} " in shown for name in NAMES)
    assert output() == shown


@together("name", NAMES)
def test_each_command_shows_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main.main([name, "--help"])
    assert not end.value.code
    shown = capsys.readouterr().out
    assert re.search(rf"example:\n  structpe {name}\s", shown)
    assert "Traceback" not in shown


def test_version() -> None:
    assert output("--version") == f"structpe {structpe.__version__}\n"


def test_help_imports_nothing_heavy() -> None:
    """So that it is there at once."""
    assert "usage: structpe" in new_process("--help").stdout
    code = "import sys; from structpe.cli.main import parser; parser(); print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "numpy", "scipy", "rich", "yaml", "msgspec", "shtab"} & set(loaded)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trian"], "there is no command named 'trian'. Did you mean 'train'? Known: " + ", ".join(NAMES)),
        (["--versoin"], "the following arguments are required: COMMAND; see 'structpe --help'"),
        (["train"], "train: the following arguments are required: CONFIG; see 'structpe train --help'"),
        (["evaluate", "a", "b", "3"], "evaluate: '3' is one argument too many; see 'structpe evaluate --help'"),
        (
            ["positions", "--width", "wide"],
            "positions: argument --width: invalid int value: 'wide'; see 'structpe positions --help'",
        ),
        (
            ["positions", "--widht", "3"],
            "positions: there is no option named '--widht'. Did you mean '--width'? "
            "Known: --help, --debug, --import, --width, --heads, --layers, --notes, --sort, --json, --structure, "
            "--injection, --reference, --learnable, --no-learnable, --recurring, --no-recurring, --unbound, "
            "--no-unbound, --decodes, --no-decodes",
        ),
    ],
)
def test_a_wrong_command_line_is_explained(words: list[str], message: str) -> None:
    assert (complaint_of_process if words == ["trian"] else complaint)(*words) == message


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion(shell: str) -> None:
    script = output("--print-completion", shell)
    assert all(name in script for name in NAMES)
    if shell == "bash":
        assert "_shtab_compgen_files" in script, "files are completed where a file is wanted"
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


class Failing(Command):
    """Raises what it is told to."""

    example = "structpe failing"
    error: BaseException

    def arguments(self, parser: object) -> None:
        pass

    def run(self, given: Namespace) -> None:
        raise self.error


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> type[Failing]:
    list(COMMANDS)
    monkeypatch.setitem(COMMANDS._classes, "failing", Failing)
    monkeypatch.setattr(Failing, "name", "failing", raising=False)
    return Failing


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ReadError("no graph").at("a.txt", "item 3"), 1, "a.txt: item 3: no graph"),
        (ConfigError("no such key"), 2, "no such key"),
        (PositionError("no such model"), 2, "no such model"),
        (PermissionError(13, "Permission denied", "/a.txt"), 1, "/a.txt: Permission denied; check its permissions"),
        (
            OSError(28, "No space left on device"),  # where a file is written to, its name is not known
            1,
            "No space left on device; make room, then start the same command again",
        ),
        (
            RuntimeError("I/O error: No space left on device (os error 28)"),
            1,
            "No space left on device; make room, then start the same command again",
        ),
        (
            UnicodeEncodeError("ascii", "naïve", 2, 3, "ordinal not in range(128)"),
            1,
            "the output is in ascii, which has no '\\xef'; set PYTHONIOENCODING=utf-8",
        ),
        (KeyboardInterrupt(), 130, "interrupted"),
        (
            ZeroDivisionError("by zero"),
            1,
            "ZeroDivisionError: by zero. This is a bug in structpe, please report it; add --debug to see the traceback",
        ),
    ],
)
def test_every_error_ends_in_one_line(
    failing: type[Failing],
    error: BaseException,
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(failing, "error", error, raising=False)
    assert main.main(["failing"]) == code
    assert capsys.readouterr().err == f"structpe: {message}\n"


def test_an_interruption_that_lightning_swallows_is_one_all_the_same(
    failing: type[Failing], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    end = SystemExit(1)
    end.__context__ = KeyboardInterrupt()
    monkeypatch.setattr(failing, "error", end, raising=False)
    assert main.main(["failing"]) == 130
    assert capsys.readouterr().err == "structpe: interrupted\n"


def test_an_interruption_before_the_command_begins_is_one_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "sleeping", interrupted)
    assert main.main(["cite", "t5"]) == 130
    assert capsys.readouterr().err == "structpe: interrupted\n"


def test_debug_shows_where_an_error_arose(failing: type[Failing], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failing, "error", ReadError("no graph"), raising=False)
    with pytest.raises(ReadError, match="no graph"):
        main.main(["failing", "--debug"])


def test_a_reader_that_goes_away_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "structpe", "encodings"], stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")
