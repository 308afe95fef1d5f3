"""Results as the tables and plots of docs/comparison.md."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from results import Results, read
from tasks import TASKS, Shakespeare

from structpe.positions import MODELS

__all__ = ["made", "write"]

START, END = "<!-- made by experiments/pages.py: comparison -->", "<!-- end of what is made -->"
COLUMNS = {
    "Shakespeare, bits at 64": ("shakespeare", "bits 64"),
    "at 128": ("shakespeare", "bits 128"),
    "at 512": ("shakespeare", "bits 512"),
    "SCAN, short": ("scan", "exact, up to 22 actions"),
    "long": ("scan", "exact, 24 to 48"),
    "ListOps": ("listops", "accuracy"),
    "CSL": ("csl", "accuracy"),
    "ZINC, MAE": ("zinc", "MAE"),
}
COSTS = ("time", "memory", "parameters")
STRUCTURES = ("sequence", "grid", "tree", "graph")


def write(found: Results, docs: Path) -> None:
    """Rewrite the part of the page between the marks, and the plots."""
    page = docs / "comparison.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(START)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{START}\n\n{made(found)}\n\n{END}{after}", encoding="utf-8")
    if found["shakespeare"]:
        plot_lengths(found, docs / "figures" / "comparison-lengths.svg")
    if found["cost"]:
        plot_costs(found, docs / "figures" / "comparison-costs.svg")


def made(found: Results | None = None) -> str:
    """What is between the marks: of these results, or of those that are kept."""
    found = _compared(read() if found is None else found)
    return "\n\n".join([made_with(found), table(found), not_applied(found)])


def _compared(found: Results) -> Results:
    """Results of the tasks of this table, without those that ``longer.py`` makes a table of."""
    return defaultdict(dict, {name: of_task for name, of_task in found.items() if name in (*TASKS, "cost")})


def made_with(found: Results) -> str:
    """The circumstances of all results, each value once."""
    runs = [run for of_task in found.values() for of_model in of_task.values() for run in of_model]
    facts = {key: sorted({str(run[key]) for run in runs}) for key in ("date", "torch", "python", "device", "seed")}
    commits = sorted({run["commit"] for run in runs})
    steps = ", ".join(f"{name} {task.steps} x {task.batch}" for name, task in TASKS.items())
    date, torch, python, device, seeds = (", ".join(of_key) for of_key in facts.values())
    return (
        f"Made on {date} with torch {torch}, Python {python}, {device}; commits {', '.join(commits)} (each result has "
        f"its own). Steps x batch: {steps}. {_of_seeds(seeds)}"
    )


def table(found: Results) -> str:
    """One row per model, grouped by the structure that it was made for.

    The best of a column is in bold, but only of models with several seeds: results of one seed are not ranked.
    """
    rows = sorted({model for of_task in found.values() for model in of_task}, key=_place)
    best = {title: _best(found, task, score) for title, (task, score) in COLUMNS.items()}
    lines = ["| model | for | " + " | ".join([*COLUMNS, *COSTS]) + " |", "|---|---" + "|--:" * (len(COLUMNS) + 3) + "|"]
    for model in rows:
        cells = [_shown(_scores(found, task, model, score), best[title]) for title, (task, score) in COLUMNS.items()]
        cells += [_cost(found, model, key) for key in COSTS]
        if any(cells):
            lines.append(f"| {model} | {_structure(model)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def not_applied(found: Results) -> str:
    """Why some models have no result on a task."""
    reasons: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for task in TASKS:
        for model, runs in found[task].items():
            if "why not" in runs[0]:
                reasons[task][runs[0]["why not"]].append(model)
    # Which models have not been run is not listed: a new model would make the page out of date.
    empty = "An empty cell means that the model does not apply, takes too long, or has not been run"
    lines = [f"{empty}; models without a row have not been run:", ""]
    for task, of_task in reasons.items():
        lines += [f"- {task}: {', '.join(sorted(models))}: {why}" for why, models in of_task.items()]
    return "\n".join(lines)


def plot_lengths(found: Results, file: Path) -> None:
    """Bits per character over the length of the text; the models that degrade least and most are named."""
    figure, axes = plt.subplots(figsize=(8, 5))
    curves = {}
    for model, runs in found["shakespeare"].items():
        values = [_scores(found, "shakespeare", model, f"bits {n}") for n in Shakespeare.lengths]
        if "scores" in runs[0] and values[0]:
            curves[model] = [statistics.mean(v) if v else float("nan") for v in values]
    ranked = sorted((m for m in curves if curves[m][-1] == curves[m][-1]), key=lambda m: curves[m][-1])
    named = {*ranked[:4], *ranked[-3:], *(m for m in ("alibi", "sinusoidal", "rotary", "t5", "none") if m in curves)}
    for model, values in curves.items():
        style = (
            {"linewidth": 2.0, "label": model, "zorder": 3} if model in named else {"color": "0.8", "linewidth": 0.8}
        )
        axes.plot(Shakespeare.lengths, values, marker=".", **style)
    axes.set_xscale("log", base=2)
    axes.set_xticks(Shakespeare.lengths, [str(n) for n in Shakespeare.lengths])
    axes.set_xlabel("characters of a test text; trained on 64")
    axes.set_ylabel("bits per character")
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda i: curves[labels[i]][-1])
    axes.legend([handles[i] for i in order], [labels[i] for i in order], frameon=False, fontsize=8, loc="upper left")
    _save(figure, file)


def plot_costs(found: Results, file: Path) -> None:
    """Time of a step against memory, both relative to no position model."""
    figure, axes = plt.subplots(figsize=(8, 5))
    colors = dict(zip(STRUCTURES, ("C0", "C1", "C2", "C3"), strict=True))
    for structure, color in colors.items():
        points = [
            (runs[0]["memory"], runs[0]["time"], model)
            for model, runs in found["cost"].items()
            if "time" in runs[0] and _structure(model) == structure
        ]
        axes.scatter([p[0] for p in points], [p[1] for p in points], s=14, color=color, label=structure)
        for memory, slow, model in points:
            if slow > 4 or memory > 5:
                axes.annotate(model, (memory, slow), fontsize=6, xytext=(3, 2), textcoords="offset points")
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("memory kept for the backward pass, relative to no position model")
    axes.set_ylabel("time of a training step, relative")
    axes.legend(frameon=False, title="made for")
    _save(figure, file)


def _save(figure: Any, file: Path) -> None:
    plt.rcParams["svg.hashsalt"] = "structpe"
    for side in ("top", "right"):
        figure.axes[0].spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def _structure(model: str) -> str:
    return "" if model == "none" else MODELS[model.partition(" ")[0]].spec.structure


def _place(model: str) -> tuple[int, str]:
    structure = _structure(model)
    return STRUCTURES.index(structure) if structure else -1, model


def _of_seeds(seeds: str) -> str:
    if "," in seeds:
        return f"Seeds {seeds}; ± sample deviation; models of one seed are not ranked."
    return f"All results are of one seed, {seeds}: nothing is ranked, and no deviation is known."


def _scores(found: Results, task: str, model: str, score: str) -> list[float]:
    values = [run.get("scores", {}).get(score) for run in found[task].get(model, [])]
    return [value for value in values if value is not None]


def _best(found: Results, task: str, score: str) -> float | None:
    means = [statistics.mean(v) for model in found[task] if len(v := _scores(found, task, model, score)) > 1]
    pick = min if TASKS[task].better[score] == "less" else max
    return pick(means) if means else None


def _shown(values: Sequence[float], best: float | None) -> str:
    if not values:
        return ""
    mean = statistics.mean(values)
    text = f"{mean:.2f}" if mean < 10 else f"{mean:.1f}"
    if len(values) > 1:
        text += f" ± {statistics.stdev(values):.2f}"
    return f"**{text}**" if mean == best and len(values) > 1 else text


def _cost(found: Results, model: str, key: str) -> str:
    runs = found["cost"].get(model, [])
    if not runs or key not in runs[0]:
        return ""
    return f"{runs[0][key]:,}" if key == "parameters" else f"{runs[0][key]:.2f}"
