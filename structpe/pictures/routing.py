"""Lines of edges around labels.

A line is a curve if one of those that are tried is free of labels, and otherwise the shortest way on a fine grid, with
its corners cut. Labels that are placed later avoid all lines, and lines that are drawn later avoid all labels, so in
the end no line crosses the label of another edge or of a node.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import dijkstra

from structpe.pictures.style import Box

__all__ = ["Labels", "dense"]

Points = NDArray[np.float64]
STEP = 0.05
"""Width of a cell of the grid, in inches."""
AROUND = 0.03
"""Distance between lines and labels on the grid."""
OUTSIDE = 0.5
"""How far a line may go around all labels."""
CUT = 0.07
"""How far from a corner a line leaves it out."""
CELLS = 200_000
"""Largest number of cells of a grid."""
NEIGHBOURS = ((0, 1), (1, 0), (1, 1), (1, -1))


def dense(points: Points) -> Points:
    """A polyline with points at most a fiftieth of an inch apart."""
    steps = points[1:] - points[:-1]
    counts = 1 + (50 * np.abs(steps).max(axis=1, initial=0.0)).astype(np.int64)
    part = np.repeat(np.arange(len(steps)), counts)
    way = (np.arange(len(part)) - np.repeat(np.cumsum(counts) - counts, counts)) / counts[part]
    found: Points = np.concatenate([points[part] + way[:, None] * steps[part], points[-1:]])
    return found


class Labels:
    """The boxes of all labels so far, and the lines so far.

    Args:
        boxes: of nodes and of labels with a reserved place.
        lines: lines with a reserved place.
    """

    def __init__(self, boxes: Sequence[Box], lines: Sequence[Points]) -> None:
        self.boxes = np.array(boxes).reshape(-1, 4)
        self.lines = np.concatenate([np.zeros((0, 2)), *(dense(line) for line in lines)])

    def add(self, box: Box) -> None:
        """Add the box of a label."""
        self.boxes = np.concatenate([self.boxes, box[None]])

    def draw(self, line: Points) -> None:
        """Add a line."""
        self.lines = np.concatenate([self.lines, dense(line)])

    def covers(self, box: Box) -> bool:
        """Whether a box meets a label or a line."""
        other = self.boxes
        if (((box[:2] < other[:, 2:]) & (box[2:] > other[:, :2])).all(axis=1)).any():
            return True
        return bool(((self.lines > box[:2]) & (self.lines < box[2:])).all(axis=1).any())

    def crossed(self, line: Points, ends: Sequence[int] = ()) -> int:
        """The number of boxes that a line crosses, without those of its ends."""
        low, high = line.min(axis=0), line.max(axis=0)
        near = ((self.boxes[:, 2:] > low) & (self.boxes[:, :2] < high)).all(axis=1)
        near[list(ends)] = False
        if not near.any():
            return 0
        points, boxes = dense(line)[:, None], self.boxes[near]
        return int(((points > boxes[:, :2]) & (points < boxes[:, 2:])).all(axis=2).any(axis=0).sum())

    def way(self, start: Points, end: Points, ends: Sequence[int]) -> Points | None:
        """(k, 2) a short line between two points that crosses no box but those of its ends; None without one."""
        kept = np.ones(len(self.boxes), dtype=np.bool_)
        kept[list(ends)] = False
        boxes = self.boxes[kept]
        low = np.minimum(self.boxes[:, :2].min(axis=0), np.minimum(start, end)) - OUTSIDE
        high = np.maximum(self.boxes[:, 2:].max(axis=0), np.maximum(start, end)) + OUTSIDE
        shape = np.ceil((high - low) / STEP).astype(np.int64) + 1
        if shape.prod() > CELLS:
            return None
        free = np.ones(tuple(shape), dtype=np.bool_)
        for left, bottom, right, top in boxes:
            first = np.ceil((np.array([left, bottom]) - AROUND - low) / STEP).astype(np.int64)
            last = np.floor((np.array([right, top]) + AROUND - low) / STEP).astype(np.int64)
            free[first[0] : last[0] + 1, first[1] : last[1] + 1] = False
        cells = [tuple(np.round((point - low) / STEP).astype(np.int64)) for point in (start, end)]
        for cell in cells:
            free[cell] = True
        found = _shortest(free, *(int(np.ravel_multi_index(cell, free.shape)) for cell in cells))
        if found is None:
            return None
        at = np.stack(np.unravel_index(found, free.shape), axis=1) * STEP + low
        at[0], at[-1] = start, end
        return self._smooth(at, ends)

    def _smooth(self, at: Points, ends: Sequence[int]) -> Points:
        """The way with straight parts wherever nothing is between two of its points, and with its corners cut."""
        kept = [0]
        while kept[-1] < len(at) - 1:
            last = len(at) - 1
            while last > kept[-1] + 1 and self.crossed(at[[kept[-1], last]], ends):
                last -= max(1, (last - kept[-1]) // 8)
            kept.append(last)
        corners, parts = at[kept], [at[:1]]
        for before, corner, after in zip(corners[:-2], corners[1:-1], corners[2:], strict=True):
            first, second = _towards(corner, before), _towards(corner, after)
            turn = np.linspace(0, 1, 5)[:, None]
            parts.append((1 - turn) ** 2 * first + 2 * turn * (1 - turn) * corner + turn**2 * second)
        rounded = np.concatenate([*parts, at[-1:]])
        return corners if self.crossed(rounded, ends) else rounded


def _towards(start: Points, end: Points) -> Points:
    """The point a little on the way from one to the other."""
    long = float(np.linalg.norm(end - start))
    return start + (end - start) * min(0.5, CUT / max(long, 1e-9))


def _shortest(free: NDArray[np.bool_], start: int, end: int) -> list[int] | None:
    """The cells of a shortest way on free cells, with steps to eight neighbours."""
    number = np.arange(free.size).reshape(free.shape)
    rows, columns, lengths = [], [], []
    for down, right in NEIGHBOURS:
        one = (slice(0, free.shape[0] - down), slice(max(0, -right), free.shape[1] - max(0, right)))
        other = (slice(down, None), slice(max(0, right), free.shape[1] - max(0, -right)))
        joined = free[one] & free[other]
        rows.append(number[one][joined])
        columns.append(number[other][joined])
        lengths.append(np.full(int(joined.sum()), float(np.hypot(down, right))))
    ends = (np.concatenate(rows), np.concatenate(columns))
    graph = coo_matrix((np.concatenate(lengths), ends), shape=(free.size, free.size)).tocsr()
    far, before = dijkstra(graph, directed=False, indices=start, return_predecessors=True)
    if not np.isfinite(far[end]):
        return None
    way = [end]
    while way[-1] != start:
        way.append(int(before[way[-1]]))
    return way[::-1]
