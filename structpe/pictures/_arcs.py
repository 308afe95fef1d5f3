"""A tree as arcs over its words in reading order, from heads to dependents, as parses are drawn.

All lengths are in inches: words are below 0, arcs above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from structpe.pictures._boxes import tall, wide
from structpe.pictures._plot import INK, LINES, MUTED, label
from structpe.pictures._relations import RELATION
from structpe.pictures.places import reading_rank
from structpe.structure import Structure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["UPRIGHT", "Arcs", "arcs_of", "draw_arcs", "levels"]

UPRIGHT = 40
"""Largest number of words that are written horizontally; more are vertical, without relations."""
LEVEL, LOW_LEVEL, MANY = 0.3, 0.18, 12
"""Distance between levels of arcs, and the number of levels above which it is smaller."""
LONGEST = 16
"""Largest number of letters of a relation."""
WORD = 0.15
"""Distance between the arcs and the words below."""


@dataclass(frozen=True, eq=False)
class Arcs:
    """The layout of a parse.

    Attributes:
        at: (n,) the middle of each node's word.
        spans: (e, 2) the two ends of each edge, as places in reading order.
        heights: (e,) the height of each arc.
        points: font size of the words.
        upright: whether words are vertical.
        size: width and height; the left of the first word is at 0.
        below: how far words reach below 0.
        relations: of each edge; empty if they are not written.
    """

    at: NDArray[np.float64]
    spans: NDArray[np.int64]
    heights: NDArray[np.float64]
    points: float
    upright: bool
    size: tuple[float, float]
    below: float
    relations: tuple[str, ...]

    @property
    def top(self) -> float:
        """The height of the highest arc; only the arrow of the root goes above it."""
        return float(self.heights.max(initial=LEVEL))


def levels(spans: NDArray[np.int64]) -> NDArray[np.int64]:
    """(e,) the level of each arc, from 1: above every arc within its ends, and different from those that it crosses.

    Args:
        spans: (e, 2) the two ends of each arc, as places in reading order.
    """
    low, high = spans.min(axis=1), spans.max(axis=1)
    level = np.zeros(len(spans), dtype=np.int64)
    for arc in np.argsort(high - low, kind="stable"):
        meets = (low < high[arc]) & (high > low[arc]) & (level > 0)
        within = meets & (low >= low[arc]) & (high <= high[arc])
        level[arc] = 1 + int(level[within].max(initial=0))
        while (level[meets] == level[arc]).any():
            level[arc] += 1
    return level


def arcs_of(structure: Structure, names: list[str], most: int = UPRIGHT) -> Arcs:
    """The layout of words and arcs; call it within :func:`structpe.pictures._plot.look`.

    Args:
        structure: a parse.
        names: names of its nodes.
        most: largest number of horizontal words.
    """
    upright = structure.size > most
    points = 6.0 if upright else 8.5
    widths = np.array([wide(name, points) for name in names])
    rank = reading_rank(structure)
    spans = rank[structure.edges].reshape(-1, 2)
    high = levels(spans) if len(spans) else np.ones(0, dtype=np.int64)
    relations = tuple("" if upright else label(structure.relation(edge), LONGEST) for edge in range(len(spans)))
    ordered = np.empty(structure.size)
    ordered[rank] = tall(points) if upright else widths
    at = _apart(ordered, spans, relations, 0.02 if upright else 0.24)
    step = LEVEL if high.max(initial=1) <= MANY else LOW_LEVEL
    below = WORD + (float(widths.max()) if upright else tall(points)) + 0.05
    height = step * max(int(high.max(initial=1)), 1) + 0.4 + below
    right = float((at + ordered / 2).max()) + 0.05
    return Arcs(at[rank], spans, step * high.astype(np.float64), points, upright, (right, height), below, relations)


def draw_arcs(axes: Axes, structure: Structure, names: list[str], arcs: Arcs) -> None:
    """Draw a parse; a unit of the axes is an inch."""
    for name, x in zip(names, arcs.at, strict=True):
        axes.text(x, -WORD, name, ha="center", va="top", fontsize=arcs.points,
                  rotation=90 if arcs.upright else 0, color=INK)  # fmt: skip
    starts = arcs.at[structure.edges[:, 0]] + _sides(arcs.spans, 0.02 if arcs.upright else 0.055)
    for edge, (_, dependent) in enumerate(structure.edges.tolist()):
        end = float(arcs.at[dependent])
        _arc(axes, float(starts[edge]), end, float(arcs.heights[edge]), arcs.relations[edge])
    if structure.root is not None:
        root = float(arcs.at[structure.root])
        axes.annotate("", (root, 0.0), (root, arcs.top + 0.17), arrowprops=_arrow(LINES[1]))
        axes.text(root, arcs.top + 0.19, "root", ha="center", va="bottom", fontsize=6, color=LINES[1], style="italic")


def _arrow(colour: str) -> dict[str, object]:
    return {"arrowstyle": "-|>", "color": colour, "linewidth": 0.8, "mutation_scale": 6, "shrinkA": 0, "shrinkB": 0}


def _sides(spans: NDArray[np.int64], step: float) -> NDArray[np.float64]:
    """(e,) distance of the start of each arc from the middle of its head; shorter arcs start farther out."""
    side = np.zeros(len(spans))
    way, far = np.sign(spans[:, 1] - spans[:, 0]), np.abs(spans[:, 1] - spans[:, 0])
    for arc, (head, _) in enumerate(spans):
        farther = (spans[:, 0] == head) & (way == way[arc]) & (far > far[arc])
        side[arc] = way[arc] * step * min(1 + int(farther.sum()), 4)
    return side


def _arc(axes: Axes, start: float, end: float, height: float, relation: str) -> None:
    """Draw an arc from the head up, across, and down to the dependent, with an arrow."""
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path

    bend = min(0.18, abs(end - start) / 3) * np.sign(end - start)
    path = Path(
        [(start, 0), (start, height), (start + bend, height), (end - bend, height), (end, height), (end, 0.036)],
        [1, 3, 3, 2, 3, 3],
    )
    axes.add_artist(PathPatch(path, fill=False, edgecolor=MUTED, linewidth=0.8, zorder=1))
    axes.add_artist(Polygon([(end - 0.025, 0.048), (end + 0.025, 0.048), (end, 0.0)], color=MUTED, zorder=1))
    if relation:
        axes.text(
            (start + end) / 2, height, relation, ha="center", va="center", fontsize=RELATION, color=LINES[0],
            style="italic", zorder=2, bbox={"boxstyle": "square,pad=0.12", "facecolor": "white", "edgecolor": "none"},
        )  # fmt: skip


def _apart(
    widths: NDArray[np.float64], spans: NDArray[np.int64], relations: tuple[str, ...], between: float
) -> NDArray[np.float64]:
    """(n,) the middle of the word at each place, with room for words and relations."""
    gaps = (widths[1:] + widths[:-1]) / 2 + between
    for (a, b), relation in zip(np.sort(spans, axis=1).tolist(), relations, strict=True):
        needed = wide(relation, RELATION, "italic") + 0.3 if relation else 0.0
        have = gaps[a:b].sum()
        if have < needed:
            gaps[a:b] += (needed - have) / (b - a)
    at: NDArray[np.float64] = np.concatenate([[0.0], np.cumsum(gaps)])
    return at - float((at - widths / 2).min())
