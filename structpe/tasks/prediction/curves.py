"""Learning curves of a study: the official metric on the validation split over the steps."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structpe.errors import needing
from structpe.objectives import METRICS, Metric
from structpe.tasks.prediction.study import Key, StudyConfig, by_row

__all__ = ["KINDS", "Line", "curve", "draw", "limits", "lines"]

Floats: TypeAlias = NDArray[np.float64]

KINDS = ("svg", "png")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d31")
"""Those that people who see few colours can tell apart (Okabe and Ito 2008), with a brown for their yellow."""
STYLES = ("-", "--", ":", "-.")
INSIDE = 4
"""Lines whose names have room inside the picture."""
BEGINNING = 0.2
"""Share of the steps that does not decide what part of the axis is shown."""


@dataclass(frozen=True, eq=False)
class Line:
    """The runs of a model with a position, as far as all of them have come.

    Attributes:
        name: of model and position.
        metric: the official one.
        steps: (k,) after which the model was validated.
        values: (seeds, k) of the metric.
    """

    name: str
    metric: Metric
    steps: Floats
    values: Floats


def draw(study: StudyConfig, keys: Sequence[Key]) -> list[Path]:
    """A picture ``curves-DATA.svg`` and ``.png`` for each data set with a validation: a line per model and position.

    The line is the mean over seeds, the band from the least to the greatest.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    made = []
    for data in dict.fromkeys(key.data for key in keys):
        if found := lines(study, [key for key in keys if key.data == data]):
            made += _picture(data, found, Path(study.out))
    return made


def lines(study: StudyConfig, keys: Sequence[Key]) -> list[Line]:
    """The lines of some runs, the best at their end first; runs without a validation so far are left out."""
    found = []
    for (_, model, position), seeds in by_row(keys).items():
        curves = [each for key in seeds if (each := curve(study.folder(key))) is not None]
        if curves:
            metric, steps, _ = min(curves, key=lambda each: len(each[1]))
            values = np.stack([values[: len(steps)] for _, _, values in curves])
            found.append(Line(f"{model}, {position}", metric, steps, values))
    return sorted(found, key=lambda line: line.values[:, -1].mean() * (1 if line.metric.less_is_better else -1))


def curve(folder: Path) -> tuple[Metric, Floats, Floats] | None:
    """The official metric, the steps of a run, and the metric on the validation split after each; None before any."""
    file = folder / "metrics.csv"
    if not file.exists():
        return None
    wanted = {f"dev_{name}": metric for name, metric in METRICS.items()}
    with file.open(encoding="utf-8", newline="") as opened:
        found = [row for row in csv.DictReader(opened) if row["metric"] in wanted]
    if not found:
        return None
    found = [row for row in found if row["metric"] == found[0]["metric"]]  # the official one comes first
    steps, values = (np.array([float(row[name]) for row in found]) for name in ("step", "value"))
    return wanted[found[0]["metric"]], steps, values


def limits(found: Sequence[Line]) -> tuple[float, float]:
    """What part of the axis is shown: all values but those of the beginning, where a model has learned nothing yet."""
    late = [line.values[:, line.steps > BEGINNING * line.steps[-1]].ravel() for line in found]
    values = np.concatenate(late)
    low, high = float(values.min()), float(values.max())
    room = 0.05 * (high - low) or 0.05 * abs(high) or 0.05
    return low - room, high + room


def _picture(data: str, found: list[Line], folder: Path) -> list[Path]:
    with needing("matplotlib", "viz"):
        import matplotlib
        from matplotlib.figure import Figure
    outside = len(found) > INSIDE
    figure = Figure(figsize=(8.5 if outside else 6.5, 4), layout="constrained")
    axes = figure.subplots()
    for number, line in enumerate(found):
        _draw_line(axes, line, COLOURS[number % len(COLOURS)], STYLES[number // len(COLOURS) % len(STYLES)])
    metric = found[0].metric
    better = "less" if metric.less_is_better else "more"
    axes.set(xlabel="step", ylabel=f"{metric.name} on the validation split ({better} is better)", ylim=limits(found))
    axes.set_title(data, loc="left", fontweight="bold")
    axes.margins(x=0.01)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    where: dict[str, Any] = {"loc": "outside right upper"} if outside else {"loc": "best"}
    (figure if outside else axes).legend(fontsize="small", frameon=False, **where)
    files = [folder / f"curves-{data}.{kind}" for kind in KINDS]
    with matplotlib.rc_context({"svg.hashsalt": "structpe"}):  # the same curves give the same file
        for file in files:
            figure.savefig(file, dpi=150, metadata={"Date": None} if file.suffix == ".svg" else None)
    return files


def _draw_line(axes: Any, line: Line, colour: str, style: str) -> None:
    mark = "o" if len(line.steps) == 1 else None  # a line of one point would not be seen
    axes.plot(line.steps, line.values.mean(axis=0), style, color=colour, label=line.name, linewidth=1.6, marker=mark)
    if len(line.values) > 1:
        low, high = line.values.min(axis=0), line.values.max(axis=0)
        axes.fill_between(line.steps, low, high, color=colour, alpha=0.15, linewidth=0)
