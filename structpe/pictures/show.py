"""Figures of a structure, the values of encodings, and the heads of a position model.

::

    picture = show(structure, [Distance(max_distance=8), build("t5", dims)])
    save(picture, "picture.svg")

At the top are the structure and a map for each encoding. Below are the heads, layer by layer; then, for each layer, a
line per head with the mean over all pairs of each distance, which shows how far a head looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from structpe.pictures import heat as heat_module
from structpe.pictures.drawing import Drawing, draw
from structpe.pictures.head_patterns import Quantity
from structpe.pictures.style import FAINT, GREY, LINES, MUTED, add_bar, figure, look, settle, shortened, wide
from structpe.pictures.view import LayerGroup, Looked, View, view

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["show", "structure_figure"]

ACROSS = 8
"""Number of heads in a row."""
WIDEST = 13.0
"""Largest width of a row of maps of heads, in inches."""
ROW = 10.0
"""Largest width of a row at the top, in inches."""
TITLE = 0.45
"""Height of the title of the picture, and of that of a part, in inches."""
SIDE = 0.3
"""Margin on both sides of the structure, in inches."""
MOST_TITLE = 150
"""Largest number of letters of a title."""


def show(
    structure: Any, what: Sequence[Looked] = (), quantity: Quantity | None = None, slice: int = 0, seed: int = 0
) -> Figure:
    """Draw a structure; the arguments are those of :func:`structpe.pictures.view.view`.

    Raises:
        MissingExtra: matplotlib is not installed, or RDKit for a molecule.
        EncodingError, PositionError, PictureError: as in that function.
    """
    seen = view(structure, what, quantity, slice, seed)
    with look():
        drawn = Drawing(seen.structure)
        above, width, heights = _measured(seen, drawn)
        picture = figure(width, sum(heights) + TITLE)
        title_text, top = shortened(seen.title, MOST_TITLE), 1 - 0.1 / (sum(heights) + TITLE)
        title = picture.suptitle(title_text, x=0.01, y=top, ha="left", va="top", fontsize=10, fontweight="bold")
        title.set_in_layout(False)  # its room is reserved
        parts = _parts(picture, [TITLE, *heights])[1:]
        for row in above:
            _above(parts.pop(0), row, seen, drawn)
        if seen.blocks:
            _heads(_left(parts.pop(0)), seen)
            _curves(_left(parts.pop(0)), seen)
        if seen.notes:
            note = "; ".join(seen.notes)
            parts.pop(0).text(0.01, 0.3, note, ha="left", va="bottom", fontsize=7, color=MUTED, style="italic")
        settle(picture)
    return picture


def structure_figure(drawn: Drawing) -> Figure:
    """A structure alone, at its own size; call it inside :func:`structpe.pictures.style.look`."""
    width, height = drawn.size
    picture = figure(width + SIDE, height)
    picture.set_layout_engine("none")
    draw(picture.add_axes((SIDE / 2 / (width + SIDE), 0.0, width / (width + SIDE), 1.0)), drawn)
    return picture


def _measured(seen: View, drawn: Drawing) -> tuple[list[list[int]], float, list[float]]:
    """The maps in each row above the heads (-1 is the structure), the width, and the heights of all rows."""
    sizes = [(drawn.size[0] + SIDE, drawn.size[1]), *(heat_module.size_of(heat) for heat in seen.heats)]
    rows: list[list[int]] = [[]]
    for number, (width, _) in enumerate(sizes):
        together = sum(sizes[other + 1][0] for other in rows[-1]) + width
        if rows[-1] and together > max(ROW, width):
            rows.append([])
        rows[-1].append(number - 1)
    heights = [max(sizes[number + 1][1] for number in row) + 0.2 for row in rows]
    width = max(sum(sizes[number + 1][0] for number in row) for row in rows)
    if seen.blocks:
        count = len(seen.blocks[0].heads)
        across = min(count, ACROSS)
        width = max(width, float(np.clip(10.0 / across, 1.25, 2.6)) * across + 1.2, 4.5)
        side = min((min(width, WIDEST) - 1.2) / across, 2.6)
        down = -(-count // ACROSS)
        heights.append(len(seen.blocks) * (down * (side + 0.3) + 0.15) + TITLE)
        heights.append(2.2 * -(-len(seen.blocks) // 3) + TITLE)
    if seen.notes:
        heights.append(0.3)
    titles = [(shortened(seen.title, MOST_TITLE), 10.0), (shortened(seen.said, MOST_TITLE), 9.0)]
    widths = [1.15 * wide(text, points) for text, points in titles]  # bold letters are wider
    return rows, max(width, 3.2, *widths, wide("; ".join(seen.notes), 7.0)) + 0.3, heights


def _above(part: SubFigure, row: list[int], seen: View, drawn: Drawing) -> None:
    """Draw the structure and the maps of one row, each in a separate part at its own size."""
    sizes = [drawn.size[0] + SIDE if number < 0 else heat_module.size_of(seen.heats[number])[0] for number in row]
    spare = max(0.01, float(part.bbox.width / part.figure.dpi) - sum(sizes))
    parts: Any = part.subfigures(1, len(row) + 1, width_ratios=[*sizes, spare], wspace=0)
    for inner, number in zip(parts, row, strict=False):
        if number < 0:
            draw(_exact(inner, drawn), drawn)
        else:
            heat_module.draw(inner.subplots(), seen.heats[number])


def _exact(part: SubFigure, drawn: Drawing) -> Axes:
    """Axes of exactly the size of the drawing, on the left; the layout engine would make them smaller."""
    across, up = (float(length / part.figure.dpi) for length in (part.bbox.width, part.bbox.height))
    width, height = drawn.size
    return part.add_axes((SIDE / 2 / across, (up - height) / 2 / up, width / across, height / up))


def _left(part: SubFigure) -> SubFigure:
    """The left side of a very wide part, such as below a long sentence: heads always have the same size."""
    width = float(part.bbox.width / part.figure.dpi)
    if width <= WIDEST:
        return part
    sides: Any = part.subfigures(1, 2, width_ratios=[WIDEST, width - WIDEST])
    left: SubFigure = sides[0]
    return left


def _parts(whole: Any, heights: Sequence[float]) -> list[SubFigure]:
    """Divide a figure into rows."""
    return list(whole.subfigures(len(heights), 1, height_ratios=heights, hspace=0.02, squeeze=False)[:, 0])


def _heads(part: SubFigure, seen: View) -> None:
    """Draw a row of small maps for each group of layers, on one scale."""
    part.suptitle(shortened(seen.said, MOST_TITLE), x=0.01, ha="left", fontsize=9, fontweight="bold")
    blocks = _parts(part, [1.0] * len(seen.blocks))
    scale = _together(seen)
    for inner, block in zip(blocks, seen.blocks, strict=True):
        count = len(block.heads)
        across, down = min(count, ACROSS), -(-count // ACROSS)
        grid = inner.subplots(down, across, squeeze=False)
        for spare in grid.flat[count:]:
            spare.set_axis_off()
        drawn = [_head(axes, heat, scale) for axes, heat in zip(grid.flat, block.heads, strict=False)]
        grid[0, 0].set_ylabel(block.title, fontsize=8)
        add_bar(inner, drawn[0], grid, 0.8, 14)


def _together(seen: View) -> tuple[str, float, float]:
    """The colour map and the limits of all heads."""
    every = [heat for block in seen.blocks for heat in block.heads]
    diverging = any(heat.scale == "diverging" for heat in every)
    low, high = min(heat.limits[0] for heat in every), max(heat.limits[1] for heat in every)
    most = max(abs(low), abs(high))
    if seen.word == "attention":
        return heat_module.MAPS["sequential"], 0.0, high
    return (heat_module.MAPS["diverging"], -most, most) if diverging else (heat_module.MAPS["sequential"], low, high)


def _head(axes: Axes, heat: Any, scale: tuple[str, float, float]) -> Any:
    colours, low, high = scale
    drawn = axes.imshow(heat.values, cmap=colours, vmin=low, vmax=high, interpolation="nearest")
    axes.set_facecolor(GREY)
    axes.set_title(heat.title, fontsize=7, loc="center", color=MUTED)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    return drawn


def _curves(part: SubFigure, seen: View) -> None:
    """Draw the means by distance of each group of layers, with a line per head."""
    across = min(3, len(seen.blocks))
    grid = part.subplots(-(-len(seen.blocks) // across), across, squeeze=False, sharey=True)
    for spare in grid.flat[len(seen.blocks) :]:
        spare.set_axis_off()
    for axes, block in zip(grid.flat, seen.blocks, strict=False):
        _curve(axes, block)
    grid[0, 0].set_ylabel(f"mean {'bias' if seen.word.startswith('bias') else seen.word.partition(',')[0]}")
    handles, labels = grid.flat[0].get_legend_handles_labels()
    part.legend(handles, labels, loc="outside right upper", ncols=1 if len(handles) <= 8 else 2)


def _curve(axes: Axes, block: LayerGroup) -> None:
    from matplotlib.ticker import MaxNLocator

    curve = block.curve
    for number, mean in enumerate(curve.mean):
        style = ("-", "--", ":", "-.")[number // len(LINES) % 4]
        marker = "o" if len(curve.distance) <= 24 else ""
        axes.plot(curve.distance, mean, style, color=LINES[number % len(LINES)], linewidth=1.2, marker=marker,
                  markersize=2.5, label=f"head {number + 1}")  # fmt: skip
    axes.set_title(block.title, fontsize=8)
    axes.set_xlabel("offset, key − query" if curve.signed else "distance in edges", color=MUTED)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=FAINT, linewidth=0.8)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(curve.distance) == 1:
        axes.set_xticks(curve.distance)
