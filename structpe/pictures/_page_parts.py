"""The parts of an HTML page of a structure: its frame, its style, and the script that links nodes and rows."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Part", "shell"]

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
class Part:
    """A map of the page: its title, and its figure as HTML."""

    title: str
    figure: str


def shell(
    title: str, notes: Sequence[str], graph: str, maps: Sequence[Part], heads: Sequence[Part], said: dict[str, Any]
) -> str:
    """The whole page.

    Args:
        title: its heading.
        notes: notes about parts that cannot be shown.
        graph: the structure.
        maps: maps of encodings.
        heads: maps of heads, of which one is visible at a time; the last one has the means by distance.
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


def _figure(number: int, part: Part, hidden: bool) -> str:
    return f'<figure class="map" data-map="{number}"{" hidden" if hidden else ""}>{part.figure}</figure>\n'
