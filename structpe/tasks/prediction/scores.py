"""The scores of single runs, and what two rows of a study differ by."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from scipy import stats

from structpe.errors import ConfigError
from structpe.files import atomic_write
from structpe.objectives import METRICS
from structpe.tasks.prediction.outcome import Outcome
from structpe.tasks.prediction.study import Key, StudyConfig

__all__ = ["Difference", "Score", "difference", "read", "scores", "write"]


@dataclass(frozen=True)
class Score:
    """The official metric of a finished run.

    Attributes:
        row: ``DATA/MODEL/POSITION`` of the study.
        seed: of the run; also its split, where there are several.
        metric: name of the metric.
        test, valid: on these splits; None if there is no validation split.
    """

    row: str
    seed: int
    metric: str
    test: float
    valid: float | None


@dataclass(frozen=True)
class Difference:
    """By how much a row is better than another, over the seeds that both have.

    With d_i the difference of the two test scores of seed i, positive where the first row is better: the mean of d_i,
    its sample deviation, and the two-sided p of Student's t test that the mean is 0 (n - 1 degrees of freedom). The
    seeds share their splits and the order of their batches, hence pairs. A p of three seeds says little: it supposes
    normal differences, and only large ones become small p.

    Attributes:
        first, second: rows.
        metric: name of the metric.
        seeds: n.
        mean, deviation: of d_i.
        p: of the test; 0 or 1 where all d_i are equal.
    """

    first: str
    second: str
    metric: str
    seeds: int
    mean: float
    deviation: float
    p: float

    def __str__(self) -> str:
        name = METRICS[self.metric].name
        if self.mean:
            how = f"is {'better' if self.mean > 0 else 'worse'} than {self.second} by {abs(self.mean):.4g} {name}"
        else:
            how = f"has the mean {name} of {self.second}"
        return f"{self.first} {how} (± {self.deviation:.2g} over {self.seeds} seeds; paired t test, p = {self.p:.2g})"


def scores(study: StudyConfig, keys: Sequence[Key]) -> list[Score]:
    """Of all finished runs."""
    found = ((key, Outcome.load(study.folder(key))) for key in keys)
    return [
        Score(str(key).rpartition("/")[0], key.seed, done.metric, done.test, done.valid)
        for key, done in found
        if done is not None
    ]


def difference(known: Sequence[Score], first: str, second: str) -> Difference:
    """By how much the first row is better than the second on the test split.

    Raises:
        ConfigError: a row has no finished run, the rows have another metric, or share fewer than two seeds.
    """
    mine, theirs = ({each.seed: each for each in known if each.row == row} for row in (first, second))
    for row, found in ((first, mine), (second, theirs)):
        if not found:
            rows = ", ".join(dict.fromkeys(each.row for each in known)) or "none"
            raise ConfigError(f"there is no finished run of {row}; those with finished runs: {rows}")
    metrics = {each.metric for each in (*mine.values(), *theirs.values())}
    if len(metrics) > 1:
        several = " and ".join(sorted(metrics))
        raise ConfigError(f"{first} and {second} are scored by {several}; give two rows of the same data")
    shared = sorted(mine.keys() & theirs.keys())
    if len(shared) < 2:
        raise ConfigError(
            f"{first} and {second} share {len(shared)} finished seed{'' if len(shared) == 1 else 's'}; "
            f"a paired test needs two, run more"
        )
    (metric,) = metrics
    sign = -1 if METRICS[metric].less_is_better else 1
    apart = [sign * (mine[seed].test - theirs[seed].test) for seed in shared]
    mean, deviation = statistics.fmean(apart), statistics.stdev(apart)
    p = float(stats.ttest_1samp(apart, 0).pvalue) if deviation else float(mean == 0)
    return Difference(first, second, metric, len(shared), mean, deviation, p)


def write(known: Sequence[Score], file: Path) -> None:
    """``scores.csv``: a line per run."""
    atomic_write(file, lambda hidden: _write(known, hidden))


def _write(known: Sequence[Score], path: Path) -> None:
    names = [field.name for field in fields(Score)]
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(names)
        writer.writerows([getattr(each, name) for name in names] for each in known)


def read(file: Path) -> list[Score]:
    """What ``write`` wrote."""
    with file.open(newline="", encoding="utf-8") as stream:
        return [
            Score(
                row["row"],
                int(row["seed"]),
                row["metric"],
                float(row["test"]),
                float(row["valid"]) if row["valid"] else None,
            )
            for row in csv.DictReader(stream)
        ]
