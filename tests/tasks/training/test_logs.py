"""A log that goes on after a kill is the log of a run that was never killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from structpe.errors import StoreError
from structpe.tasks.training.reporting import CsvLog


def logged(path: Path, begun_at: int, steps: range) -> None:
    log = CsvLog(path, begun_at)
    log.begin()
    for step in steps:
        log.log_metrics({"loss": 1 / step, "rate": 0.5}, step)


def test_what_was_logged_after_the_checkpoint_is_dropped(tmp_path: Path) -> None:
    logged(tmp_path / "whole.csv", 0, range(1, 9))
    killed = tmp_path / "killed.csv"
    logged(killed, 0, range(1, 7))
    killed.write_text(killed.read_text() + "7,lo")  # the kill came in the middle of a line
    logged(killed, 4, range(5, 9))
    assert killed.read_text() == (tmp_path / "whole.csv").read_text()


def test_a_log_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(
        StoreError, match=r"log.csv: the file is damaged \(UnicodeDecodeError: .*\); remove it; the log of"
    ):
        CsvLog(tmp_path / "log.csv", 3).begin()


def test_a_new_run_begins_a_new_log(tmp_path: Path) -> None:
    logged(tmp_path / "log.csv", 0, range(1, 9))
    CsvLog(tmp_path / "log.csv", 0).begin()
    assert (tmp_path / "log.csv").read_text().split() == ["step,metric,value"]
