"""Maps and curves as SVG for the page of the app, which are drawn in milliseconds and take the colours of its text.

A map is an image of a pixel for each cell, with the names of rows and columns as texts. Its numbers are in the element,
where the script of the app finds them.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.pictures.heat import MAPS, SHADES, Heat
from structpe.pictures.style import LINES, fitting, thinned, wide
from structpe.pictures.view import DistanceCurve

__all__ = ["bar_svg", "curve_svg", "limits_of", "map_svg"]

LETTERS = 11
"""Font size of names, in pixels."""
POINT = 0.72
"""Points in a pixel, of which an inch has 100."""
SIDE, LEAST, LARGEST = 300, 3, 26
"""Length of the longer side of a map, and the bounds of a cell, in pixels."""
NAME = 1.4
"""Largest length of a name, in inches."""
SPOKEN = 64
"""Largest number of rows or columns of a map whose numbers the page has."""


def limits_of(heats: Sequence[Heat]) -> tuple[float, float]:
    """The limits of a common scale of colours; symmetric if one of the maps has negative numbers."""
    low, high = min(heat.limits[0] for heat in heats), max(heat.limits[1] for heat in heats)
    return (-max(-low, high), max(-low, high)) if low < 0 else (low, high)


def map_svg(heat: Heat, limits: tuple[float, float], says: str, named: bool = True, side: int = SIDE) -> str:
    """A map.

    Args:
        heat: its cells.
        limits: numbers of the first and the last colour.
        says: the map in words.
        named: whether rows and columns have their names; otherwise the map has its title.
        side: length of the longer side of the cells, in pixels.
    """
    rows, columns = heat.values.shape
    cell = float(np.clip(side / max(rows, columns), LEAST if named else 1.0, LARGEST))
    width, height = columns * cell, rows * cell
    texts, left, below = _names(heat, cell) if named else (_text(0, LETTERS, heat.title), 0.0, 0.0)
    top = 0 if named else LETTERS + 4
    shown: dict[str, Any] = {"rows": heat.rows, "columns": heat.columns, "at": [left, top, cell], "axes": heat.axes}
    if max(rows, columns) <= SPOKEN:
        shown["values"] = [[_number(value) for value in row] for row in heat.values]
        shown["special"] = {
            f"{i},{j}": name for name, mask in heat.special.items() for i, j in np.argwhere(mask).tolist()
        }
    data = html.escape(json.dumps(shown, ensure_ascii=False))
    image = (
        f'<image x="{left:.1f}" y="{top}" width="{width:.1f}" height="{height:.1f}" preserveAspectRatio="none" '
        f'href="{_image(_colours(heat, limits))}"/>'
    )
    return _svg(left + width, top + height + below, says, image + texts, f'class="map" tabindex="0" data-map="{data}"')


def bar_svg(heats: Sequence[Heat], limits: tuple[float, float]) -> str:
    """The scale of colours, with its limits; and the colours of cells that are not numbers."""
    colours = _shades(np.linspace(*limits, 64)[None], limits)
    low, high = (f"{limit:.3g}" for limit in limits)
    texts, x = [], 215.0
    for name in dict.fromkeys(name for heat in heats for name in heat.special):
        texts.append(
            f'<rect x="{x:.0f}" y="2" width="10" height="10" fill="{SHADES[name]}"/>' + _text(x + 14, 11, name)
        )
        x += 30 + 100 * wide(name, LETTERS * POINT)
    drawn = f'<image x="62" y="2" width="90" height="10" preserveAspectRatio="none" href="{_image(colours)}"/>'
    ends = _text(58, 11, low, "end") + _text(156, 11, high)
    return _svg(x, 15, f"colours from {low} to {high}", drawn + ends + "".join(texts), 'class="bar"')


def curve_svg(curve: DistanceCurve, axis: str, says: str) -> str:
    """The means by distance, with a line for each head."""
    width, height, left, top, below = 430.0, 170.0, 52.0, 8.0, 38.0
    finite = curve.mean[np.isfinite(curve.mean)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    low, high = (low, high) if high - low > 1e-12 else (low - 1, high + 1)
    first, last = float(curve.distance.min()), float(curve.distance.max())
    x = left + 6 + (curve.distance - first) / max(last - first, 1.0) * (width - left - 90)
    y = top + (high - curve.mean) / (high - low) * (height - top - below)
    parts = [
        f'<path class="grid" d="M{left} {at:.1f}H{width - 78}"/>' + _text(left - 4, at + 4, f"{value:.3g}", "end")
        for at, value in ((top, high), (height - below, low))
    ]
    for place in thinned(len(x), 12):
        parts.append(_text(x[place], height - below + 15, f"{curve.distance[place]:g}", "middle"))
    parts.append(_text((left + width - 78) / 2, height - 6, axis, "middle"))
    for number, line in enumerate(y):
        there = np.isfinite(line)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x[there], line[there], strict=True))
        colour, dashes = (
            LINES[number % len(LINES)].replace("#000000", "currentColor"),
            ("", "5 3")[number // len(LINES) % 2],
        )
        style = f'stroke="{colour}" stroke-dasharray="{dashes}"'
        parts.append(f'<polyline class="line" points="{points}" {style}/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2" fill="{colour}"/>' for a, b in _pairs(x, line)]
        at = top + 6 + 15 * number
        parts.append(
            f'<path class="line" d="M{width - 70} {at - 4}h16" {style}/>' + _text(width - 50, at, f"head {number + 1}")
        )
    return _svg(width, max(height, top + 15.0 * len(y)), says, "".join(parts), 'class="curve"')


def _pairs(x: NDArray[np.float64], y: NDArray[np.float64]) -> Iterable[tuple[float, float]]:
    return ((a, b) for a, b in zip(x, y, strict=True) if np.isfinite(b))


def _names(heat: Heat, cell: float) -> tuple[str, float, float]:
    """The names of rows and columns, and their widths on the left and below, in pixels."""
    square = heat.rows is heat.columns
    rows, columns = len(heat.rows), len(heat.columns)
    left = 100 * min(NAME, max(wide(name, LETTERS * POINT) for name in heat.rows)) + 6
    shown = [fitting(name, NAME, LETTERS * POINT) for name in heat.columns]
    below = 100 * max(wide(name, LETTERS * POINT) for name in shown) + 8 if square else LETTERS + 6.0
    texts = [
        _text(left - 4, (row + 0.5) * cell + 4, fitting(heat.rows[row], NAME, LETTERS * POINT), "end")
        for row in thinned(rows, int(rows * cell / (LETTERS + 1)))
    ]
    room = int(columns * cell / (LETTERS + 1 if square else 22))
    for column in thinned(columns, room):
        x, y = left + (column + 0.5) * cell, rows * cell + (4 if square else LETTERS + 3)
        texts.append(_text(x + 4, y, shown[column], "end", -90) if square else _text(x, y, shown[column], "middle"))
    return "".join(texts), left, below


def _text(x: float, y: float, text: str, anchor: str = "start", turned: int = 0) -> str:
    turn = f' transform="rotate({turned} {x:.1f} {y:.1f})"' if turned else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turn}>{html.escape(text)}</text>'


def _svg(width: float, height: float, says: str, inner: str, more: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.1f} {height:.1f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="{html.escape(says)}" {more}>{inner}</svg>'
    )


def _colours(heat: Heat, limits: tuple[float, float]) -> NDArray[np.uint8]:
    """(r, c, 4) the colour of each cell."""
    from matplotlib.colors import to_rgba

    pixels = _shades(heat.values, limits)
    for name, mask in heat.special.items():
        pixels[mask] = np.round(255 * np.array(to_rgba(SHADES[name])))
    return pixels


def _shades(values: NDArray[np.float64], limits: tuple[float, float]) -> NDArray[np.uint8]:
    """(..., 4) the colours of numbers; those that are not finite have none."""
    from matplotlib import colormaps

    low, high = limits
    part = (values - low) / ((high - low) or 1.0)
    shades: NDArray[np.uint8] = colormaps[MAPS["diverging" if low < 0 else "sequential"]](part, bytes=True)
    shades[~np.isfinite(values)] = 0
    return shades


def _image(pixels: NDArray[np.uint8]) -> str:
    """A PNG of a pixel per cell, as a data URI."""
    from matplotlib.image import imsave

    held = BytesIO()
    nothing: dict[str, Any] = {"Software": None}
    imsave(held, pixels, format="png", metadata=nothing, pil_kwargs={"compress_level": 6})
    return "data:image/png;base64," + base64.b64encode(held.getvalue()).decode("ascii")


def _number(value: float) -> float | None:
    return float(f"{value:.4g}") if np.isfinite(value) else None
