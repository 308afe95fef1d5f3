"""Places of the labels of edges: on their edges if there is room, otherwise in a list below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.pictures._boxes import Box, meets, tall, text_box, wide

__all__ = ["RELATION", "Curve", "Written", "curve_of", "holds", "wrapped", "write"]

RELATION = 6
"""Font size of the labels of edges, and of the list below."""
WAYS = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82)
"""Positions along an edge that are tried for its label, from 0 to 1."""


@dataclass(frozen=True)
class Written:
    """A text, with the place of its middle."""

    text: str
    x: float
    y: float

    @property
    def box(self) -> Box:
        """The box of the text, with a margin."""
        return text_box(self.x, self.y, wide(self.text, RELATION, "italic") + 0.06, tall(RELATION))


@dataclass(frozen=True, eq=False)
class Curve:
    """A drawn edge from a start to an end, with a bend between them.

    Attributes:
        points: (3, 2) start, control point and end of a curve of degree 2.
    """

    points: NDArray[np.float64]

    def at(self, way: float) -> NDArray[np.float64]:
        """(2,) the point at a position along it, from 0 to 1."""
        start, control, end = self.points
        place: NDArray[np.float64] = (1 - way) ** 2 * start + 2 * way * (1 - way) * control + way**2 * end
        return place


def holds(box: Box, point: NDArray[np.float64]) -> bool:
    """Whether a point is in a box."""
    return bool(box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3])


def curve_of(start: NDArray[np.float64], end: NDArray[np.float64], bend: float) -> Curve:
    """An edge with a bend, as a fraction of its length."""
    across = np.array([end[1] - start[1], start[0] - end[0]])
    return Curve(np.stack([start, (start + end) / 2 + bend * across, end]))


def write(
    wanted: Sequence[tuple[str, Sequence[Curve]]], taken: list[Box]
) -> tuple[list[Curve], list[Written], list[int]]:
    """The curve of each edge, the labels with room, and the indices of those without.

    An edge takes the first curve that has room for its label and crosses nothing; or else the first with room.

    Args:
        wanted: for each edge, its label, which may be empty, and its possible curves.
        taken: boxes without room; those of the labels are added.
    """
    chosen: list[Curve] = []
    written: list[Written] = []
    left: list[int] = []
    for number, (text, ways) in enumerate(wanted):
        found = [(way, _room(text, way, taken)) for way in ways] if text else []
        free = [each for each in found if each[1] is not None]
        clear = [each for each in free if len(free) > 1 and not _crossed(each[0], taken)]
        way, place = (clear or free or [(ways[0], None)])[0]
        chosen.append(way)
        if place is not None:
            taken.append(place.box)
            written.append(place)
        elif text:
            left.append(number)
    return chosen, written, left


def _room(text: str, curve: Curve, taken: list[Box]) -> Written | None:
    """A place along an edge where its label overlaps nothing."""
    width, height = wide(text, RELATION, "italic") + 0.06, tall(RELATION)
    for way in WAYS:
        x, y = (float(each) for each in curve.at(way))
        if not meets(text_box(x, y, width, height), taken):
            return Written(text, x, y)
    return None


def _crossed(curve: Curve, taken: list[Box]) -> bool:
    """Whether an edge crosses other boxes than those of its two ends, each of which may have two."""
    points = [curve.at(way) for way in np.linspace(0, 1, 21)]
    ends = [curve.points[0], curve.points[2]]
    others = [box for box in taken if not any(holds(box, end) for end in ends)]
    return any(holds(box, point) for box in others for point in points)


def wrapped(entries: Sequence[str], width: float) -> list[str]:
    """Entries, wrapped to lines of a width in inches."""
    lines: list[str] = []
    for entry in entries:
        longer = f"{lines[-1]}    {entry}" if lines else entry
        if lines and wide(longer, RELATION) <= width:
            lines[-1] = longer
        else:
            lines.append(entry)
    return lines
