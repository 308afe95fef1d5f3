"""Learning curves of a study: the official metric on the validation split over the steps."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from structpe.benchmarks.metrics import METRICS
from structpe.errors import MissingExtra
from structpe.tasks.prediction.study import Key, StudyConfig, by_row

__all__ = ["curve", "draw"]


def draw(study: StudyConfig, keys: Sequence[Key]) -> list[Path]:
    """A picture ``curves-DATA.svg`` and ``.png`` for each data set with a validation: a line per model and position.

    The line is the mean over seeds, the band from the least to the greatest.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    rows = by_row(keys)
    made = []
    for data in dict.fromkeys(names[0] for names in rows):
        lines = {
            f"{model}, {position}": found
            for (of, model, position), seeds in rows.items()
            if of == data and (found := [c for key in seeds if len(c := curve(study.folder(key)))])
        }
        if lines:
            made += _picture(data, lines, Path(study.out))
    return made


def curve(folder: Path) -> np.ndarray[Any, Any]:
    """(k, 2) steps of a run, and the official metric on the validation split after each."""
    file = folder / "metrics.csv"
    if not file.exists():
        return np.zeros((0, 2))
    wanted = {f"dev_{metric}" for metric in METRICS}
    with file.open(encoding="utf-8", newline="") as lines:
        found = [(float(row["step"]), float(row["value"])) for row in csv.DictReader(lines) if row["metric"] in wanted]
    return np.array(found).reshape(-1, 2)


def _picture(data: str, lines: dict[str, list[np.ndarray[Any, Any]]], folder: Path) -> list[Path]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "viz") from None
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, curves in lines.items():
        length = min(map(len, curves))  # of seeds that are as far
        steps, values = curves[0][:length, 0], np.stack([each[:length, 1] for each in curves])
        (line,) = axes.plot(steps, values.mean(axis=0), label=name)
        if len(curves) > 1:
            axes.fill_between(steps, values.min(axis=0), values.max(axis=0), color=line.get_color(), alpha=0.2)
    axes.set(xlabel="step", ylabel="official metric, validation split", title=data)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    files = [folder / f"curves-{data}.{kind}" for kind in ("svg", "png")]
    for file in files:
        figure.savefig(file, dpi=150)
    return files
