"""How the bench times: what works in other threads is not measured, and is no figure."""

from __future__ import annotations

import threading
import time

import pytest

from tests.experiments.script import script

TURNS = script("speed/bench/turns.py")


def busy() -> None:
    end = time.thread_time() + 0.02
    while time.thread_time() < end:
        pass


def in_another() -> None:
    thread = threading.Thread(target=busy)
    thread.start()
    thread.join()


def test_time_is_that_of_this_thread() -> None:
    assert TURNS.medians({"here": busy}, 1)["here"] >= 0.02
    with pytest.raises(TURNS.Elsewhere, match=r"of 0\.\d+ s for here, there, 0\.\d+ s were in other threads"):
        TURNS.medians({"here": busy, "there": lambda: (busy(), in_another())}, 1)


def test_what_takes_long_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TURNS, "LONGEST", 0.01)
    done: list[str] = []
    TURNS.medians({"a": lambda: (done.append("a"), busy()), "b": lambda: (done.append("b"), busy())}, 5)
    assert done == ["a", "b"]
