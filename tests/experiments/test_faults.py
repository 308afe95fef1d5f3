"""The campaign of faults: a few of its cases, and that it finds what it is to find."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.experiments.script import script
from tests.modules import ROOT

pytestmark = pytest.mark.early


@pytest.fixture(scope="module")
def faults() -> Iterator[ModuleType]:
    folder = str(ROOT / "experiments" / "faults")
    sys.path.insert(0, folder)
    try:
        yield script("faults/run.py")
    finally:
        sys.path.remove(folder)


@pytest.fixture(scope="module")
def address(faults: ModuleType) -> Iterator[str]:
    with faults.serving() as found:
        yield found


def numbers(faults: ModuleType, *wanted: tuple[str, str]) -> list[int]:
    """The first case of each command with each kind."""
    found: dict[tuple[str, str], int] = {}
    for number in range(2000):
        command, kind, _ = faults.drawn(0, number)
        found.setdefault((command.name, kind), number)
    return [found[each] for each in wanted]


CASES = (("convert", "SIGTERM"), ("convert", "full disk"), ("data", "kill"))


@pytest.mark.slow
def test_some_cases_are_survived(faults: ModuleType, address: str) -> None:
    for number in numbers(faults, *CASES):
        found = faults.case(0, number, address)
        assert found.outcome in ("went on", "refused", "untouched"), found


def test_a_case_is_a_function_of_the_seed_and_its_number(faults: ModuleType) -> None:
    drawn = [[faults.drawn(seed, number)[:2] for number in range(64)] for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert sum(kind == "kill" for _, kind in drawn[0]) == 40


def test_what_is_left_behind_or_changed_is_found(faults: ModuleType, address: str) -> None:
    command = faults.COMMANDS["convert"]
    expected, whole = faults.undisturbed("convert", address)
    assert whole.events > 0
    with faults.place(command, address) as folder:
        (folder / ".graphs.amr.1.tmp").write_text("half")
        told = "left behind: .graphs.amr.1.tmp; missing: graphs.amr"
        assert faults.different(expected, command.result(folder)) == told
        (folder / ".graphs.amr.1.tmp").rename(folder / "graphs.amr")
        assert faults.different(expected, command.result(folder)) == "other content: graphs.amr"


@pytest.mark.parametrize(
    "said", ["", "Traceback\nstructpe: a", "structpe: ValueError: x. This is a bug in structpe, y"]
)
def test_an_unclear_refusal_is_found(faults: ModuleType, said: str) -> None:
    ended = faults.Ended(1, said, 0.0, 0)
    assert faults.unclear(ended).startswith("no clear line")
    assert faults.unclear(faults.Ended(99, said, 0.0, 0)).startswith("exit code 99")
    assert faults.unclear(faults.Ended(1, "structpe: make room\n", 0.0, 0)) == ""


def test_a_page_says_what_was_found(faults: ModuleType) -> None:
    cases = [
        faults.Case(0, "encode", "kill", "went on"),
        faults.Case(1, "encode", "kill", "FIND", "left behind: x"),
        faults.Case(2, "data", "two writers", "untouched"),
    ]
    page = faults.page(cases, 7)
    assert "3 faults, 2 of them kills; `python experiments/faults/run.py --cases 3 --seed 7 --write`" in page
    assert "| encode | kill | 2 | 1 | 0 | 0 | 1 |\n| data | two writers | 1 | 0 | 0 | 1 | 0 |\n" in page
    assert "- 1: encode, kill: left behind: x\n" in page


def test_kills_alone_are_shared_out_among_their_commands(faults: ModuleType) -> None:
    drawn = [faults.drawn(0, number, True) for number in range(100)]
    assert Counter(command.name for command, _, _ in drawn) == dict.fromkeys(faults.KILLED, 25)
    assert list(faults.KILLED) == ["encode, two jobs", "generate", "convert", "predict"]
    assert {kind for _, kind, _ in drawn} == {"kill"}
    page = faults.page([faults.Case(0, "predict", "kill", "went on")], 7, True)
    assert page.startswith(
        "1 faults, 1 of them kills; `python experiments/faults/run.py --kills --cases 1 --seed 7 --wr"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the folder of a process")
def test_a_process_that_outlives_a_killed_one_is_found_and_ended(faults: ModuleType, tmp_path: Path) -> None:
    assert faults.outliving(tmp_path, 0) == []
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], cwd=tmp_path) as process:
        assert faults.outliving(tmp_path, 0.1) == [process.pid]
    assert process.returncode == -signal.SIGKILL


def test_what_happens_to_files_of_a_user_is_found(faults: ModuleType, address: str) -> None:
    command = faults.COMMANDS["convert"]
    expected, _ = faults.undisturbed("convert", address)
    with faults.place(command, address) as folder:
        assert faults.different(expected, command.result(folder)) == "missing: graphs.amr"
        (folder / ".notes.tmp" / "mine").unlink()
        (folder / "precious" / "thesis.txt").write_text("")
        told = "missing: .notes.tmp/mine, graphs.amr; other content: precious/thesis.txt"
        assert faults.different(expected, command.result(folder)) == told
