"""Draws the picture of the first page: one position model on a text, on its parse and on its meaning.

python docs/figures/overview.py     # writes docs/figures/overview.svg
"""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.colors import to_hex
from numpy.typing import NDArray

import structpe
from structpe.encodings import UNREACHABLE, Distance
from structpe.formats import tree
from structpe.pictures.heat import MAPS, SHADES
from structpe.pictures.style import LINES

WIDTH, ROW, CELL = 520, 158, 26
WORDS = ["the", "keeper", "lit", "the", "lamp"]
MEANING = structpe.Structure(
    ("want", "keeper", "light", "lamp"), [[0, 1], [0, 2], [2, 1], [2, 3]], (":ARG0", ":ARG1", ":ARG0", ":ARG1"), root=0
)
ROWS = {
    "a text": structpe.path(WORDS),
    "its parse": tree(WORDS, heads=[2, 3, 0, 5, 3]),
    "a meaning (AMR)": MEANING,
}
PLACES = {"want": (88, 50), "keeper": (30, 122), "light": (152, 90), "lamp": (152, 148)}
BLUE, ORANGE = LINES[0], LINES[1]


def text(x: float, y: float, said: str, more: str = 'text-anchor="middle"') -> str:
    """A text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(said)}</text>'


def arrow(points: str, colour: str = BLUE) -> str:
    """A line with a head."""
    return f'<path d="{points}" fill="none" stroke="{colour}" stroke-width="1.6" marker-end="url(#head)"/>'


def sentence(structure: structpe.Structure, arcs: bool) -> str:
    """Words from left to right, joined by their order or by their parse."""
    at = np.array([16.0, 58, 98, 130, 172])
    out = "".join(text(x, 112, word) for x, word in zip(at, structure.nodes, strict=True))
    for source, target in structure.edges.tolist():
        a, b = at[source], at[target]
        if arcs:
            high = 96 - 22 * abs(source - target)
            out += arrow(f"M{a + np.sign(b - a) * 5:.0f},96 C{a:.0f},{high} {b:.0f},{high} {b:.0f},94")
        else:
            out += arrow(f"M{a:.0f},92 Q{(a + b) / 2:.0f},76 {b - 3:.0f},91")
    return out


def graph(structure: structpe.Structure) -> str:
    """Nodes at their places."""
    out = ""
    for edge, (source, target) in enumerate(structure.edges.tolist()):
        a, b = (np.array(PLACES[structure.nodes[each]], dtype=float) for each in (source, target))
        way = (b - a) / np.hypot(*(b - a))
        start, end, middle = a + 15 * way, b - (16 + 14 * abs(way[0])) * way, (a + b) / 2
        out += arrow(f"M{start[0]:.0f},{start[1]:.0f} L{end[0]:.0f},{end[1]:.0f}")
        side = -30 if b[0] < a[0] and source == 0 else 32
        middle = middle + np.array((0, 16) if source == 2 and target == 1 else (side, 0))
        out += text(middle[0], middle[1] + 3, structure.relation(edge), 'text-anchor="middle" class="small"')
    return out + "".join(text(*PLACES[node], node) for node in structure.nodes)


def matrix(values: NDArray[np.float64], shown: bool, top: float) -> str:
    """A map: of numbers with a tint, or of colours."""
    scale, out = colormaps[MAPS["sequential"]], ""
    side = CELL * len(values)
    for (i, j), value in np.ndenumerate(values):
        x, y = 75 + CELL * j - side / 2, 80 + CELL * i - side / 2
        none = value == UNREACHABLE
        if shown:
            tint = SHADES["no path"] if none else BLUE if value > 0 else ORANGE if value < 0 else "#888888"
            strength = 0.8 if none else 0.12 + 0.13 * abs(value)
            fill = f'fill="{tint}" fill-opacity="{strength:.2f}"'
        else:
            fill = f'fill="{to_hex(scale(0.5 + value / top / 2))}"'
        out += f'<rect x="{x:.1f}" y="{y:.1f}" width="{CELL - 1}" height="{CELL - 1}" {fill}/>'
        if shown and not none:
            out += text(x + CELL / 2, y + CELL / 2 + 4, f"{value:.0f}".replace("-", "−"))
    return out


def main() -> None:
    """Write the picture."""
    torch.manual_seed(0)
    model = structpe.build({"name": "t5", "encoding": "distance"}, structpe.Dims(32, 4, 1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    heads = zip((92, 285, 445), ("structure", "encoding: distance", "position model: T5"), strict=True)
    out = "".join(text(x, 18, said, 'text-anchor="middle" class="head"') for x, said in heads)
    found = []
    for structure in ROWS.values():
        positions = structpe.encode([structure], [Distance()])
        (bias,) = model.terms(model.prepare(positions), structpe.Site(0)).bias
        distances = positions[Distance()].dense()[0].numpy().astype(float)
        found.append((distances, bias.dense()[0, :, :, 0].detach().numpy()))
    top = max(float(np.abs(bias).max()) for _, bias in found)
    for place, (name, structure) in enumerate(ROWS.items()):
        distances, bias = found[place]
        drawing = graph(structure) if place == 2 else sentence(structure, arcs=place == 1)
        parts = [drawing, matrix(distances, True, 1), matrix(bias, False, top)]
        out += f'<g transform="translate(0,{28 + place * ROW})">' + text(8, 20, name, 'class="row"')
        shifted = zip((0, 210, 370), parts, strict=True)
        out += "".join(f'<g transform="translate({x},0)">{part}</g>' for x, part in shifted)
        out += "".join(text(x, 92, "→", 'text-anchor="middle" class="head"') for x in (205, 364)) + "</g>"
    height = 50 + 3 * ROW
    said = "Equal distances, equal numbers, in all three. Grey: no path along the edges."
    out += text(WIDTH / 2, height - 12, said)
    said = "One position model, T5's bias on distances, on a text, on its parse and on a meaning as an AMR graph"
    Path(__file__).with_suffix(".svg").write_text(framed(out, said, height), encoding="utf-8")


def framed(inside: str, said: str, height: int) -> str:
    """The picture on white, with its styles."""
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    font = 'font-family="Helvetica,Arial,sans-serif" font-size="13" fill="#1f2933"'
    style = f".head{{font-weight:600}}.row{{font-weight:600;fill:{BLUE}}}.small{{font-size:12px}}"
    end = 'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"'
    head = f'<defs><marker id="head" {end}><path d="M0,0 L8,4 L0,8 z" fill="{BLUE}"/></marker></defs>'
    paper = f'<rect width="{WIDTH}" height="{height}" rx="6" fill="white"/>'
    top = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{said}" {font}>'
    return f"{top}<style>{style}</style>{head}{paper}{inside}</svg>\n"


if __name__ == "__main__":
    main()
