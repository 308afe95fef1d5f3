"""Attention weights of a position model as a picture in a page: a small map for each structure, drawn as SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape

import numpy as np
from numpy.typing import NDArray

__all__ = ["panels"]

CELL, SIDE, HEAD, LETTER = 24, 50, 20, 6.2
"""Pixels: side of a cell, room for the names of rows, for the title, and the width of a letter of a name."""


def panels(weights: Mapping[str, tuple[tuple[str, ...], NDArray[np.float64]]]) -> str:
    """HTML of the maps: by title, the names of units and their attention weights (n, n), a row per query.

    Text has the colour of the page, which may be dark; the pointer over a cell shows its number.
    """
    top = max(float(np.nanmax(values)) for _, values in weights.values())
    colour = colours(top)
    return f'<div class="panels">{"".join(panel(title, *each, colour) for title, each in weights.items())}</div>'


def colours(top: float) -> Callable[[float], str]:
    """From a number between 0 and the largest to its colour, on the scale of all pictures of the library."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    from structpe.pictures._heat_map import MAPS

    scale = colormaps[MAPS["sequential"]]
    return lambda value: to_hex(scale(value / top if top else 0.0))


def panel(title: str, names: tuple[str, ...], values: NDArray[np.float64], colour: Callable[[float], str]) -> str:
    """One map."""
    below = 8 + LETTER * max(map(len, names))
    width, height = SIDE + CELL * len(names) + 8, HEAD + CELL * len(names) + below
    text, marks = [f'<text x="{SIDE}" y="13" class="title">{escape(title)}</text>'], []
    for number, name in enumerate(map(escape, names)):
        middle = CELL * number + CELL / 2
        text.append(f'<text x="{SIDE - 5}" y="{HEAD + middle + 4}" text-anchor="end">{name}</text>')
        x, y = SIDE + middle + 4, HEAD + CELL * len(names) + 5
        text.append(f'<text transform="translate({x},{y}) rotate(-90)" text-anchor="end">{name}</text>')
    for (query, key), value in np.ndenumerate(values):
        at = f'x="{SIDE + CELL * key}" y="{HEAD + CELL * query}" width="{CELL}" height="{CELL}"'
        said = f"{names[query]} to {names[key]}: {value:.2f}"
        marks.append(f'<rect {at} fill="{colour(float(value))}"><title>{escape(said)}</title></rect>')
    said = f"attention weights on {title}"
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return f'<svg {size} role="img" aria-label="{escape(said)}">{"".join(text)}{"".join(marks)}</svg>'
