"""What matplotlib has really drawn: the boxes of all texts of a picture, in its pixels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from structpe.pictures.drawing import Drawing
from structpe.pictures.plan import RELATION, WORD
from structpe.pictures.style import look, tall, text_box, wide

__all__ = ["boxes", "crossings", "drawn", "faults", "overlaps"]


def drawn(picture: Figure) -> FigureCanvasAgg:
    """Everything is placed as for a file, and no pixel is set."""
    canvas = FigureCanvasAgg(picture)
    picture.draw_without_rendering()  # type: ignore[no-untyped-call]
    return canvas


def boxes(texts: list[Text], canvas: FigureCanvasAgg) -> Any:
    """(k, 4) of the texts that are seen: left, bottom, right, top in pixels."""
    seen = [text for text in texts if text.get_visible() and text.get_text().strip()]
    renderer: Any = canvas.get_renderer()  # type: ignore[no-untyped-call]
    return np.array([text.get_window_extent(renderer).extents for text in seen])


def meeting(of: Any) -> Any:
    """(k, k) which boxes share more than a pixel."""
    wide = np.minimum(of[:, None, 2], of[None, :, 2]) - np.maximum(of[:, None, 0], of[None, :, 0]) > 1
    tall = np.minimum(of[:, None, 3], of[None, :, 3]) - np.maximum(of[:, None, 1], of[None, :, 1]) > 1
    return np.triu(wide & tall, 1)


def overlaps(of: Any) -> int:
    """How many pairs of boxes share more than a pixel."""
    return int(meeting(of).sum())


def faults(picture: Figure) -> list[str]:
    """Each pair of texts that meet, with their frames, and each text that leaves the picture."""
    with look():
        canvas = drawn(picture)
        unseen = _unseen(picture)
        found: list[Any] = picture.findobj(Text)
        texts = [text for text in found if text.get_visible() and text.get_text().strip() and id(text) not in unseen]
        at = boxes(texts, canvas)
    if not texts:
        return []
    for text, box in zip(texts, at, strict=True):
        if (frame := text.get_bbox_patch()) is not None and frame.get_edgecolor()[3] > 0:
            inner = frame.get_window_extent(canvas.get_renderer()).extents  # type: ignore[no-untyped-call]
            box[:2], box[2:] = np.minimum(box[:2], inner[:2]), np.maximum(box[2:], inner[2:])
    told = [f"{texts[a].get_text()!r} meets {texts[b].get_text()!r}" for a, b in np.argwhere(meeting(at))]
    width, height = canvas.get_width_height()
    outside = (at[:, :2] < -1).any(axis=1) | (at[:, 2:] > [width + 1, height + 1]).any(axis=1)
    return [*told, *(f"{texts[each].get_text()!r} leaves the picture" for each in np.flatnonzero(outside))]


def _unseen(picture: Figure) -> set[int]:
    """Texts that belong to axes and are not drawn: of axes that are off, and of ticks beyond the limits."""
    found: set[int] = set()
    for axes in picture.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            every: list[Any] = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            for tick in every:
                if not axes.axison or not low - 1e-9 <= tick.get_loc() <= high + 1e-9:
                    found |= {id(tick.label1), id(tick.label2)}
            if not axes.axison:
                found |= {id(axis.label), id(axis.offsetText)}
    return found


def crossings(plan: Drawing) -> list[str]:
    """Each label of a plan whose box is crossed by the line of an edge, other than the edge's own label.

    The box is that of the letters, without a margin. Lines in boxes of nodes are not asked for at the edge's own ends.
    """
    if plan.depiction is not None:
        return []  # RDKit draws molecules
    found, boxed = list[str](), plan.laid is not None and not plan.laid.dots
    points, edges = _points(plan)
    for text, box, edge in _labels(plan):
        inside = set(edges[((points > box[:2]) & (points < box[2:])).all(axis=1)].tolist()) - {edge}
        if boxed and edge <= -2:
            inside = {each for each in inside if -edge - 2 not in plan.structure.edges[each].tolist()}
        found += [f"edge {each} crosses {text!r}" for each in inside]
    return found


def _labels(plan: Drawing) -> Iterator[tuple[str, Any, int]]:
    """Each label, its box, and the edge that it names, or -2 minus the node."""
    if plan.arcs is not None:
        names, points = [(x, -WORD - tall(plan.arcs.points) / 2) for x in plan.arcs.at.tolist()], plan.arcs.points
    elif plan.laid is not None:
        names, points = plan.laid.texts.tolist(), plan.laid.points
    for node, (name, (x, y)) in enumerate(zip(plan.names, names, strict=True)):
        yield name, text_box(x, y, wide(name, points) / 1.06, 0.9 * points / 72), -2 - node
    for each in (plan.arcs or plan.laid).relations:
        width = wide(each.text, RELATION, "italic") / 1.06
        yield each.text, text_box(each.x, each.y, width, 0.9 * RELATION / 72), each.edge


def _points(plan: Drawing) -> tuple[Any, Any]:
    """Points on all lines, a hundredth of an inch apart, and the edge of each."""
    part: Any = plan.arcs or plan.laid
    points, edges = [np.zeros((0, 2))], [np.zeros(0, dtype=np.int64)]
    for line in part.lines:
        for start, end in pairwise(line.points):
            count = 2 + int(100 * float(np.abs(end - start).max()))
            points.append(start + (np.arange(count) / (count - 1))[:, None] * (end - start))
            edges.append(np.full(count, line.edge))
    return np.concatenate(points), np.concatenate(edges)
