"""Sizes of texts in matplotlib, and boxes that do not overlap. All lengths are in inches."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from structpe.pictures._plot import shortened

__all__ = ["Box", "apart", "fitting", "meets", "tall", "text_box", "wide"]

Box = NDArray[np.float64]
"""(4,) left, bottom, right, top."""
SPARE = 1.06
"""A renderer rounds the widths of letters to its pixels."""


def wide(text: str, points: float, style: str = "normal") -> float:
    """Width of a line of text in a font size; call it within :func:`structpe.pictures._plot.look`."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=points, style=style)  # type: ignore[arg-type]  # any text in its own annotation
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return SPARE * float(width) / 72


def fitting(text: str, inches: float, points: float) -> str:
    """A text, cut in the middle to fit a width."""
    most = len(text)
    while most > 3 and wide(shortened(text, most), points) > inches:
        most -= 1
    return shortened(text, most)


def tall(points: float) -> float:
    """Height of one line of text."""
    return 1.3 * points / 72


def text_box(x: float, y: float, width: float, height: float) -> Box:
    """The box around a point."""
    return np.array([x - width / 2, y - height / 2, x + width / 2, y + height / 2])


def meets(box: Box, others: Iterable[Box]) -> bool:
    """Whether a box overlaps any other."""
    return any(box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3] for other in others)


def apart(middles: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 2) the middles, moved until no two boxes overlap, each pair along the axis that needs the smaller move.

    Args:
        middles: (n, 2) middles of the boxes.
        sizes: (n, 2) width and height of each box.
    """
    reach, held = float(sizes.max()), float(np.prod(np.ptp(middles, axis=0) + sizes.max(axis=0)))
    at: NDArray[np.float64] = middles * max(1.0, (1.3 * float(sizes.prod(axis=1).sum()) / held) ** 0.5)
    for turn in range(400):
        near = cKDTree(at).query_pairs(reach, p=np.inf, output_type="ndarray")
        first, second = np.sort(near, axis=1).T
        gap = at[second] - at[first]
        short = (sizes[first] + sizes[second]) / 2 - np.abs(gap)
        meeting = (short > 1e-6).all(axis=1)
        if not meeting.any():
            return at
        first, second, gap, short = first[meeting], second[meeting], gap[meeting], short[meeting]
        axis = short.argmin(axis=1)
        row = np.arange(len(axis))
        # Of two at the same place, the later one moves to the right or up.
        push = np.where(gap[row, axis] < 0, -1.0, 1.0) * (0.5 * short[row, axis] + 1e-4)
        moved, count = np.zeros_like(at), np.zeros_like(at)
        for node, way in ((second, 1.0), (first, -1.0)):
            np.add.at(moved, (node, axis), way * push)
            np.add.at(count, (node, axis), 1.0)
        at += moved / np.maximum(1.0, count) ** 0.5
        if turn % 20 == 19:
            at *= 1.05  # too crowded to converge otherwise
    at *= max(1.0, reach / max(_nearest(at), 1e-3))
    return at


def _nearest(at: NDArray[np.float64]) -> float:
    """The smallest distance between two places."""
    far = np.abs(at[:, None] - at[None]).max(axis=-1)
    far[np.arange(len(at)), np.arange(len(at))] = np.inf
    return float(far.min())
