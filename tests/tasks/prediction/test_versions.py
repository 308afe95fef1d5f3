"""What a number was measured with is what the process has loaded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from structpe.tasks.prediction.study import _commit, versions


@pytest.fixture
def asked_anew() -> Iterator[None]:
    _commit.cache_clear()
    yield
    _commit.cache_clear()


@pytest.mark.usefixtures("asked_anew")
def test_a_commit_that_is_checked_out_later_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    commits = iter(["", "abc", "", "def"])
    monkeypatch.setattr("structpe.tasks.prediction.study._git", lambda *words: next(commits))
    assert [versions(torch.device("cpu"))["commit"] for _ in range(2)] == ["abc", "abc"]


@pytest.mark.usefixtures("asked_anew")
def test_outside_a_checkout_there_is_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*words: object) -> str:
        raise FileNotFoundError("git")

    monkeypatch.setattr("structpe.tasks.prediction.study._git", absent)
    assert versions(torch.device("cpu"))["commit"] == ""
