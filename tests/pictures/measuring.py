"""What matplotlib has really drawn: the boxes of all texts of a picture, in its pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from structpe.pictures.style import look

__all__ = ["boxes", "drawn", "faults", "overlaps"]


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
