"""Draw the figure of the pipeline: one verb per arrow. ``python docs/figures/pipeline.py`` renews pipeline.svg."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

BOXES = [
    ("files", "sentences, trees, AMR,\nRDF, molecules", "#f3f0e8"),
    ("Structure", "a labelled graph whose\nnodes own units", "#dfe9f3"),
    ("Positions", "values of encodings\nper unit and pair", "#dfe9f3"),
    ("Terms", "what position models\nadd to attention", "#dfe9f3"),
    ("hidden vectors", "by any kernel", "#dfe9f3"),
    ("text", "or a label", "#f3f0e8"),
]
VERBS = ["read", "encode", "ask", "attend", "generate"]
WIDTH, HEIGHT, GAP = 2.9, 1.2, 1.35


def main() -> None:
    """Write pipeline.svg next to this file."""
    plt.rcParams.update({"font.family": "DejaVu Sans", "svg.fonttype": "path", "svg.hashsalt": "structpe"})
    figure, axes = plt.subplots(figsize=(19, 3))
    for place, (title, note, colour) in enumerate(BOXES):
        left = place * (WIDTH + GAP)
        shape = FancyBboxPatch((left, 0), WIDTH, HEIGHT, boxstyle="round,pad=0.05", fc=colour, ec="#445566", lw=1.2)
        axes.add_patch(shape)
        lines = title.count("\n") + 1
        axes.text(
            left + WIDTH / 2, 0.80, title, ha="center", va="center", fontsize=11 if lines == 1 else 9.5, weight="bold"
        )
        axes.text(left + WIDTH / 2, 0.30, note, ha="center", va="center", fontsize=8.5, color="#333333")
    for place, verb in enumerate(VERBS):
        left = place * (WIDTH + GAP) + WIDTH + 0.08
        arrow(axes, (left, HEIGHT / 2), (left + GAP - 0.16, HEIGHT / 2))
        axes.text(left + GAP / 2 - 0.08, HEIGHT / 2 + 0.14, verb, ha="center", fontsize=10, style="italic")
    start, stop = 1 * (WIDTH + GAP) + WIDTH / 2, 4 * (WIDTH + GAP) + WIDTH / 2
    axes.plot([start, start, stop], [-0.08, -0.62, -0.62], color="#445566", lw=1.2)
    arrow(axes, (stop, -0.62), (stop, -0.07))
    axes.text((start + stop) / 2, -0.52, "edges: message passing", ha="center", fontsize=10, style="italic")
    axes.set_xlim(-0.15, len(BOXES) * (WIDTH + GAP) - GAP + 0.15)
    axes.set_ylim(-0.75, HEIGHT + 0.15)
    axes.set_aspect("equal")
    axes.axis("off")
    figure.savefig(Path(__file__).with_suffix(".svg"), bbox_inches="tight", metadata={"Date": None})


def arrow(axes: plt.Axes, start: tuple[float, float], stop: tuple[float, float]) -> None:
    """One arrow of the figure."""
    axes.add_patch(FancyArrowPatch(start, stop, arrowstyle="-|>", mutation_scale=14, color="#445566", lw=1.2))


if __name__ == "__main__":
    main()
