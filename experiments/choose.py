"""What positions gain on each task that we measured, with intervals, for docs/howto/choose.md.

    python experiments/choose.py                           # the table; experiments/pages.py writes it to the page
    python experiments/choose.py docs/figures/choose.png   # the picture

A gain is the mean over seeds of the difference of the test scores of two rows, seed by seed, which differ in positions
only; its interval holds 95 % by Student's t. To lay tasks beside each other, both are divided by the error of the
second row: MAE or loss, 1 - AUC, 100 - BLEU, or the share of wrong answers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from scipy.stats import t as student

from structpe.tasks.prediction.report import read_scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["GAINS", "Gain", "draw", "table"]

HERE = Path(__file__).parent
Scores = dict[int, float]
"""The error of each seed; less is better."""


@dataclass(frozen=True)
class Gain:
    """One comparison.

    Attributes:
        task: data and metric.
        first, second: what the two rows read.
        errors: theirs, by seed.
        whole: what a score counts up to, if more is better; None if the score is an error.
    """

    task: str
    first: str
    second: str
    errors: tuple[Scores, Scores]
    whole: float | None

    @property
    def apart(self) -> list[float]:
        """How much smaller the error is, for each seed that both have."""
        mine, theirs = self.errors
        return [theirs[seed] - mine[seed] for seed in sorted(mine.keys() & theirs.keys())]

    @property
    def half(self) -> float:
        """Half of the interval that holds 95 %."""
        apart = self.apart
        return float(student.ppf(0.975, len(apart) - 1)) * stdev(apart) / len(apart) ** 0.5

    @property
    def share(self) -> tuple[float, float]:
        """The gain and half its interval, as a share of the second row's error."""
        error = fmean(self.errors[1].values())
        return fmean(self.apart) / error, self.half / error

    def scores(self) -> list[str]:
        """The mean scores of both rows, and the gain with its interval."""
        means = [fmean(each.values()) for each in self.errors]
        digits = 1 if self.whole is not None and self.whole > 1 else 3
        shown = means if self.whole is None else [self.whole - mean for mean in means]
        gain = fmean(self.apart)
        low, high = gain - self.half, gain + self.half
        return [
            *(f"{each:.{digits}f}" for each in shown),
            f"{gain:+.{digits}f} ({low:+.{digits}f} to {high:+.{digits}f})",
        ]


def study(name: str, data: str, metric: str, *rows: tuple[str, str, str, str]) -> Iterable[Gain]:
    """Pairs of rows of a study: two rows, and what they read."""
    known = read_scores(HERE / "benchmarks" / "results" / name / "scores.csv")
    for one, other, first, second in rows:
        errors = [{each.seed: each.test for each in known if each.row.split("/", 1)[1] == row} for row in (one, other)]
        whole = None if metric in ("MAE", "RMSE") else 1.0
        if whole:
            errors = [{seed: whole - score for seed, score in row.items()} for row in errors]
        yield Gain(f"{data}, {metric}", first, second, (errors[0], errors[1]), whole)


def lines(
    file: str, task: str, key: str, path: str, whole: float | None, *rows: tuple[str, str, str, str]
) -> Iterable[Gain]:
    """Pairs of rows of a file with a result in each line: ``key`` names the row, ``path`` leads to the score."""
    found = [json.loads(line) for line in (HERE / file).read_text(encoding="utf-8").splitlines()]

    def score(run: dict[str, Any]) -> float:
        value: Any = run
        for step in path.split("/"):
            value = value[step]
        return float(value) if whole is None else whole - float(value)

    for one, other, first, second in rows:
        errors = [{run["seed"]: score(run) for run in found if run[key] == row} for row in (one, other)]
        yield Gain(task, first, second, (errors[0], errors[1]), whole)


NONE = "no positions"
WALKS = ("hybrid/rwse", "hybrid/none", "random walks", NONE)
PAIRS = ("hybrid/rrwp", "hybrid/rwse", "GRIT on walks of pairs", "random walks")
TEXTS = "graph_to_text/results/"
GAINS = (
    *study("csl", "CSL, graphs alike at each node", "accuracy", WALKS),
    *study("zinc", "ZINC, molecules", "MAE", WALKS, PAIRS),
    *study("esol", "ESOL, 1,128 molecules", "RMSE", WALKS),
    *study("molhiv", "molhiv, molecules", "ROC-AUC", WALKS),
    *study("tolokers", "tolokers, one large graph", "ROC-AUC", WALKS),
    *study("minesweeper", "minesweeper, one large graph", "ROC-AUC", WALKS),
    *lines(
        f"{TEXTS}webnlg-gpu.jsonl", "WebNLG, facts to text, BLEU", "model", "scores/simplified_bleu", 100,
        ("zhu-cnn", "linearised", "label paths", "the graph as a text"),
        ("graformer", "linearised", "distances", "the graph as a text"),
    ),
    *lines(
        f"{TEXTS}little_prince-finetuning-small.jsonl", "Little Prince, AMR to text, BLEU", "model", "scores/bleu", 100,
        ("zhu-cnn", "linearised", "label paths", "the graph as a text"),
    ),
    *lines(
        "pretrained/results/little_prince.jsonl", "a pretrained model, AMR, loss", "row", "scores/test/nats", None,
        ("structure", "sequence", "distances", "its own positions only"),
    ),
    *lines(
        "roles/results.jsonl", "who did what, sample of lesson 7, right", "row", "exact", 60,
        ("labels on the paths", "a bag of concepts", "label paths", NONE),
        ("distances with directions", "a bag of concepts", "signed distances", NONE),
    ),
    *lines(
        "catalogue/results/scan-length.jsonl", "SCAN, longer texts, right", "model", "scores/24 to 48", 100,
        ("alibi-causal", "rotary", "ALiBi", "rotary"),
        ("kerple-log", "rotary", "KERPLE", "rotary"),
    ),
    *lines(
        "catalogue/results/cogs.jsonl", "COGS, words in new places, right", "model", "scores/words", 100,
        ("transformer-xl", "sinusoidal", "Transformer-XL", "sinusoids"),
        ("t5-causal", "sinusoidal", "T5", "sinusoids"),
    ),
)  # fmt: skip


def table() -> str:
    """A row for each comparison."""
    rows = [
        "| task | positions | instead of | score | instead | gain, 95 % interval | seeds |",
        "|---|---|---|--:|--:|--:|--:|",
    ]
    for gain in GAINS:
        rows.append(f"| {' | '.join([gain.task, gain.first, gain.second, *gain.scores(), str(len(gain.apart))])} |")
    return "\n".join(rows)


def draw() -> Figure:
    """A line for each comparison: the share of the error that goes, and its interval."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(8.5, 0.36 * len(GAINS) + 1), layout="constrained")
    for place, gain in enumerate(GAINS):
        mean, half = (100 * each for each in gain.share)
        clear = abs(mean) > half
        colour = "#0072b2" if clear and mean > 0 else "#d55e00" if clear else "#6b7785"
        axis.errorbar(mean, place, xerr=half, fmt="o", color=colour, capsize=3)
    rest = ["" if gain.second == NONE else f", not {gain.second}" for gain in GAINS]
    names = [f"{gain.task.rpartition(', ')[0]}:\n{gain.first}{other}" for gain, other in zip(GAINS, rest, strict=True)]
    axis.set_yticks(range(len(GAINS)), names, fontsize=7.5)
    axis.axvline(0, color="#1f2933", linewidth=0.8)
    axis.set(
        xlim=(-45, 112), ylim=(len(GAINS) - 0.5, -0.5), xlabel="percent of the error that goes, with 95 % interval"
    )
    axis.grid(axis="x", color="#eef1f4")
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    from structpe.pictures import save

    print(table())
    for file in sys.argv[1:]:
        save(draw(), file, dots=110)
