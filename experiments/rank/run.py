"""How high a rank position models give the scores of attention (Chen et al. 2021, theorem 1), measured for all.

    python experiments/rank/run.py

Writes docs/figures/rank.png and rank.svg, and experiments/rank/results.md. The study plots trained models; here all
numbers are random, which shows what a model can say: the bounds of the theorem, reached.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from ranks import Setting, ranks, scores, singular_values

from structpe.positions import MODELS

FIGURE = Path(__file__).parents[2] / "docs" / "figures" / "rank"
SETTING = Setting()
DRAWN: dict[str, tuple[Any, str, str]] = {
    "none": ([], "#999999", "-"),
    "learned (at the input)": ("learned", "#d55e00", "-"),
    "sinusoidal (at the input)": ("sinusoidal", "#e69f00", "--"),
    "abs-scalar, r = 64": ("abs-scalar", "#56b4e9", "--"),
    "diet-abs, r = 64": ("diet-abs", "#0072b2", "-"),
    "diet-abs, r = 128": ({"name": "diet-abs", "rank": 128}, "#009e73", "-"),
    "diet-rel": ("diet-rel", "#cc79a7", "-"),
    "t5": ("t5", "#000000", ":"),
}
"""Legend, position model, colour, line."""


def main() -> None:
    """Draw and tabulate."""
    draw()
    tabulate()


def draw() -> None:
    """Singular values of the first head: of what positions say alone, and of all scores."""
    plt.rcParams.update({"font.family": "DejaVu Sans", "svg.fonttype": "path", "svg.hashsalt": "structpe"})
    figure, both = plt.subplots(1, 2, figsize=(12, 4.6), sharey=True, layout="constrained")
    titles = ("positions alone", "content and positions: all scores")
    for axes, content, title in zip(both, (0.0, 1.0), titles, strict=True):
        for legend, (position, colour, line) in DRAWN.items():
            values = singular_values(scores(position, replace(SETTING, content=content)))[0]
            kept = values[values > 1e-9]
            if len(kept):  # with a drop to the ground, where the rank ends
                axes.plot([*range(1, len(kept) + 1), len(kept)], [*kept, 1e-7], line, color=colour, label=legend)
        head = SETTING.dims.head
        for bound, name in ((head, "$d_h$"), (2 * head, "$2d_h$"), (3 * head, "$3d_h$")):
            axes.axvline(bound, color="#cccccc", lw=0.8, zorder=0)
            axes.text(bound + 2, 1.2e-4, f"{name} = {bound}", color="#777777", fontsize=8)
        axes.set(title=title, xlabel="singular value, by size", xlim=(0, SETTING.places))
        axes.set(yscale="log", ylim=(1e-4, 1.5))
    both[0].set_ylabel("part of the largest")
    handles, labels = both[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    figure.savefig(FIGURE.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(FIGURE.with_suffix(".png"), metadata={"Software": None}, dpi=150)


def tabulate() -> None:
    """The ranks of every model of the registry, with its defaults."""
    lines = [
        f"Largest rank of a head, d_h = {SETTING.dims.head}, on a sequence of {SETTING.places}; each row of scores is "
        "taken less its mean, so that full rank is one less.",
        "",
        "| model | positions alone | all scores |",
        "|---|---|---|",
    ]
    none = ranks([], SETTING)
    lines.append(f"| (none) | {none.position} | {none.whole} |")
    for name in sorted(MODELS):
        found = ranks(name, SETTING)
        print(name, found, flush=True)
        cells = f"{found.position} | {found.whole}" if found.position is not None else f"- | - ({found.why})"
        lines.append(f"| {name} | {cells} |")
    Path(__file__).with_name("results.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
