"""A signal that asks a process to end is heard once; the second does what it would have done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from structpe.system.processes import EndRequest, ended_by, ending
from tests.modules import ROOT

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (*SIGNALS, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_raises_and_is_as_before_after_it(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as caught, ending():
        signal.raise_signal(number)
    assert caught.value.code == 128 + number
    assert ended_by(caught.value.code) == number.name
    assert signal.getsignal(number) == before


def test_other_codes_tell_of_no_signal() -> None:
    assert [ended_by(code) for code in (0, 1, 2, 130, 137, 141, None, "x")] == ["", "", "", "SIGINT", "", "", "", ""]


def test_what_nohup_ignores_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with ending(), EndRequest("never") as asked:
        signal.raise_signal(signal.SIGHUP)
    assert asked.number == 0
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


@pytest.mark.parametrize("number", [*SIGNALS, signal.SIGINT])
def test_the_first_is_remembered_and_the_second_ends(number: signal.Signals, capfd: pytest.CaptureFixture[str]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    error = KeyboardInterrupt if number == signal.SIGINT else SystemExit
    with ending(), EndRequest("the work ends soon") as asked:
        signal.raise_signal(number)
        assert asked.number == number
        assert capfd.readouterr().err == f"{number.name}: the work ends soon\n"
        with pytest.raises(error):
            signal.raise_signal(number)
        with pytest.raises(error):
            asked.end()


def test_other_threads_hear_nothing() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    heard: list[object] = []

    def work() -> None:
        with ending(), EndRequest("never"):
            heard.extend(signal.getsignal(number) for number in SIGNALS)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert heard == before


CODE = """
import os, sys, time
from structpe.system.processes import EndRequest
with EndRequest("the work ends soon") as asked:
    print("ready", flush=True)
    while not asked.number:
        time.sleep(0.01)
    print("after the terminal is gone", flush=True)
    open(sys.argv[1], "w").write("whole")
asked.end()
"""


def test_a_terminal_that_is_closed_is_no_error(tmp_path: os.PathLike[str]) -> None:
    """Whoever writes to it would fail, with what it wanted to keep not kept."""
    leader, follower = os.openpty()
    kept = os.path.join(tmp_path, "kept")
    words = [sys.executable, "-c", CODE, kept]
    process = subprocess.Popen(words, stdin=follower, stdout=follower, stderr=follower, cwd=ROOT)
    os.close(follower)
    said = b""
    while not said.endswith(b"\n"):  # else the terminal may be closed within this line
        said += os.read(leader, 100)
    assert said.strip() == b"ready"
    os.close(leader)
    process.send_signal(signal.SIGHUP)
    assert process.wait(20) in (128 + signal.SIGHUP, -signal.SIGHUP)
    end = time.monotonic() + 5
    while not os.path.exists(kept) and time.monotonic() < end:
        time.sleep(0.01)
    with open(kept) as file:
        assert file.read() == "whole"
