"""Scores of single runs, and the paired test, against numbers worked out by hand and by plain formulas."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from scipy import integrate

from structpe.errors import ConfigError
from structpe.tasks.prediction.report import Score, difference, read_scores, scores, write_rows

from .test_report import finished, key, study


def row(name: str, values: dict[int, float], metric: str = "mae") -> list[Score]:
    return [Score(name, seed, metric, test, None) for seed, test in values.items()]


def by_density(t: float, degrees: int) -> float:
    """Two-sided p of Student's t, by the integral of its density."""
    scale = math.gamma((degrees + 1) / 2) / (math.sqrt(degrees * math.pi) * math.gamma(degrees / 2))
    inside, _ = integrate.quad(lambda x: scale * (1 + x * x / degrees) ** (-(degrees + 1) / 2), -abs(t), abs(t))
    return 1 - inside


def test_the_difference_is_that_of_the_pairs() -> None:
    known = row("d/a/none", {0: 0.10, 1: 0.20, 2: 0.30, 7: 9.0}) + row("d/b/none", {2: 0.36, 1: 0.24, 0: 0.12})
    found = difference(known, "d/a/none", "d/b/none")  # less is better: differences 0.02, 0.04, 0.06
    assert (found.seeds, found.metric) == (3, "mae")
    assert found.mean == pytest.approx(0.04)
    assert found.deviation == pytest.approx(0.02)
    assert found.p == pytest.approx(by_density(0.04 / (0.02 / math.sqrt(3)), 2))
    assert str(found) == "d/a/none is better than d/b/none by 0.04 MAE (± 0.02 over 3 seeds; paired t test, p = 0.074)"
    turned = difference(known, "d/b/none", "d/a/none")
    assert (turned.mean, turned.p) == (pytest.approx(-found.mean), pytest.approx(found.p))
    assert str(turned).startswith("d/b/none is worse than d/a/none by 0.04 MAE")


def test_where_more_is_better_the_sign_turns() -> None:
    known = row("d/a/x", {0: 0.9, 1: 0.8}, "accuracy") + row("d/b/x", {0: 0.7, 1: 0.7}, "accuracy")
    assert difference(known, "d/a/x", "d/b/x").mean == pytest.approx(0.15)


@pytest.mark.parametrize(("apart", "p"), [(0.5, 0.0), (0.0, 1.0)])
def test_differences_that_are_all_equal_have_a_p_too(apart: float, p: float) -> None:
    known = row("d/a/x", {0: 1.0, 1: 2.0}) + row("d/b/x", {0: 1.0 + apart, 1: 2.0 + apart})
    found = difference(known, "d/a/x", "d/b/x")
    assert found.p == p
    said = "is better than d/b/x by 0.5 MAE" if apart else "has the mean MAE of d/b/x"
    assert str(found).startswith(f"d/a/x {said} (± 0 over 2 seeds")


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("d/c/x", "there is no finished run of d/c/x; those with finished runs: d/a/x, d/b/x, e/a/x"),
        ("d/b/x", "d/a/x and d/b/x share 1 finished seed; a paired test needs two, run more"),
        ("e/a/x", "d/a/x and e/a/x are scored by mae and rocauc; give two rows of the same data"),
    ],
)
def test_what_cannot_be_compared_says_why(second: str, said: str) -> None:
    known = row("d/a/x", {0: 1.0, 1: 2.0}) + row("d/b/x", {1: 1.0, 2: 1.0}) + row("e/a/x", {0: 1.0}, "rocauc")
    with pytest.raises(ConfigError, match=f"^{re.escape(said)}$"):
        difference(known, "d/a/x", second)


def test_scores_are_those_of_finished_runs_and_are_read_as_they_were_written(tmp_path: Path) -> None:
    config = study(tmp_path)
    finished(config, key("rings/a/none/2"), 1 / 3, valid=0.1)
    finished(config, key("rings/b/none/0"), 0.25, valid=None)
    known = scores(config, config.keys())
    assert known == [Score("rings/b/none", 0, "mae", 0.25, None), Score("rings/a/none", 2, "mae", 1 / 3, 0.1)]
    write_rows(known, Score, tmp_path / "scores.csv")
    assert read_scores(tmp_path / "scores.csv") == known
