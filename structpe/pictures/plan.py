"""Plans of drawings: the places of nodes, edges and their labels.

All lengths are in inches from the lower left; for parses, words are below 0 and arcs above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structpe.pictures.heat import NAMED
from structpe.pictures.layout import Form, places_of, reading_rank, walk
from structpe.pictures.routing import Labels, dense
from structpe.pictures.style import INK, LINES, MUTED, Box, apart, label, meets, tall, text_box, wide
from structpe.structure import Structure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "RELATION",
    "UPRIGHT",
    "Arcs",
    "EdgeLine",
    "Laid",
    "Lettering",
    "PlacedText",
    "Wanted",
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
OTHERWISE = (0.0, 0.15, -0.15, 0.3, -0.3, 0.5, -0.5, 0.8, -0.8)
"""Bends of an edge that are tried, in addition to that which parallel edges need."""
FARTHEST = 1.6
"""Twice the largest distance of a bent edge from a straight one, in inches; ways around labels are shorter."""


@dataclass(frozen=True)
class PlacedText:
    """A text and the place of its middle; ``edge`` is the edge whose label it is, -1 for a name of a node."""

    text: str
    x: float
    y: float
    edge: int = -1

    def moved(self, right: float, up: float) -> PlacedText:
        """The text at another place."""
        return replace(self, x=self.x + right, y=self.y + up)

    @property
    def box(self) -> Box:
        """The box of the text, with a margin."""
        return text_box(self.x, self.y, wide(self.text, RELATION, "italic") + 0.06, tall(RELATION))


def holds(box: Box, point: NDArray[np.float64]) -> bool:
    """Whether a point is in a box."""
    return bool(box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3])


def _curve(start: NDArray[np.float64], end: NDArray[np.float64], bend: float) -> NDArray[np.float64]:
    """(33, 2) a curve of degree 2 with a bend, as a fraction of its length."""
    control = (start + end) / 2 + bend * np.array([end[1] - start[1], start[0] - end[0]])
    way = np.linspace(0, 1, 33)[:, None]
    points: NDArray[np.float64] = (1 - way) ** 2 * start + 2 * way * (1 - way) * control + way**2 * end
    return points


@dataclass(frozen=True, eq=False)
class EdgeLine:
    """A drawn edge: its number, -1 for the root's arrow; its points (k, 2); and whether its end may have an arrow."""

    edge: int
    points: NDArray[np.float64]
    arrow: bool = True


@dataclass(frozen=True, eq=False)
class Wanted:
    """An edge that is to be drawn.

    Attributes:
        edge: its number.
        text: its label, which may be empty.
        ways: its possible lines, the first ones preferred, each with the line along which its label may be.
        ends: indices of the boxes that it may cross, those of its nodes.
    """

    edge: int
    text: str
    ways: tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]
    ends: tuple[int, ...]


class Lettering(NamedTuple):
    """Lines of edges, their labels, the edges whose labels have no room, and those that have to cross a label."""

    lines: list[EdgeLine]
    texts: list[PlacedText]
    left: list[int]
    crossing: list[int]


def write(wanted: Sequence[Wanted], labels: Labels, around: bool) -> Lettering:
    """Choose the line of each edge and place its label.

    An edge has the first curve that crosses no label and has room for its own; or else the first that crosses nothing;
    or else the shortest way around labels.

    Args:
        wanted: the edges.
        labels: labels and lines so far, to which these are added.
        around: whether to look for ways around labels, which takes time.
    """
    done = Lettering([], [], [], [])
    for each in wanted:
        line, place = each.ways[0][0], None
        free: list[NDArray[np.float64]] = []
        for way, along in each.ways:
            if labels.crossed(way, each.ends):
                continue
            free.append(way)
            if each.text and (place := _room(each, along, labels)) is None:
                continue
            break
        if not free and around and (found := labels.way(line[0], line[-1], each.ends)) is not None:
            free, place = [found], _room(each, found, labels) if each.text else None
        line = (free[-1] if place is not None else free[0]) if free else line
        done.lines.append(EdgeLine(each.edge, line))
        labels.draw(line)
        if place is not None:
            labels.add(place.box)
            done.texts.append(place)
        elif each.text:
            done.left.append(each.edge)
        if not free:
            done.crossing.append(each.edge)
    return done


def _room(wanted: Wanted, line: NDArray[np.float64], labels: Labels) -> PlacedText | None:
    """A place along a line where the label overlaps nothing."""
    points = dense(line)
    middle = PlacedText(wanted.text, 0.0, 0.0, wanted.edge)
    box = middle.box
    for way in WAYS:
        at = points[round(way * (len(points) - 1))]
        if not labels.covers(box + np.tile(at, 2)):
            return middle.moved(*at.tolist())
    return None


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
CORNER = 0.12
"""Height of the corners of arcs; below, arcs are upright, and stay away from the labels of lower ones."""
TURNS = 40
"""Largest number of times that words are moved apart to make room for relations."""
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
        lines: the arcs, and the arrow of the root.
        relations: labels of edges; none if words are vertical.
    """

    at: NDArray[np.float64]
    spans: NDArray[np.int64]
    heights: NDArray[np.float64]
    points: float
    upright: bool
    size: tuple[float, float]
    below: float
    lines: tuple[EdgeLine, ...]
    relations: tuple[PlacedText, ...]

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
    step = LEVEL if high.max(initial=1) <= MANY else LOW_LEVEL
    heights = step * high.astype(np.float64)
    sides = _sides(spans, 0.02 if upright else 0.055)
    root = None if structure.root is None else int(rank[structure.root])
    room = _Room(spans, heights, sides, relations, root)
    at, middles = room.words(ordered, 0.02 if upright else 0.24)
    below = WORD + (float(widths.max()) if upright else tall(points)) + 0.05
    height = step * max(int(high.max(initial=1)), 1) + 0.4 + below
    right = float((at + ordered / 2).max()) + 0.05
    legs = room.legs(at).tolist()
    lines = [EdgeLine(e, _arc(start, end, heights[e])) for e, (start, end) in enumerate(legs)]
    if root is not None:
        lines.append(EdgeLine(-1, np.array([(at[root], heights.max(initial=LEVEL) + 0.17), (at[root], 0.0)])))
    texts = zip(relations, middles.tolist(), heights.tolist(), strict=True)
    written = tuple(PlacedText(text, x, y, edge) for edge, (text, x, y) in enumerate(texts) if text)
    return Arcs(at[rank], spans, heights, points, upright, (right, height), below, tuple(lines), written)


def draw_arcs(axes: Axes, structure: Structure, names: list[str], arcs: Arcs) -> None:
    """Draw a parse; a unit of the axes is an inch."""
    for name, x in zip(names, arcs.at, strict=True):
        axes.text(x, -WORD, name, ha="center", va="top", fontsize=arcs.points,
                  rotation=90 if arcs.upright else 0, color=INK)  # fmt: skip
    for line in arcs.lines:
        if line.edge < 0:
            (x, y), (_, end) = line.points.tolist()
            axes.annotate("", (x, end), (x, y), arrowprops=_arrow(LINES[1]))
            axes.text(x, y + 0.02, "root", ha="center", va="bottom", fontsize=6, color=LINES[1], style="italic")
        else:
            _draw_arc(axes, line.points)
    for each in arcs.relations:
        axes.text(each.x, each.y, each.text, ha="center", va="center", fontsize=RELATION, color=LINES[0],
                  style="italic", zorder=2, bbox={"boxstyle": "square,pad=0.12", "facecolor": "white",
                                                  "edgecolor": "none"})  # fmt: skip


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


def _draw_arc(axes: Axes, points: NDArray[np.float64]) -> None:
    """Draw an arc with an arrow at the dependent."""
    from matplotlib.patches import PathPatch, Polygon
    from matplotlib.path import Path

    end = float(points[-1, 0])
    axes.add_artist(PathPatch(Path(points), fill=False, edgecolor=MUTED, linewidth=0.8, zorder=1))
    axes.add_artist(Polygon([(end - 0.025, 0.048), (end + 0.025, 0.048), (end, 0.0)], color=MUTED, zorder=1))


def _arc(start: float, end: float, height: float) -> NDArray[np.float64]:
    """(k, 2) from the head up, across, and down to the dependent, with round corners."""
    bend = min(0.18, abs(end - start) / 3) * float(np.sign(end - start))
    turn = np.linspace(0, 1, 9)[:, None]
    up = np.array([(start, height - CORNER), (start, height), (start + bend, height)])
    down = np.array([(end - bend, height), (end, height), (end, height - CORNER)])
    corners = [(1 - turn) ** 2 * a + 2 * turn * (1 - turn) * b + turn**2 * c for a, b, c in (up, down)]
    return np.concatenate([[(start, 0.0)], *corners, [(end, 0.036)]])


class _Room:
    """Distances between words with which each relation is on its arc, and no other arc goes through it.

    Args:
        spans: (e, 2) the two ends of each arc, as places in reading order.
        heights: (e,) of the arcs.
        sides: (e,) the distance of the start of each arc from the middle of its head.
        relations: of each arc, which may be empty.
        root: the place of the word to which the arrow of the root leads.
    """

    def __init__(
        self,
        spans: NDArray[np.int64],
        heights: NDArray[np.float64],
        sides: NDArray[np.float64],
        relations: tuple[str, ...],
        root: int | None,
    ) -> None:
        self.spans, self.heights, self.sides = spans, heights, sides
        self.needed = np.array([wide(text, RELATION, "italic") + 0.08 if text else 0.0 for text in relations])
        rooted = [] if root is None else [root]
        self.places = np.concatenate([spans.ravel(), rooted]).astype(np.int64)  # of the legs of all arcs
        self.tops = np.concatenate([np.repeat(heights, 2), [np.inf] * len(rooted)])
        starts = np.stack([sides, np.zeros(len(sides))], axis=1).ravel()
        self.offsets = np.concatenate([starts, np.zeros(len(rooted))])

    def legs(self, at: NDArray[np.float64]) -> NDArray[np.float64]:
        """(e, 2) where each arc starts and ends."""
        legs: NDArray[np.float64] = (at[self.places] + self.offsets)[: 2 * len(self.spans)].reshape(-1, 2)
        return legs

    def words(self, widths: NDArray[np.float64], between: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(n,) the middle of the word at each place; (e,) the middle of each relation.

        Args:
            widths: (n,) of the words.
            between: the least distance between two of them.
        """
        gaps = (widths[1:] + widths[:-1]) / 2 + between
        middles = np.zeros(len(self.spans))
        at = _middles(gaps, widths)
        for _ in range(TURNS):
            before = gaps.copy()
            for arc in np.argsort(np.abs(self.spans[:, 1] - self.spans[:, 0]), kind="stable"):
                left, right, first, last = self._widest(arc, at)
                middles[arc] = (left + right) / 2
                if (short := self.needed[arc] - (right - left)) > 1e-9:
                    gaps[first:last] += short / (last - first)
                    at = _middles(gaps, widths)
            if np.array_equal(before, gaps):
                break
        return at, middles

    def _widest(self, arc: int, at: NDArray[np.float64]) -> tuple[float, float, int, int]:
        """The part of an arc where its relation can be, with the places of the words on both sides.

        It is the widest between two legs that reach up to the arc, or the one in the middle if several are wide enough.
        """
        legs, mine = at[self.places] + self.offsets, self.legs(at)[arc]
        low, high = sorted(mine.tolist())
        bend = min(0.11, (high - low) / 3)
        inside = (legs > low + 1e-9) & (legs < high - 1e-9) & (self.tops > self.heights[arc] - 0.08)
        inside[[2 * arc, 2 * arc + 1]] = False
        order = np.argsort(legs[inside])
        edges = np.concatenate([[low + bend], legs[inside][order], [high - bend]])
        first, last = sorted(self.spans[arc].tolist())
        places = np.concatenate([[first], self.places[inside][order], [last]])
        best, score = (low, high, first, last), -np.inf
        for left, right, a, b in zip(edges[:-1], edges[1:], places[:-1], places[1:], strict=True):
            if a < b:
                middle = abs((left + right - low - high) / 2)
                worth = 1000 - middle if right - left >= self.needed[arc] else right - left - 1000
                best, score = max((best, score), ((left, right, a, b), worth), key=lambda each: each[1])
        return float(best[0]), float(best[1]), int(best[2]), int(best[3])


def _middles(gaps: NDArray[np.float64], widths: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) the middle of each word, for the distances between them; the left of the first is at 0."""
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
DOT = 0.12
"""Width of the box of a dot."""
BESIDE = 0.14
"""Distance from the middle of a dot down to the middle of its label."""
GROWN = (1.0, 1.3, 1.7, 2.2)
"""Scales of a graph, relative to the room for its names, which are tried until all labels of edges have room."""
FEW = 20
"""Largest number of nodes of a hierarchy for which larger scales are tried."""
MARGIN = 0.06
"""Margin around the picture."""


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
    larger = GROWN if form == "graph" or structure.size <= FEW else GROWN[:1]
    tries: list[_Try] = []
    while len(tries) < len(larger) and (not tries or tries[-1].left or tries[-1].crossing):
        tries.append(_Try(structure, form, sizes, relations, larger[len(tries)]))
    best = min(tries, key=lambda each: (len(each.crossing), len(each.left)))
    if best.crossing and len(structure.edges) <= _RELATED:
        best = _Try(structure, form, sizes, relations, best.grown, around=True)
    return _settled(best, [_entry(structure, names, edge, relations) for edge in best.left], points)


class _Try:
    """A candidate for the layout, without the list below.

    Attributes:
        texts, places: (n, 2) middles of names, and places of nodes.
        lines: the edges.
        written: labels.
        left: edges whose labels have no room.
        taken: boxes of all texts and nodes.
        crossing: edges whose lines cross a label.
        grown: the scale.
    """

    def __init__(
        self,
        structure: Structure,
        form: Form,
        sizes: NDArray[np.float64],
        relations: list[str],
        grown: float,
        around: bool = False,
    ) -> None:
        self.grown = grown
        outside, self.dots = form == "graph" and structure.size <= NAMED, form == "graph"
        self.texts = _texts(structure, form, sizes, relations, grown)
        self.places = self.texts + np.array([0.0, BESIDE]) if outside else self.texts
        dots = [text_box(x, y, DOT, DOT) for x, y in self.places] if outside else []
        if outside:
            self.texts = _beside(structure, self.places, sizes)
        names = [text_box(*middle, *size) for middle, size in zip(self.texts, sizes, strict=True)]
        ends = dots or names
        edges = _Edges(structure, form, self.places, ends, relations)
        labels = Labels(
            [*ends, *(names if outside else ()), *(each.box for each in edges.fixed)],
            [line.points for line in edges.lines],
        )
        done = write(edges.across, labels, around)
        self.lines = [*edges.lines, *(_between(structure, line, ends) for line in done.lines)]
        self.written, self.left, self.crossing = [*edges.fixed, *done.texts], done.left, done.crossing
        self.taken = list(labels.boxes)


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
        tuple(each.moved(*move.tolist()) for each in best.written),
        listed,
        (width, height + under),
    )


class _Edges:
    """The edges of a layout: their lines, and the possible places of their labels.

    Attributes:
        lines: of all drawn edges.
        fixed: labels with a reserved place.
        across: every other edge.
    """

    def __init__(
        self, structure: Structure, form: Form, places: NDArray[np.float64], ends: list[Box], relations: list[str]
    ) -> None:
        self.lines: list[EdgeLine] = []
        self.fixed: list[PlacedText] = []
        self.across: list[Wanted] = []
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
                    corners = _loops(ends[source])
                    first = seen[pair] % len(corners)
                    self.across.append(Wanted(edge, relations[edge], corners[first:] + corners[:first], (source,)))
                    continue
                bend = 0.22 * (seen[pair] + (found is not None)) * (1 if source < target else -1)
                long = float(np.linalg.norm(places[target] - places[source]))
                bends = [bend + more for more in OTHERWISE if not more or abs(bend + more) * long < FARTHEST]
                curves = [_curve(places[source], places[target], each) for each in bends]
                ways = tuple((curve, curve) for curve in curves)
                self.across.append(Wanted(edge, relations[edge], ways, (source, target)))

    def _down(self, edge: int, ends: tuple[Box, Box], down: bool, relation: str) -> None:
        """An edge from below the parent to the label above the child, and straight through it to the child."""
        upper, lower = ends
        x = (lower[0] + lower[2]) / 2
        middle = (lower[1] + lower[3]) / 2
        points = np.array([((upper[0] + upper[2]) / 2, upper[1]), (x, middle + ABOVE + 0.1), (x, lower[3])])
        self.lines.append(EdgeLine(edge, points if down else points[::-1]))
        if relation:
            self.fixed.append(PlacedText(relation, float(x), float(middle + ABOVE), edge))


def _loops(box: Box) -> tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...]:
    """Circles at the corners of a box, each with an arc around it for the label."""
    turn = np.linspace(0, 2 * np.pi, 17)[:, None]
    circle = 0.1 * np.concatenate([np.sin(turn), np.cos(turn)], axis=1)
    outer = np.linspace(0, np.pi / 2, 9)[:, None]
    arc = np.concatenate([0.3 * np.sin(outer), 0.18 * np.cos(outer)], axis=1)
    found = []
    for side, up in ((1, 1), (-1, 1), (1, -1), (-1, -1)):
        centre = np.array([box[2] if side > 0 else box[0], box[3] + 0.04 if up > 0 else box[1] - 0.04])
        found.append((centre + circle, centre + arc * [side, up]))
    return tuple(found)


def _beside(structure: Structure, places: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 2) the middle of each name, on the side of its dot where fewest straight edges pass."""
    dots = np.array([text_box(x, y, DOT, DOT) for x, y in places])
    ends = [(source, target) for source, target in structure.edges.tolist() if source != target]
    lines = np.concatenate([np.zeros((0, 2)), *(dense(places[[source, target]]) for source, target in ends)])
    at: NDArray[np.float64] = places - np.array([0.0, BESIDE])
    boxes = np.array([text_box(*middle, *size) for middle, size in zip(at, sizes, strict=True)])
    for node in np.argsort(-np.bincount(structure.edges.ravel(), minlength=structure.size), kind="stable"):
        others = np.concatenate([np.delete(boxes, node, axis=0), np.delete(dots, node, axis=0)])
        across, up = sizes[node, 0] / 2 - PAD + 0.09, BESIDE
        best = None
        for side in ((0, -up), (0, up), (across, 0), (-across, 0), (across, up), (-across, up), (across, -up),
                     (-across, -up)):  # fmt: skip
            box = text_box(*(places[node] + side), *sizes[node])
            if not meets(box, others):
                count = int(((lines > box[:2]) & (lines < box[2:])).all(axis=1).sum())
                best = min(best or (count, side, box), (count, side, box), key=lambda each: each[0])
        if best is not None:
            at[node], boxes[node] = places[node] + best[1], best[2]
    return at


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


def _between(structure: Structure, line: EdgeLine, ends: list[Box]) -> EdgeLine:
    """The part of an edge outside the boxes of its nodes; a loop has no arrow."""
    source, target = structure.edges[line.edge].tolist()
    if source == target:
        return EdgeLine(line.edge, line.points, arrow=False)
    points = dense(line.points)
    kept = points[[not holds(ends[source], point) and not holds(ends[target], point) for point in points]]
    return EdgeLine(line.edge, kept) if len(kept) > 1 else EdgeLine(line.edge, line.points[[0, -1]], arrow=False)


def _entry(structure: Structure, names: list[str], edge: int, relations: list[str]) -> str:
    source, target = structure.edges[edge].tolist()
    return f"{names[source]} {'→' if structure.directed else '–'} {names[target]}: {relations[edge]}"
