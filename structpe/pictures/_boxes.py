"""How large texts are as matplotlib draws them, and boxes that do not meet. All lengths are inches."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Box", "apart", "meets", "tall", "text_box", "wide"]

Box = NDArray[np.float64]
"""(4,) left, bottom, right, top."""
SPARE = 1.06
"""A renderer rounds the widths of letters to its pixels."""


def wide(text: str, points: float, style: str = "normal") -> float:
    """Width of one line of text, of a size in points; asked while :func:`structpe.pictures._plot.look` holds."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=points, style=style)  # type: ignore[arg-type]  # any text in its own annotation
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return SPARE * float(width) / 72


def tall(points: float) -> float:
    """Height of one line of text."""
    return 1.3 * points / 72


def text_box(x: float, y: float, width: float, height: float) -> Box:
    """The box around a middle."""
    return np.array([x - width / 2, y - height / 2, x + width / 2, y + height / 2])


def meets(box: Box, others: Iterable[Box]) -> bool:
    """Whether a box shares more than an edge with any other."""
    return any(box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3] for other in others)


def apart(middles: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 2) the middles, moved until no two boxes meet: each pair along the axis on which less is needed.

    Args:
        middles: (n, 2) of the boxes.
        sizes: (n, 2) width and height of each.
    """
    at = middles.copy()
    need = (sizes[:, None] + sizes[None]) / 2
    rank = np.arange(len(at))
    way = np.where(rank[:, None] > rank[None], 1.0, -1.0)  # of two at one place, the later goes to the right or up
    for turn in range(400):
        gap = at[:, None] - at[None]
        short = need - np.abs(gap)
        short[rank, rank] = -1.0
        meeting = (short > 1e-6).all(axis=-1)
        if not meeting.any():
            return at
        across = meeting & (short[..., 0] <= short[..., 1])
        for axis, chosen in ((0, across), (1, meeting & ~across)):
            side = np.where(gap[..., axis] == 0, way, np.sign(gap[..., axis]))
            push = np.where(chosen, side * (0.5 * short[..., axis] + 1e-4), 0.0)
            at[:, axis] += push.sum(axis=1) / np.maximum(1, chosen.sum(axis=1)) ** 0.5
        if turn % 40 == 39:
            at *= 1.1  # so crowded that some would be pushed back and forth
    return at * max(1.0, float(sizes.max()) / max(_nearest(at), 1e-3))


def _nearest(at: NDArray[np.float64]) -> float:
    """The least distance of two places."""
    far = np.abs(at[:, None] - at[None]).max(axis=-1)
    far[np.arange(len(at)), np.arange(len(at))] = np.inf
    return float(far.min())
