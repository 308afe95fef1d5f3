"""A structure and its positions as a single HTML page, which needs no network.

All places are those of the picture's plan. The fonts are those of the browser, which are narrower than assumed by the
plan.

The page includes plotly's script (about 5 MB). Below the structure are the maps of encodings and, one at a time, of a
model's heads. Pointing at a node, or at a cell, marks the node, frames its rows, and lists their values.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.errors import needing
from structpe.pictures.drawing import Drawing
from structpe.pictures.head_patterns import Quantity
from structpe.pictures.heat import NAMED, Heat, in_order, unit_names
from structpe.pictures.plan import RELATION, WORD, PlacedText
from structpe.pictures.style import FAINT, GREY, INK, LINES, MUTED, PictureError, look, tall, text_box, wide
from structpe.pictures.view import Looked, View, view
from structpe.system.files import atomic_text

__all__ = ["MapFigure", "graph_of", "page", "save_page", "shell"]


STYLE = """
body{font:14px/1.45 system-ui,sans-serif;color:#1f2933;margin:1.2rem 1.6rem;background:#fff}
h1{font-size:1.15rem;margin:0}h2{font-size:1rem;margin:1.2rem 0 .3rem}
.note{color:#6b7785;margin:.2rem 0 .8rem}main{display:flex;gap:1.5rem;align-items:flex-start}
section{min-width:0;flex:1}figure{margin:0;overflow-x:auto}figure[hidden]{display:none}
.maps{display:flex;flex-wrap:wrap;gap:.5rem}
aside{position:sticky;top:1rem;width:17rem;flex:none;max-height:94vh;overflow:auto;border-left:2px solid #eef1f4;
padding-left:1rem}
aside h3{font-size:.95rem;margin:.2rem 0}aside h4{font-size:.8rem;margin:.8rem 0 .2rem;color:#6b7785;font-weight:600}
table{border-collapse:collapse;font-size:.78rem}td{padding:.05rem .6rem .05rem 0}
td:last-child{text-align:right;font-variant-numeric:tabular-nums}select{font:inherit}
@media(max-width:46rem){body{margin:1rem}main{flex-direction:column}section{max-width:100%}
aside{position:static;width:auto;max-height:none;border:0;padding:0}}
"""

SCRIPT = """
(function () {
  const said = JSON.parse(document.getElementById('said').textContent);
  const graph = document.getElementById('graph'), aside = document.getElementById('row');
  const maps = [...document.querySelectorAll('figure.map')];
  const plot = figure => figure.querySelector('.js-plotly-plot');
  let shown = null;
  function line(tag, text, into) {
    const made = document.createElement(tag); made.textContent = text; into.appendChild(made); return made;
  }
  function frame(row) {
    return {type: 'rect', xref: 'paper', x0: 0, x1: 1, y0: row - .5, y1: row + .5,
            line: {color: '#d55e00', width: 2}};
  }
  function table(map, row, into) {
    const values = plot(map).data[0].z[row], names = said.maps[+map.dataset.map];
    const made = document.createElement('table');
    values.forEach((value, column) => {
      const text = value === null ? (names.special[row + ',' + column] || 'none') : String(value);
      const tr = document.createElement('tr'); line('td', names.columns[column], tr); line('td', text, tr);
      made.appendChild(tr);
    });
    into.appendChild(made);
  }
  function show(node) {
    shown = node;
    const rows = said.owner.map((owner, unit) => owner === node ? unit : -1).filter(unit => unit >= 0);
    const at = graph.data[said.nodeTrace];
    Plotly.restyle(graph, {x: [[at.x[node]]], y: [[at.y[node]]]}, [said.nodeTrace + 1]);
    aside.replaceChildren();
    line('h3', node + ' ' + said.nodes[node], aside);
    maps.filter(map => !map.hidden).forEach(map => {
      Plotly.relayout(plot(map), {shapes: rows.map(frame)});
      rows.forEach(row => {
        line('h4', said.maps[+map.dataset.map].title + (rows.length > 1 ? ': ' + said.names[row] : ''), aside);
        table(map, row, aside);
      });
    });
  }
  graph.on('plotly_hover', event => {
    const point = event.points.find(each => each.curveNumber === said.nodeTrace);
    if (point && point.pointNumber !== shown) show(point.pointNumber);
  });
  maps.forEach(map => plot(map).on('plotly_hover', event => {
    const node = said.owner[event.points[0].pointNumber[0]];
    if (node !== shown) show(node);
  }));
  const choice = document.getElementById('head');
  if (choice) choice.addEventListener('change', () => {
    maps.forEach(map => {
      if (+map.dataset.map >= said.encodings) map.hidden = map.dataset.map !== choice.value;
    });
    if (shown !== null) show(shown);
  });
})();
"""


@dataclass(frozen=True)
class MapFigure:
    """A map of the page: its title, and its figure as HTML."""

    title: str
    figure: str


def shell(
    title: str,
    notes: Sequence[str],
    graph: str,
    maps: Sequence[MapFigure],
    heads: Sequence[MapFigure],
    said: dict[str, Any],
) -> str:
    """The whole page.

    Args:
        title: its heading.
        notes: notes about parts that cannot be shown.
        graph: the structure.
        maps: maps of encodings.
        heads: maps of heads, one of which is visible at a time; the last one has the means by distance.
        said: data for the script; ``said["model"]`` is the heading of the maps of heads.
    """
    first = "".join(_figure(number, part, False) for number, part in enumerate(maps))
    second = ""
    if heads:
        *each, curves = heads
        options = "".join(
            f'<option value="{len(maps) + k}">{html.escape(p.title)}</option>' for k, p in enumerate(each)
        )
        figures = "".join(_figure(len(maps) + number, part, number > 0) for number, part in enumerate(each))
        second = (
            f'<h2>{html.escape(said["model"])}</h2><label>Shown: <select id="head">{options}</select></label>'
            f'<div class="maps">{figures}</div><figure>{curves.figure}</figure>'
        )
    text = "".join(f'<p class="note">{html.escape(note)}</p>' for note in notes)
    data = json.dumps(said, ensure_ascii=False).replace("<", "\\u003c")
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{html.escape(title)}</title><style>{STYLE}</style></head>
<body><h1>{html.escape(title)}</h1>
<p class="note">Point at a node, or at a cell of a map: its row of every map is framed and listed.</p>
{text}<main><section><figure>{graph}</figure><div class="maps">{first}</div>{second}</section>
<aside id="row"><p class="note">No node selected.</p></aside></main>
<script type="application/json" id="said">{data}</script>
<script>{SCRIPT}</script></body></html>
"""


def _figure(number: int, part: MapFigure, hidden: bool) -> str:
    return f'<figure class="map" data-map="{number}"{" hidden" if hidden else ""}>{part.figure}</figure>\n'


_INCH = 100
"""Pixels."""
EDGE = 10
"""Margin around the structure in pixels."""


def graph_of(drawn: Drawing) -> tuple[dict[str, Any], int]:
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
        **_layout(int(_INCH * width) + 2 * EDGE + 1, int(_INCH * height) + 2 * EDGE + 1),
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


def _over_picture(drawn: Drawing) -> dict[str, Any]:
    """The layout of a molecule: RDKit's picture, below invisible nodes."""
    assert drawn.depiction is not None
    wide, high = drawn.depiction.size
    low, top = drawn.places.min(axis=0), drawn.places.max(axis=0)
    room = 0.06 * (top - low) + 30.0
    width, height = drawn.size
    image = {"source": drawn.depiction.data_uri(), "xref": "x", "yref": "y", "x": 0, "y": 0, "sizex": wide,
             "sizey": high, "sizing": "stretch", "layer": "below"}  # fmt: skip
    return {
        **_layout(int(np.clip(_INCH * width, 320, 8000)), int(np.clip(_INCH * height + 40, 160, 1100))),
        "xaxis": {**HIDDEN, "range": [float(low[0] - room[0]), float(top[0] + room[0])]},
        "yaxis": {**HIDDEN, "scaleanchor": "x", "range": [float(top[1] + room[1]), float(low[1] - room[1])]},
        "images": [image],
    }


def _lines(drawn: Drawing) -> tuple[dict[int, NDArray[np.float64]], list[PlacedText]]:
    """The points of each drawn edge, by its number; and the labels of edges."""
    part = drawn.arcs or drawn.laid
    if part is None:
        return {}, []
    return {line.edge: line.points for line in part.lines if line.edge >= 0}, list(part.relations)


def _names(drawn: Drawing) -> tuple[list[PlacedText], float]:
    """The names of nodes, and their font size; RDKit writes those of atoms."""
    if drawn.arcs is not None:
        y = -WORD - tall(drawn.arcs.points) / 2
        return [PlacedText(n, float(x), y) for n, x in zip(drawn.names, drawn.arcs.at, strict=True)], drawn.arcs.points
    if drawn.laid is None:
        return [], 8.0
    at = drawn.laid.texts.tolist()
    return [PlacedText(name, x, y) for name, (x, y) in zip(drawn.names, at, strict=True)], drawn.laid.points


def _edges(lines: dict[int, NDArray[np.float64]]) -> dict[str, Any]:
    x = [value for line in lines.values() for value in (*line[:, 0].tolist(), None)]
    y = [value for line in lines.values() for value in (*line[:, 1].tolist(), None)]
    return _scatter("lines", x, y, line={"color": MUTED, "width": 1})


def _gaps(relations: list[PlacedText]) -> dict[str, Any]:
    """White boxes behind the labels of edges, which hide the lines."""
    boxes = [text_box(each.x, each.y, wide(each.text, RELATION), 0.8 * tall(RELATION)) for each in relations]
    x = [value for left, _, right, _ in boxes for value in (left, right, right, left, left, None)]
    y = [value for _, low, _, high in boxes for value in (low, low, high, high, low, None)]
    return _scatter("lines", x, y, fill="toself", fillcolor="white", line={"width": 0})


def _hints(drawn: Drawing, lines: dict[int, NDArray[np.float64]]) -> dict[str, Any]:
    """The text for an edge when the pointer is at its middle."""
    nodes, edges = drawn.structure.nodes, drawn.structure.edges
    texts = [
        html.escape(f"{nodes[edges[edge, 0]]} {drawn.structure.relation(edge) or 'and'} {nodes[edges[edge, 1]]}")
        for edge in lines
    ]
    middles = [line[len(line) // 2] for line in lines.values()]
    x, y = ([float(middle[axis]) for middle in middles] for axis in (0, 1))
    return _scatter("markers", x, y, "text", hovertext=texts, marker={"size": 6, "color": "rgba(0,0,0,0)"})


def _texts(texts: list[PlacedText], points: float, colour: str) -> dict[str, Any]:
    return _scatter(
        "text",
        [each.x for each in texts],
        [each.y for each in texts],
        text=[html.escape(each.text) for each in texts],
        textposition="middle center",
        textfont={"size": _pixels(points), "color": colour},
    )


def _pixels(points: float) -> float:
    return round(points * _INCH / 72, 1)


def _below(drawn: Drawing) -> list[dict[str, Any]]:
    """The labels without room at their edges."""
    if drawn.laid is None or not drawn.laid.below:
        return []
    text = "<br>".join(html.escape(line) for line in drawn.laid.below)
    return [{"text": text, "x": 0.05, "y": 0.03, "xref": "x", "yref": "y", "xanchor": "left", "yanchor": "bottom",
             "align": "left", "showarrow": False, "font": {"size": _pixels(RELATION), "color": MUTED}}]  # fmt: skip


def _nodes(drawn: Drawing) -> dict[str, Any]:
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
"""Largest number of units; with more a page would be slow."""
LETTERS, HIGH = 9, 12
"""Font size of the names at the axes of maps, and the height of their lines, in pixels."""
CELLS = 3_000_000
"""Largest number of cells of all maps; with more a page would be too large."""


def page(
    structure: Any, what: Sequence[Looked] = (), quantity: Quantity | None = None, slice: int = 0, seed: int = 0
) -> str:
    """The HTML page of a structure; the arguments are those of :func:`structpe.pictures.view.view`.

    Raises:
        MissingExtra: plotly is not installed, or RDKit for a molecule.
        EncodingError, PositionError: an encoding or a model does not fit the structure.
        PictureError: there are more than 400 units, or 3 million cells in all maps; or as in that function.
    """
    seen = view(structure, what, quantity, slice, seed)
    heads = [replace(heat, title=f"{block.title}, {heat.title}") for block in seen.blocks for heat in block.heads]
    maps = [*seen.heats, *heads]
    _check_size(seen, maps)
    limits = None if not heads else (min(h.limits[0] for h in heads), max(h.limits[1] for h in heads))
    with look():
        drawn = Drawing(seen.structure, most=MOST)  # words on a page are always horizontal
        parts = [MapFigure(heat.title, _html(_map(heat, None), f"map{i}")) for i, heat in enumerate(seen.heats)]
        learned = [MapFigure(heat.title, _html(_map(heat, limits), f"head{i}")) for i, heat in enumerate(heads)]
    if heads:
        learned.append(MapFigure("means", _html(_curves(seen), "curves")))
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
    title = _INCH * wide(heat.title, 0.72 * 13) + 20
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
    return _INCH * max(wide(name, 0.72 * LETTERS) for name in names)


def _axis(names: Sequence[str], room: float) -> dict[str, Any]:
    """Names of rows or columns, thinned to have enough room."""
    step = max(1, int(np.ceil(room)))
    at = list(range(0, len(names), step))
    shown = {"tickvals": at, "ticktext": [html.escape(names[i]) for i in at]}
    return {**shown, "showgrid": False, "zeroline": False, "tickfont": {"size": LETTERS}}


def _plain(values: NDArray[np.float64]) -> list[list[float | None]]:
    """Numbers rounded to five significant digits; None for NaN."""
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
