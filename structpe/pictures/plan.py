"""Plans of drawings: the places of nodes, edges and their labels.

All lengths are in inches from the lower left; for parses, words are below 0 and arcs above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from structpe.pictures.heat import NAMED
from structpe.pictures.layout import Form, places_of, reading_rank, walk
from structpe.pictures.style import INK, LINES, MUTED, Box, apart, label, meets, tall, text_box, wide
from structpe.structure import Structure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "RELATION",
    "UPRIGHT",
    "Arcs",
    "EdgeCurve",
    "EdgeLine",
    "Laid",
    "PlacedText",
    "arcs_of",
    "draw_arcs",
    "holds",
    "laid_out",
    "levels",
    "wrapped",
    "write",
]


RELATION = 6
"""Font size of the labels of edges, and of the list below."""
WAYS = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82)
"""Positions along an edge that are tried for its label, from 0 to 1."""


@dataclass(frozen=True)
class PlacedText:
    """A text and the place of its middle."""

    text: str
    x: float
    y: float

    @property
    def box(self) -> Box:
        """The box of the text, with a margin."""
        return text_box(self.x, self.y, wide(self.text, RELATION, "italic") + 0.06, tall(RELATION))


@dataclass(frozen=True, eq=False)
class EdgeCurve:
    """A drawn edge from a start to an end, with a bend.

    Attributes:
        points: (3, 2) start, control point and end of a curve of degree 2.
    """

    points: NDArray[np.float64]

    def at(self, way: float) -> NDArray[np.float64]:
        """(2,) the point at a position along it, from 0 to 1."""
        start, control, end = self.points
        place: NDArray[np.float64] = (1 - way) ** 2 * start + 2 * way * (1 - way) * control + way**2 * end
        return place


def holds(box: Box, point: NDArray[np.float64]) -> bool:
    """Whether a point is in a box."""
    return bool(box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3])


def _curve_of(start: NDArray[np.float64], end: NDArray[np.float64], bend: float) -> EdgeCurve:
    """An edge with a bend, as a fraction of its length."""
    across = np.array([end[1] - start[1], start[0] - end[0]])
    return EdgeCurve(np.stack([start, (start + end) / 2 + bend * across, end]))


def write(
    wanted: Sequence[tuple[str, Sequence[EdgeCurve]]], taken: list[Box]
) -> tuple[list[EdgeCurve], list[PlacedText], list[int]]:
    """Choose the curve of each edge and place its label; return curves, labels, and the indices of labels without room.

    An edge has the first curve with room for its label that crosses nothing, or else the first with room.

    Args:
        wanted: the label of each edge, which may be empty, and its possible curves.
        taken: occupied boxes, to which those of the labels are added.
    """
    chosen: list[EdgeCurve] = []
    written: list[PlacedText] = []
    left: list[int] = []
    for number, (text, ways) in enumerate(wanted):
        found = [(way, _room(text, way, taken)) for way in ways] if text else []
        free = [each for each in found if each[1] is not None]
        clear = [each for each in free if len(free) > 1 and not _crossed(each[0], taken)]
        way, place = (clear or free or [(ways[0], None)])[0]
        chosen.append(way)
        if place is not None:
            taken.append(place.box)
            written.append(place)
        elif text:
            left.append(number)
    return chosen, written, left


def _room(text: str, curve: EdgeCurve, taken: list[Box]) -> PlacedText | None:
    """A place along an edge where its label overlaps nothing."""
    width, height = wide(text, RELATION, "italic") + 0.06, tall(RELATION)
    for way in WAYS:
        x, y = (float(each) for each in curve.at(way))
        if not meets(text_box(x, y, width, height), taken):
            return PlacedText(text, x, y)
    return None


def _crossed(curve: EdgeCurve, taken: list[Box]) -> bool:
    """Whether an edge crosses boxes other than those of its ends, each of which may have two."""
    points = [curve.at(way) for way in np.linspace(0, 1, 21)]
    ends = [curve.points[0], curve.points[2]]
    others = [box for box in taken if not any(holds(box, end) for end in ends)]
    return any(holds(box, point) for box in others for point in points)


def wrapped(entries: Sequence[str], width: float) -> list[str]:
    """Entries, wrapped to lines of a width in inches."""
    lines: list[str] = []
    for entry in entries:
        longer = f"{lines[-1]}    {entry}" if lines else entry
        if lines and wide(longer, RELATION) <= width:
            lines[-1] = longer
        else:
            lines.append(entry)
    return lines


UPRIGHT = 40
"""Largest number of horizontal words; more are vertical, without relations."""
LEVEL, LOW_LEVEL, MANY = 0.3, 0.18, 12
"""Distance between levels of arcs, and the number of levels above which it is smaller."""
LONGEST_ON_ARC = 16
"""Largest number of letters of a relation."""
WORD = 0.15
"""Distance between the arcs and the words below."""


@dataclass(frozen=True, eq=False)
class Arcs:
    """The layout of a parse.

    Attributes:
        at: (n,) the middle of each node's word.
        spans: (e, 2) the two ends of each edge, as places in reading order.
        heights: (e,) the height of each arc.
        points: font size of the words.
        upright: whether words are vertical.
        size: width and height; the left of the first word is at 0.
        below: how far words reach below 0.
        relations: of each edge; empty if they are not written.
    """

    at: NDArray[np.float64]
    spans: NDArray[np.int64]
    heights: NDArray[np.float64]
    points: float
    upright: bool
    size: tuple[float, float]
    below: float
    relations: tuple[str, ...]

    @property
    def top(self) -> float:
        """The height of the highest arc; only the arrow of the root goes above it."""
        return float(self.heights.max(initial=LEVEL))


def levels(spans: NDArray[np.int64]) -> NDArray[np.int64]:
    """(e,) the level of each arc, from 1: above all arcs between its ends, and different from those that it crosses.

    Args:
        spans: (e, 2) the two ends of each arc, as places in reading order.
    """
    low, high = spans.min(axis=1), spans.max(axis=1)
    level = np.zeros(len(spans), dtype=np.int64)
    for arc in np.argsort(high - low, kind="stable"):
        meets = (low < high[arc]) & (high > low[arc]) & (level > 0)
        within = meets & (low >= low[arc]) & (high <= high[arc])
        level[arc] = 1 + int(level[within].max(initial=0))
        while (level[meets] == level[arc]).any():
            level[arc] += 1
    return level


def arcs_of(structure: Structure, names: list[str], most: int = UPRIGHT) -> Arcs:
    """The layout of words and arcs; call it inside :func:`structpe.pictures.style.look`.

    Args:
        structure: a parse.
        names: names of its nodes.
        most: largest number of horizontal words.
    """
    upright = structure.size > most
    points = 6.0 if upright else 8.5
    widths = np.array([wide(name, points) for name in names])
    rank = reading_rank(structure)
    spans = rank[structure.edges].reshape(-1, 2)
    high = levels(spans) if len(spans) else np.ones(0, dtype=np.int64)
    relations = tuple("" if upright else label(structure.relation(edge), LONGEST_ON_ARC) for edge in range(len(spans)))
    ordered = np.empty(structure.size)
    ordered[rank] = tall(points) if upright else widths
    at = _apart(ordered, spans, relations, 0.02 if upright else 0.24)
    step = LEVEL if high.max(initial=1) <= MANY else LOW_LEVEL
    below = WORD + (float(widths.max()) if upright else tall(points)) + 0.05
    height = step * max(int(high.max(initial=1)), 1) + 0.4 + below
    right = float((at + ordered / 2).max()) + 0.05
    return Arcs(at[rank], spans, step * high.astype(np.float64), points, upright, (right, height), below, relations)


def draw_arcs(axes: Axes, structure: Structure, names: list[str], arcs: Arcs) -> None:
    """Draw a parse; a unit of the axes is an inch."""
    for name, x in zip(names, arcs.at, strict=True):
        axes.text(x, -WORD, name, ha="center", va="top", fontsize=arcs.points,
                  rotation=90 if arcs.upright else 0, color=INK)  # fmt: skip
    starts = arcs.at[structure.edges[:, 0]] + _sides(arcs.spans, 0.02 if arcs.upright else 0.055)
    for edge, (_, dependent) in enumerate(structure.edges.tolist()):
        end = float(arcs.at[dependent])
        _arc(axes, float(starts[edge]), end, float(arcs.heights[edge]), arcs.relations[edge])
    if structure.root is not None:
        root = float(arcs.at[structure.root])
        axes.annotate("", (root, 0.0), (root, arcs.top + 0.17), arrowprops=_arrow(LINES[1]))
        axes.text(root, arcs.top + 0.19, "root", ha="center", va="bottom", fontsize=6, color=LINES[1], style="italic")


def _arrow(colour: str) -> dict[str, object]:
    return {"arrowstyle": "-|>", "color": colour, "linewidth": 0.8, "mutation_scale": 6, "shrinkA": 0, "shrinkB": 0}


def _sides(spans: NDArray[np.int64], step: float) -> NDArray[np.float64]:
    """(e,) the distance of the start of each arc from the middle of its head; shorter arcs start farther out."""
    side = np.zeros(len(spans))
    way, far = np.sign(spans[:, 1] - spans[:, 0]), np.abs(spans[:, 1] - spans[:, 0])
    for arc, (head, _) in enumerate(spans):
        farther = (spans[:, 0] == head) & (way == way[arc]) & (far > far[arc])
        side[arc] = way[arc] * step * min(1 + int(farther.sum()), 4)
    return side


def _arc(axes: Axes, start: float, end: float, height: float, relation: str) -> None:
    """Draw an arc from the head up, across, and down to the dependent, with an arrow."""
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path

    bend = min(0.18, abs(end - start) / 3) * np.sign(end - start)
    path = Path(
        [(start, 0), (start, height), (start + bend, height), (end - bend, height), (end, height), (end, 0.036)],
        [1, 3, 3, 2, 3, 3],
    )
    axes.add_artist(PathPatch(path, fill=False, edgecolor=MUTED, linewidth=0.8, zorder=1))
    axes.add_artist(Polygon([(end - 0.025, 0.048), (end + 0.025, 0.048), (end, 0.0)], color=MUTED, zorder=1))
    if relation:
        axes.text(
            (start + end) / 2, height, relation, ha="center", va="center", fontsize=RELATION, color=LINES[0],
            style="italic", zorder=2, bbox={"boxstyle": "square,pad=0.12", "facecolor": "white", "edgecolor": "none"},
        )  # fmt: skip


def _apart(
    widths: NDArray[np.float64], spans: NDArray[np.int64], relations: tuple[str, ...], between: float
) -> NDArray[np.float64]:
    """(n,) the middle of the word at each place, with enough room for words and relations."""
    gaps = (widths[1:] + widths[:-1]) / 2 + between
    for (a, b), relation in zip(np.sort(spans, axis=1).tolist(), relations, strict=True):
        needed = wide(relation, RELATION, "italic") + 0.3 if relation else 0.0
        have = gaps[a:b].sum()
        if have < needed:
            gaps[a:b] += (needed - have) / (b - a)
    at: NDArray[np.float64] = np.concatenate([[0.0], np.cumsum(gaps)])
    return at - float((at - widths / 2).min())


_RELATED = 90
"""Largest number of edges with labels."""
LONGEST = 22
"""Largest number of letters of a relation."""
LAYER = 0.75
"""Distance between the layers of a hierarchy."""
ABOVE = 0.25
"""Distance between a node in a hierarchy and the label of the edge above it."""
PAD = 0.06
"""Margin around the text in a box."""
BESIDE = 0.14
"""Distance from the middle of a dot down to the middle of its label."""
GROWN = (1.0, 1.3, 1.7, 2.2)
"""Scales of a graph, relative to the room for its names, which are tried until all labels of edges have room."""
FEW = 20
"""Largest number of nodes of a hierarchy for which larger scales are tried."""
MARGIN = 0.06
"""Margin around the picture."""


@dataclass(frozen=True, eq=False)
class EdgeLine:
    """A drawn edge: its number, its points (k, 2), and whether its end may have an arrow."""

    edge: int
    points: NDArray[np.float64]
    arrow: bool = True


@dataclass(frozen=True, eq=False)
class Laid:
    """The layout of a graph.

    Attributes:
        places: (n, 2) places of nodes.
        texts: (n, 2) middles of their names.
        points: font size of the names.
        dots: whether nodes are dots, with the names next to or in them; otherwise names are in boxes.
        lines: edges.
        relations: labels of edges.
        below: lines of text below the drawing, with labels that have no room at their edges.
        size: width and height.
    """

    places: NDArray[np.float64]
    texts: NDArray[np.float64]
    points: float
    dots: bool
    lines: tuple[EdgeLine, ...]
    relations: tuple[PlacedText, ...]
    below: tuple[str, ...]
    size: tuple[float, float]


def laid_out(structure: Structure, form: Form, names: list[str]) -> Laid:
    """The layout of a sequence, a grid, a hierarchy or a graph; call it inside ``look``."""
    points = _points(structure.size, form)
    boxed = 0.02 if form == "graph" else 2 * PAD
    sizes = np.array([(wide(name, points) + 2 * PAD, tall(points) + boxed) for name in names])
    written = len(structure.edges) <= _RELATED and form not in ("sequence", "grid")
    relations = [label(structure.relation(edge), LONGEST) if written else "" for edge in range(len(structure.edges))]
    tries = [_Try(structure, form, sizes, relations, 1.0)]
    while tries[-1].left and (form == "graph" or structure.size <= FEW) and len(tries) < len(GROWN):
        tries.append(_Try(structure, form, sizes, relations, GROWN[len(tries)]))
    best = min(tries, key=lambda each: len(each.left))
    return _settled(best, [_entry(structure, names, edge, relations) for edge in best.left], points)


class _Try:
    """A candidate for the layout, without the list below.

    Attributes:
        texts, places: (n, 2) middles of names, and places of nodes.
        lines: the edges.
        written: labels.
        left: edges whose labels have no room.
        taken: boxes of all texts and nodes.
    """

    def __init__(
        self, structure: Structure, form: Form, sizes: NDArray[np.float64], relations: list[str], grown: float
    ) -> None:
        outside = form == "graph" and structure.size <= NAMED
        self.dots = form == "graph"
        self.texts = _texts(structure, form, sizes, relations, grown)
        self.places = self.texts + np.array([0.0, BESIDE]) if outside else self.texts
        self.taken = [text_box(*middle, *size) for middle, size in zip(self.texts, sizes, strict=True)]
        ends = [text_box(x, y, 0.12, 0.12) for x, y in self.places] if outside else list(self.taken)
        edges = _Edges(structure, form, self.places, ends, relations)
        self.taken += [*ends, *(each.box for each in edges.fixed)]
        ways, found, left = write([(text, ways) for _, text, ways in edges.across], self.taken)
        numbers = [edge for edge, _, _ in edges.across]
        curved = [
            _between(edge, way, *(ends[node] for node in structure.edges[edge]))
            for edge, way in zip(numbers, ways, strict=True)
            if structure.edges[edge, 0] != structure.edges[edge, 1]
        ]
        self.lines = [*edges.lines, *curved]
        self.written = [*edges.fixed, *found]
        self.left = [numbers[each] for each in left]


def _settled(best: _Try, below: list[str], points: float) -> Laid:
    """The final layout, with the list below, and its lower left moved to 0."""
    corners = [
        *best.taken,
        *(np.concatenate([line.points.min(axis=0), line.points.max(axis=0)]) for line in best.lines),
    ]
    low = np.min([corner[:2] for corner in corners], axis=0) - MARGIN
    width, height = (np.max([corner[2:] for corner in corners], axis=0) + MARGIN - low).tolist()
    width = max(width, *(wide(entry, RELATION) + 2 * MARGIN for entry in below), 0.0)
    listed = tuple(wrapped(below, width - 2 * MARGIN))
    under = tall(RELATION) * len(listed) + 0.1 * bool(listed)
    move = np.array([0.0, under]) - low
    return Laid(
        best.places + move,
        best.texts + move,
        points,
        best.dots,
        tuple(EdgeLine(line.edge, line.points + move, line.arrow) for line in best.lines),
        tuple(PlacedText(each.text, each.x + float(move[0]), each.y + float(move[1])) for each in best.written),
        listed,
        (width, height + under),
    )


class _Edges:
    """The edges of a layout: their lines, and the possible places of their labels.

    Attributes:
        lines: of all drawn edges.
        fixed: labels with a reserved place.
        across: the number and the label of every other edge, with its possible curves.
    """

    def __init__(
        self, structure: Structure, form: Form, places: NDArray[np.float64], ends: list[Box], relations: list[str]
    ) -> None:
        self.lines: list[EdgeLine] = []
        self.fixed: list[PlacedText] = []
        self.across: list[tuple[int, str, tuple[EdgeCurve, ...]]] = []
        found = walk(structure) if form == "hierarchy" else None
        child = {} if found is None else {int(edge): node for node, edge in enumerate(found.edge) if edge >= 0}
        seen: dict[tuple[int, int], int] = {}
        for edge, (source, target) in enumerate(structure.edges.tolist()):
            pair = (min(source, target), max(source, target))
            seen[pair] = seen.get(pair, -1) + 1
            if found is not None and edge in child:
                node = child[edge]
                self._down(edge, (ends[int(found.parent[node])], ends[node]), node == target, relations[edge])
            elif form != "sequence" or places[source, 1] == places[target, 1]:  # no edge at a line break
                if source == target:
                    self._loop(edge, ends[source], relations[edge])
                    continue
                bend = 0.22 * (seen[pair] + (found is not None)) * (1 if source < target else -1)
                bends = [bend] if found is None else [bend, -bend, 1.8 * bend, -1.8 * bend, 2.6 * bend, -2.6 * bend]
                ways = tuple(_curve_of(places[source], places[target], each) for each in bends)
                self.across.append((edge, relations[edge], ways))

    def _down(self, edge: int, ends: tuple[Box, Box], down: bool, relation: str) -> None:
        """An edge from below the parent to the label above the child, and straight through it to the child."""
        upper, lower = ends
        x = (lower[0] + lower[2]) / 2
        middle = (lower[1] + lower[3]) / 2
        points = np.array([((upper[0] + upper[2]) / 2, upper[1]), (x, middle + ABOVE + 0.1), (x, lower[3])])
        self.lines.append(EdgeLine(edge, points if down else points[::-1]))
        if relation:
            self.fixed.append(PlacedText(relation, float(x), float(middle + ABOVE)))

    def _loop(self, edge: int, box: Box, relation: str) -> None:
        """A circle at the upper right of its node, with the label around it."""
        centre = np.array([box[2], box[3] + 0.04])
        turn = np.linspace(0, 2 * np.pi, 17)
        self.lines.append(EdgeLine(edge, centre + 0.1 * np.stack([np.sin(turn), np.cos(turn)], axis=1), arrow=False))
        around = centre + np.array([(0.0, 0.18), (0.0, 0.0), (0.3, 0.0)])
        self.across.append((edge, relation, (EdgeCurve(around),)))


def _points(size: int, form: Form) -> float:
    """Font size of the names of nodes."""
    if form in ("sequence", "hierarchy") or size <= 30:
        return 8.0
    if size <= NAMED:
        return 7.0
    return 5.5 if form == "grid" else 4.5


def _texts(
    structure: Structure, form: Form, sizes: NDArray[np.float64], relations: list[str], grown: float
) -> NDArray[np.float64]:
    """(n, 2) the middle of each name, at a scale relative to the room for names."""
    if form == "sequence":
        return places_of(structure, form, sizes[:, 0]) * [1.0, 0.42]
    if form == "hierarchy":
        widths = sizes[:, 0] + 0.12
        for node, edge in enumerate(walk(structure).edge):
            if edge >= 0 and relations[edge]:
                widths[node] = max(widths[node], wide(relations[edge], RELATION, "italic") + 0.14)
        return places_of(structure, form, grown * widths) * [1.0, LAYER]
    at = places_of(structure, form)
    if form == "grid":
        return apart(at * [max(0.45, sizes[:, 0].max() + 0.14), max(0.4, sizes[:, 1].max() + 0.14)], sizes)
    return grown * apart(at * np.clip(4.2 / np.sqrt(structure.size), 0.6, 1.25), sizes + 0.04)


def _between(edge: int, curve: EdgeCurve, start: Box, end: Box) -> EdgeLine:
    """The part of an edge outside the boxes of its nodes."""
    points = np.stack([curve.at(way) for way in np.linspace(0, 1, 161)])
    free = [not holds(start, point) and not holds(end, point) for point in points]
    kept = points[free]
    return EdgeLine(edge, kept) if len(kept) > 1 else EdgeLine(edge, curve.points[[0, 2]], arrow=False)


def _entry(structure: Structure, names: list[str], edge: int, relations: list[str]) -> str:
    source, target = structure.edges[edge].tolist()
    return f"{names[source]} {'→' if structure.directed else '–'} {names[target]}: {relations[edge]}"
