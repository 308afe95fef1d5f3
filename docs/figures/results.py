"""Draws the results on the first page, without and with positions, from the files of the experiments; measures nothing.

python docs/figures/results.py     # writes docs/figures/results.html
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from structpe.positions import MODELS

__all__ = ["panels"]

HERE = Path(__file__).parent
EXPERIMENTS = HERE.parents[1] / "experiments"
WIDTH, LEFT, RIGHT, TOP, ROW = 330, 118, 270, 50, 34
"""Units of the drawing: its width, where the axis begins and ends, where rows begin, and how high one is."""


class Panel(NamedTuple):
    """A picture: what was measured, rows of points, and the ends of the axis."""

    title: str
    unit: str
    rows: dict[str, list[float]]
    ends: tuple[float, float]
    shown: str


def study(name: str, row: str, scale: float = 1.0) -> list[float]:
    """The test scores of a row of a study, one per seed."""
    with (EXPERIMENTS / "benchmarks" / "results" / name / "scores.csv").open(encoding="utf-8") as file:
        return [scale * float(each["test"]) for each in csv.DictReader(file) if each["row"].endswith(row)]


def lines(file: str) -> list[dict[str, dict[str, float]]]:
    """The results in a file of JSON lines."""
    return [json.loads(line) for line in (EXPERIMENTS / file).read_text(encoding="utf-8").splitlines()]


def panels() -> list[Panel]:
    """What is drawn."""
    texts = lines("graph_to_text/results/webnlg-gpu.jsonl")
    bleu = {
        name: [run["scores"]["simplified_bleu"] for run in texts if run["model"] == name]
        for name in ("linearised", "zhu-cnn")
    }
    trees = lines("catalogue/results/listops.jsonl")
    accuracy = {str(run["model"]): run["scores"]["accuracy"] for run in trees if run.get("scores")}
    of_trees = [accuracy[name] for name, model in MODELS.items() if model.spec.structure == "tree" and name in accuracy]
    return [
        Panel("Molecules: error", "ZINC stand-in, mean absolute error, less is better",
              {"without": study("zinc", "/hybrid/none"), "random walks": study("zinc", "/hybrid/rwse")},
              (0, 0.35), "{:.2f}"),
        Panel("Symmetric graphs: accuracy", "CSL, percent, more is better",
              {"without": study("csl", "/hybrid/none", 100), "Laplacian": study("csl", "/hybrid/laplacian", 100)},
              (0, 100), "{:.0f} %"),
        Panel("Text from facts: BLEU", "WebNLG, more is better; the axis begins at 58",
              {"linearised": bleu["linearised"], "label paths": bleu["zhu-cnn"]}, (58, 61.5), "{:.1f}"),
        Panel("Nested lists: accuracy", "ListOps, percent, more is better; one seed per model",
              {"without": [accuracy["none"]], f"{len(of_trees)} tree models": of_trees},
              (40, 58), "{:.0f} %"),
    ]  # fmt: skip


def drawn(panel: Panel) -> Iterator[str]:
    """The parts of a picture: a row of points each, with the mean as a bar and a number."""
    low, high = panel.ends
    height = TOP + ROW * len(panel.rows) + 4
    told = "; ".join(f"{name}: mean {panel.shown.format(fmean(found))}" for name, found in panel.rows.items())
    yield f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(f"{panel.title}. {told}")}">'
    yield f'<text x="0" y="15" class="title">{escape(panel.title)}</text>'
    yield f'<text x="0" y="33" class="unit">{escape(panel.unit)}</text>'
    for place, (name, found) in enumerate(panel.rows.items()):
        y = TOP + ROW * place + ROW / 2
        kind = "with" if place else "without"
        at = [LEFT + (RIGHT - LEFT) * (value - low) / (high - low) for value in found]
        yield f'<text x="0" y="{y + 5}">{escape(name)}</text>'
        if low == 0:  # the length of a bar is a number; where the axis begins elsewhere it would deceive
            yield f'<rect x="{LEFT}" y="{y - 8}" width="{fmean(at) - LEFT:.1f}" height="16" rx="2" class="{kind}"/>'
        else:
            yield f'<line x1="{LEFT}" y1="{y}" x2="{RIGHT}" y2="{y}"/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y}" r="4" class="{kind}"/>' for x in at)
        yield f'<text x="{max(at) + 9:.1f}" y="{y + 5}" class="number">{panel.shown.format(fmean(found))}</text>'
    yield "</svg>"


def main() -> None:
    """Write the pictures."""
    inside = "\n".join("".join(drawn(panel)) for panel in panels())
    (HERE / "results.html").write_text(f'<div class="results">\n{inside}\n</div>\n', encoding="utf-8")


if __name__ == "__main__":
    main()
