"""A structure and its positions as one HTML page, which needs no network.

The page includes plotly's script (about 5 MB). Below the structure are the maps of encodings and, one at a time, of a
model's heads. Pointing at a node, or at a cell, marks the node, frames its rows, and lists their values.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.errors import needing
from structpe.files import atomic_text
from structpe.pictures._boxes import wide
from structpe.pictures._page_graph import INCH, graph_of
from structpe.pictures._page_parts import Part, shell
from structpe.pictures._plot import FAINT, GREY, INK, LINES, PictureError, look
from structpe.pictures._units import in_order
from structpe.pictures.drawing import Drawn
from structpe.pictures.head_patterns import Quantity
from structpe.pictures.heat import Heat, unit_names
from structpe.pictures.view import Looked, View, view

__all__ = ["page", "page_of_view", "save_page"]

REDS_AND_BLUES = (
    "#053061", "#2166ac", "#4393c3", "#92c5de", "#d1e5f0", "#f7f7f7",
    "#fddbc7", "#f4a582", "#d6604d", "#b2182b", "#67001f",
)  # fmt: skip
"""A diverging scale (Brewer's RdBu, reversed); plotly's own RdBu is not safe for colour-blind readers."""
COLOURS: dict[str, Any] = {
    "sequential": "Viridis",
    "diverging": [[k / (len(REDS_AND_BLUES) - 1), colour] for k, colour in enumerate(REDS_AND_BLUES)],
}
MOST = 400
"""Largest number of units, above which a page would be slow."""
LETTERS, HIGH = 9, 12
"""Font size of the names at the axes of maps, and the height of their lines, in pixels."""
CELLS = 3_000_000
"""Largest number of cells of all maps, above which the page would be too large."""


def page(
    structure: Any, what: Sequence[Looked] = (), quantity: Quantity | None = None, slice: int = 0, seed: int = 0
) -> str:
    """The page of a structure as HTML; the arguments are those of :func:`structpe.pictures.view.view`.

    Raises:
        MissingExtra: plotly is not installed, or RDKit for a molecule.
        EncodingError, PositionError: an encoding or a model does not fit the structure.
        PictureError: there are more than 400 units, or 3 million cells in all maps; or an error of that function.
    """
    return page_of_view(view(structure, what, quantity, slice, seed))


def page_of_view(seen: View) -> str:
    """The page of a view."""
    heads = [replace(heat, title=f"{block.title}, {heat.title}") for block in seen.blocks for heat in block.heads]
    maps = [*seen.heats, *heads]
    _check_size(seen, maps)
    limits = None if not heads else (min(h.limits[0] for h in heads), max(h.limits[1] for h in heads))
    with look():
        drawn = Drawn(seen.structure, most=MOST)  # words on a page are always horizontal
        parts = [Part(heat.title, _html(_map(heat, None), f"map{i}")) for i, heat in enumerate(seen.heats)]
        learned = [Part(heat.title, _html(_map(heat, limits), f"head{i}")) for i, heat in enumerate(heads)]
    if heads:
        learned.append(Part("means", _html(_curves(seen), "curves")))
    figure, node_trace = graph_of(drawn)
    said = {
        "names": list(unit_names(seen.structure)),
        "owner": seen.structure.unit_owner[in_order(seen.structure)].tolist(),
        "nodes": list(seen.structure.nodes),
        "nodeTrace": node_trace,
        "encodings": len(seen.heats),
        "model": seen.said,
        "maps": [{"title": h.title, "columns": list(h.columns), "special": _special(h)} for h in maps],
    }
    return shell(seen.title, seen.notes, _html(figure, "graph", script=True), parts, learned, said)


def save_page(text: str, path: str | Path) -> Path:
    """Write a page atomically.

    Raises:
        PictureError: its suffix is not ``.html``.
    """
    path = Path(path)
    if path.suffix.lower() != ".html":
        raise PictureError(f"{str(path)!r} has not the suffix of a page; give one that ends in .html")
    atomic_text(path, text)
    return path


def _check_size(seen: View, maps: Sequence[Heat]) -> None:
    cells, units = sum(heat.values.size for heat in maps), seen.structure.unit_count
    if units <= MOST and cells <= CELLS:
        return
    raise PictureError(
        f"the structure has {units} units and {cells} cells in its maps, a page shows {MOST} units and {CELLS} cells "
        f"at most; write a picture (.png or .svg), show fewer heads, or take a part of the structure"
    ).at(*([seen.structure.name] if seen.structure.name else []))


def _html(figure: dict[str, Any], name: str, script: bool = False) -> str:
    with needing("plotly", "viz"):
        from plotly.io import to_html
    made = to_html(
        figure,
        full_html=False,
        include_plotlyjs=script,
        include_mathjax=False,
        div_id=name,
        validate=False,
        config={"displayModeBar": False, "plotlyServerURL": ""},
    )
    return str(made)


def _map(heat: Heat, limits: tuple[float, float] | None) -> dict[str, Any]:
    low, high = limits or heat.limits
    diverging = heat.scale == "diverging" if limits is None else low < 0
    if diverging:
        low, high = -max(-low, high), max(-low, high)
    rows, columns = heat.values.shape
    square = heat.rows is heat.columns
    cell = float(np.clip(480 / max(rows, columns), 1.6, 34))
    names, under = _widest(heat.rows), _widest(heat.columns)
    left, below = 20 + names, 20 + under if square else 40.0
    title = INCH * wide(heat.title, 0.72 * 13) + 20
    return {
        "data": [
            {
                "type": "heatmap",
                "z": _plain(heat.values),
                "zmin": low,
                "zmax": high,
                "colorscale": COLOURS["diverging" if diverging else "sequential"],
                "colorbar": {"thickness": 10, "outlinewidth": 0, "len": 0.8},
                "hovertemplate": f"{heat.axes[0]} %{{y}}, {heat.axes[1]} %{{x}}: %{{z}}<extra></extra>",
            }
        ],
        "layout": {
            "title": {"text": html.escape(heat.title), "font": {"size": 13}, "x": 0.02},
            "width": max(max(columns * cell, 60) + left + 80, title),
            "height": max(rows * cell, 60) + below + 36,
            "margin": {"l": left, "r": 80, "t": 36, "b": below},
            "plot_bgcolor": GREY,
            "font": {"size": 10, "color": INK},
            "xaxis": {**_axis(heat.columns, (HIGH if square else under + 6) / cell), "tickangle": -90 if square else 0},
            "yaxis": {**_axis(heat.rows, HIGH / cell), "autorange": "reversed"},
        },
    }


def _widest(names: Sequence[str]) -> float:
    """Width of the longest name at an axis, in pixels."""
    return INCH * max(wide(name, 0.72 * LETTERS) for name in names)


def _axis(names: Sequence[str], room: float) -> dict[str, Any]:
    """Names of rows or columns, thinned so that each has room."""
    step = max(1, int(np.ceil(room)))
    at = list(range(0, len(names), step))
    shown = {"tickvals": at, "ticktext": [html.escape(names[i]) for i in at]}
    return {**shown, "showgrid": False, "zeroline": False, "tickfont": {"size": LETTERS}}


def _plain(values: NDArray[np.float64]) -> list[list[float | None]]:
    """Numbers with five significant digits; None for NaN."""
    return [[float(f"{v:.5g}") if np.isfinite(v) else None for v in row] for row in values]


def _special(heat: Heat) -> dict[str, str]:
    """The texts of cells without a number, by "row,column"; empty for heads, which have one kind of such cells."""
    if set(heat.special) == {"does not attend"}:
        return {}
    return {f"{i},{j}": name for name, mask in heat.special.items() for i, j in np.argwhere(mask).tolist()}


def _curves(seen: View) -> dict[str, Any]:
    traces = []
    for block in seen.blocks:
        for number, mean in enumerate(block.curve.mean):
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines+markers",
                    "name": f"{block.title}, head {number + 1}",
                    "x": block.curve.distance.tolist(),
                    "y": _plain(mean[None])[0],
                    "line": {"color": LINES[number % len(LINES)], "width": 1.5},
                    "marker": {"size": 4},
                }
            )
    signed = seen.blocks[0].curve.signed
    axis = {"gridcolor": FAINT, "zeroline": False}
    return {
        "data": traces,
        "layout": {
            "title": {"text": f"mean {html.escape(seen.word)}, by distance", "font": {"size": 13}, "x": 0.02},
            "width": 820,
            "height": 340,
            "margin": {"l": 60, "r": 20, "t": 40, "b": 45},
            "plot_bgcolor": "white",
            "font": {"size": 10, "color": INK},
            "xaxis": {**axis, "title": {"text": "offset, key − query" if signed else "distance in edges"}},
            "yaxis": axis,
        },
    }
