"""Times of ways that take turns."""

from __future__ import annotations

import gc
import re
import sys
from datetime import date
from functools import partial
from pathlib import Path

import pytest
import torch

from tests.experiments.script import script
from tests.modules import ROOT

TIMING = script("speed/timing.py")


def test_ways_take_turns_and_rounds_that_warm_up_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now, done = [0.0], []
    took = {"a": iter((90, 1, 2, 9)), "b": iter((80, 5, 6, 7))}
    monkeypatch.setattr(TIMING, "clock", lambda device: now[0])

    def run(name: str) -> None:
        done.append(name)
        now[0] += next(took[name])

    found = TIMING.medians({name: partial(run, name) for name in took}, rounds=3)
    assert done == ["a", "b"] * 4
    assert found == {"a": 2, "b": 6}
    assert gc.isenabled()


def test_garbage_is_collected_again_after_an_error() -> None:
    def fails() -> None:
        assert not gc.isenabled()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        TIMING.medians({"a": fails}, 1)
    assert gc.isenabled()


def test_with_one_thread_the_time_is_that_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TIMING.time, "process_time", lambda: 1.0)
    monkeypatch.setattr(TIMING.time, "perf_counter", lambda: 2.0)
    for threads, seconds in ((1, 1.0), (2, 2.0)):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        assert TIMING.clock() == seconds


def test_a_result_begins_with_how_it_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [str(ROOT / "experiments" / "speed" / "linear.py"), "--write", str(tmp_path / "HIV.csv")]
    monkeypatch.setattr(sys, "argv", command)
    monkeypatch.setattr(TIMING, "RESULTS", tmp_path)
    TIMING.write("linear", "\n| a |\n|---|\n| 1 |\n")
    head, empty, *table = (tmp_path / "linear.md").read_text(encoding="utf-8").splitlines()
    assert (empty, table) == ("", ["| a |", "|---|", "| 1 |"])
    assert head.startswith("`python experiments/speed/linear.py --write HIV.csv`, ")  # of a path the name only
    assert str(tmp_path) not in head
    assert date.today().isoformat() in head
    assert re.search(rf"PyTorch {re.escape(torch.__version__)}\b.*; seed 0\.$", head)
    assert TIMING.processor() in head
