"""Without a terminal, long work prints a line every ten seconds, and short work prints none."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from structpe.system import progress as progress_module
from structpe.system.progress import progress_bar


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now.seconds)
    return now


def test_a_line_every_ten_seconds_with_the_time_that_is_left(
    clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_bar("writing") as tell:
        clock.seconds += 8  # reading
        for done in range(1, 1001):
            tell(done, 1000)
            clock.seconds += 0.3
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "writing: 8 of 1,000, about 5 min left"
    assert lines[1] == "writing: 42 of 1,000, about 5 min left"
    assert lines[-1] == "writing: 994 of 1,000, about 2 s left"
    assert len(lines) == 30


def test_what_is_soon_done_says_nothing(clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("writing") as tell:
        clock.seconds += 9
        tell(1, 1)
    assert capsys.readouterr().err == ""


def test_a_total_that_is_not_known_and_the_next_file(
    clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_bar("downloading") as tell:
        tell(5, 0)
        clock.seconds += 11
        tell(5_000, 0)
        tell(10, 100)
        clock.seconds += 11
        tell(60, 100)
    assert capsys.readouterr().err.splitlines() == [
        "downloading: 5,000",
        "downloading: 60 of 100, about 9 s left",
    ]
