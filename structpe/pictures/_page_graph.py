"""A structure drawn by plotly on a page: edges, their labels, nodes, and a ring around the selected node.

All places are those of the plan of the picture. Fonts are those of the reader's browser, which are narrower than the
plan has measured.
"""

from __future__ import annotations

import html
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.pictures._arcs import WORD
from structpe.pictures._boxes import tall, text_box, wide
from structpe.pictures._plot import INK, LINES, MUTED
from structpe.pictures._relations import RELATION, Written
from structpe.pictures.drawing import Drawn
from structpe.pictures.heat import NAMED

__all__ = ["INCH", "graph_of"]

INCH = 100
"""Pixels."""
EDGE = 10
"""Margin around the structure in pixels."""
ARC = 17
"""Number of points of an arc."""


def graph_of(drawn: Drawn) -> tuple[dict[str, Any], int]:
    """The figure of a structure, and the index of its trace of nodes, with a point per node in order."""
    lines, relations = _lines(drawn)
    names, points = _names(drawn)
    traces = [_edges(lines), _gaps(relations), _hints(drawn, lines), _texts(relations, RELATION, LINES[0])]
    traces += [_texts(names, points, INK), _nodes(drawn), _ring()]
    if drawn.depiction is not None:
        return {"data": traces, "layout": _over_picture(drawn)}, 5
    width, height = drawn.size
    low = -drawn.arcs.below if drawn.arcs is not None else 0.0
    layout = {
        **_layout(int(INCH * width) + 2 * EDGE + 1, int(INCH * height) + 2 * EDGE + 1),
        "xaxis": {**HIDDEN, "range": [0.0, width]},
        "yaxis": {**HIDDEN, "range": [low, low + height]},
        "annotations": _below(drawn),
    }
    return {"data": traces, "layout": layout}, 5


HIDDEN = {"visible": False, "showgrid": False, "zeroline": False}


def _layout(width: int, height: int) -> dict[str, Any]:
    return {
        "width": width,
        "height": height,
        "margin": {"l": EDGE, "r": EDGE, "t": EDGE, "b": EDGE},
        "plot_bgcolor": "white",
        "hovermode": "closest",
        "showlegend": False,
        "font": {"color": INK},
    }


def _over_picture(drawn: Drawn) -> dict[str, Any]:
    """The figure of a molecule, whose nodes are invisible on top of RDKit's picture."""
    assert drawn.depiction is not None
    wide, high = drawn.depiction.size
    low, top = drawn.places.min(axis=0), drawn.places.max(axis=0)
    room = 0.06 * (top - low) + 30.0
    width, height = drawn.size
    image = {"source": drawn.depiction.data_uri(), "xref": "x", "yref": "y", "x": 0, "y": 0, "sizex": wide,
             "sizey": high, "sizing": "stretch", "layer": "below"}  # fmt: skip
    return {
        **_layout(int(np.clip(INCH * width, 320, 8000)), int(np.clip(INCH * height + 40, 160, 1100))),
        "xaxis": {**HIDDEN, "range": [float(low[0] - room[0]), float(top[0] + room[0])]},
        "yaxis": {**HIDDEN, "scaleanchor": "x", "range": [float(top[1] + room[1]), float(low[1] - room[1])]},
        "images": [image],
    }


def _lines(drawn: Drawn) -> tuple[dict[int, NDArray[np.float64]], list[Written]]:
    """The points of each drawn edge, by its number; and the labels of edges."""
    if drawn.laid is not None:
        return {line.edge: line.points for line in drawn.laid.lines}, list(drawn.laid.relations)
    if drawn.arcs is None:
        return {}, []
    arcs, ends = drawn.arcs, drawn.arcs.at[drawn.structure.edges]
    lines = {
        edge: _arc(float(ends[edge, 0]), float(ends[edge, 1]), float(height))
        for edge, height in enumerate(arcs.heights)
    }
    middles = ends.mean(axis=1).tolist() if len(ends) else []
    found = [
        Written(relation, middle, float(height))
        for relation, middle, height in zip(arcs.relations, middles, arcs.heights, strict=True)
        if relation
    ]
    return lines, found


def _arc(start: float, end: float, height: float) -> NDArray[np.float64]:
    step = np.linspace(0, np.pi, ARC)
    return np.stack([(start + end) / 2 + (start - end) / 2 * np.cos(step), height * np.sin(step) ** 0.5], axis=1)


def _names(drawn: Drawn) -> tuple[list[Written], float]:
    """The names of nodes, and their font size; RDKit writes those of atoms."""
    if drawn.arcs is not None:
        y = -WORD - tall(drawn.arcs.points) / 2
        return [Written(n, float(x), y) for n, x in zip(drawn.names, drawn.arcs.at, strict=True)], drawn.arcs.points
    if drawn.laid is None:
        return [], 8.0
    at = drawn.laid.texts.tolist()
    return [Written(name, x, y) for name, (x, y) in zip(drawn.names, at, strict=True)], drawn.laid.points


def _edges(lines: dict[int, NDArray[np.float64]]) -> dict[str, Any]:
    x = [value for line in lines.values() for value in (*line[:, 0].tolist(), None)]
    y = [value for line in lines.values() for value in (*line[:, 1].tolist(), None)]
    return _scatter("lines", x, y, line={"color": MUTED, "width": 1})


def _gaps(relations: list[Written]) -> dict[str, Any]:
    """White behind the labels of edges, so that no line strikes them through."""
    boxes = [text_box(each.x, each.y, wide(each.text, RELATION), 0.8 * tall(RELATION)) for each in relations]
    x = [value for left, _, right, _ in boxes for value in (left, right, right, left, left, None)]
    y = [value for _, low, _, high in boxes for value in (low, low, high, high, low, None)]
    return _scatter("lines", x, y, fill="toself", fillcolor="white", line={"width": 0})


def _hints(drawn: Drawn, lines: dict[int, NDArray[np.float64]]) -> dict[str, Any]:
    """The text for an edge when the pointer is at its middle."""
    nodes, edges = drawn.structure.nodes, drawn.structure.edges
    texts = [
        html.escape(f"{nodes[edges[edge, 0]]} {drawn.structure.relation(edge) or 'and'} {nodes[edges[edge, 1]]}")
        for edge in lines
    ]
    middles = [line[len(line) // 2] for line in lines.values()]
    x, y = ([float(middle[axis]) for middle in middles] for axis in (0, 1))
    return _scatter("markers", x, y, "text", hovertext=texts, marker={"size": 6, "color": "rgba(0,0,0,0)"})


def _texts(texts: list[Written], points: float, colour: str) -> dict[str, Any]:
    return _scatter(
        "text",
        [each.x for each in texts],
        [each.y for each in texts],
        text=[html.escape(each.text) for each in texts],
        textposition="middle center",
        textfont={"size": _pixels(points), "color": colour},
    )


def _pixels(points: float) -> float:
    return round(points * INCH / 72, 1)


def _below(drawn: Drawn) -> list[dict[str, Any]]:
    """The labels without room at their edges."""
    if drawn.laid is None or not drawn.laid.below:
        return []
    text = "<br>".join(html.escape(line) for line in drawn.laid.below)
    return [{"text": text, "x": 0.05, "y": 0.03, "xref": "x", "yref": "y", "xanchor": "left", "yanchor": "bottom",
             "align": "left", "showarrow": False, "font": {"size": _pixels(RELATION), "color": MUTED}}]  # fmt: skip


def _nodes(drawn: Drawn) -> dict[str, Any]:
    dots = drawn.laid is not None and drawn.laid.dots
    few = drawn.structure.size <= NAMED
    return _scatter(
        "markers",
        drawn.places[:, 0].tolist(),
        drawn.places[:, 1].tolist(),
        "text",
        hovertext=[html.escape(f"{node} {text}") for node, text in enumerate(drawn.structure.nodes)],
        marker={"size": 9 if dots and few else 18, "color": LINES[0], "opacity": float(dots and few)},
    )


def _ring() -> dict[str, Any]:
    mark = {"size": 20, "color": "rgba(0,0,0,0)", "line": {"color": LINES[1], "width": 3}}
    return _scatter("markers", [], [], marker=mark)


def _scatter(mode: str, x: list[Any], y: list[Any], hoverinfo: str = "skip", **more: Any) -> dict[str, Any]:
    return {"type": "scatter", "mode": mode, "x": x, "y": y, "hoverinfo": hoverinfo, **more}
