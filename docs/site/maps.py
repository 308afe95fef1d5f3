"""Attention weights of position models and values of encodings as pictures in a page: small maps, drawn as SVG.

Text has the colour of the page, which may be dark; the pointer over a cell shows its number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from html import escape

import numpy as np
from numpy.typing import NDArray

from structpe.pictures.heat import MAPS, SHADES, Heat

__all__ = ["panels", "weight_panels"]

CELL, SIDE, HEAD, LETTER = 24, 50, 20, 6.2
"""Pixels: side of a cell, room for the names of rows, for the title, and the width of a letter of a name."""
ACROSS = 192
"""Pixels for the numbers of a unit, if these are more than would fit in whole cells."""


def weight_panels(weights: Mapping[str, tuple[tuple[str, ...], NDArray[np.float64]]]) -> str:
    """HTML of attention weights: by title, the names of units and their weights (n, n), a row per query.

    One scale of colours for all, from zero.
    """
    top = max(float(np.nanmax(values)) for _, values in weights.values())
    return _row(
        panel(Heat(title, values, names, names), f"attention weights on {title}", (0.0, top))
        for title, (names, values) in weights.items()
    )


def panels(heats: Mapping[str, Heat]) -> str:
    """HTML of the values of an encoding on some structures, each with colours of its own."""
    return _row(panel(heat, f"values on {title}", heat.limits, title) for title, heat in heats.items())


def _row(drawn: Iterable[str]) -> str:
    return f'<div class="panels">{"".join(drawn)}</div>'


def panel(heat: Heat, said: str, limits: tuple[float, float], title: str = "") -> str:
    """One map."""
    square = heat.rows is heat.columns
    across = CELL if square else min(CELL, max(4, ACROSS // max(1, len(heat.columns))))
    below = 8 + (LETTER * max(map(len, heat.columns)) if square else 12)
    width, height = SIDE + max(across * len(heat.columns), 110) + 8, HEAD + CELL * len(heat.rows) + below
    text = [f'<text x="{SIDE}" y="13" class="title">{escape(title or heat.title)}</text>']
    for number, name in enumerate(map(escape, heat.rows)):
        text.append(f'<text x="{SIDE - 5}" y="{HEAD + CELL * number + CELL / 2 + 4}" text-anchor="end">{name}</text>')
    step = 1 if square else math.ceil(LETTER * (len(str(len(heat.columns))) + 1) / across)
    for number, name in list(enumerate(map(escape, heat.columns)))[::step]:
        x, y = SIDE + across * number + across / 2, HEAD + CELL * len(heat.rows) + 5
        if square:
            text.append(f'<text transform="translate({x + 4},{y}) rotate(-90)" text-anchor="end">{name}</text>')
        else:
            text.append(f'<text x="{x}" y="{y + 9}" text-anchor="middle">{name}</text>')
    marks = "".join(cells(heat, across, limits))
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return f'<svg {size} role="img" aria-label="{escape(said)}">{"".join(text)}{marks}</svg>'


def cells(heat: Heat, across: int, limits: tuple[float, float]) -> list[str]:
    """The cells, with the number in it if it is an integer and there is room."""
    colour, found = colours(heat, limits), []
    square = heat.rows is heat.columns
    for (row, column), value in np.ndenumerate(heat.values):
        x, y = SIDE + across * column, HEAD + CELL * row
        meaning = next((name for name, mask in heat.special.items() if mask[row, column]), "")
        at = f"{heat.rows[row]} to {heat.columns[column]}" if square else f"{heat.rows[row]}, {heat.columns[column]}"
        shown = meaning or (f"{value:.0f}" if heat.whole else f"{value:.2f}")
        fill = SHADES[meaning] if meaning else colour(float(value))
        found.append(
            f'<rect x="{x}" y="{y}" width="{across}" height="{CELL}" fill="{fill}">'
            f"<title>{escape(f'{at}: {shown}')}</title></rect>"
        )
        if not meaning and heat.whole and LETTER * len(shown) + 4 <= across:
            found.append(
                f'<text x="{x + across / 2}" y="{y + CELL / 2 + 4}" text-anchor="middle" pointer-events="none" '
                f'style="fill: {ink(fill)}">{shown.replace("-", "−")}</text>'
            )
    return found


def colours(heat: Heat, limits: tuple[float, float]) -> Callable[[float], str]:
    """From a number to its colour, on the scales of all pictures of the library."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    scale, (low, high) = colormaps[MAPS[heat.scale]], limits
    return lambda value: to_hex(scale((value - low) / (high - low) if high > low else 0.0))


def ink(fill: str) -> str:
    """Black or white, whichever is easier to read on a colour: its relative luminance decides (WCAG 2)."""
    parts = (int(fill[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return "#000000" if 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.179 else "#ffffff"
