"""Where nodes, edges and their labels are, in inches from the lower left, so that no two texts meet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.pictures._boxes import Box, apart, tall, text_box, wide
from structpe.pictures._hierarchy import walk
from structpe.pictures._plot import label
from structpe.pictures._relations import RELATION, Curve, Written, curve_of, wrapped, write
from structpe.pictures.heat import NAMED
from structpe.pictures.places import Form, places_of
from structpe.structure import Structure

__all__ = ["RELATED", "Laid", "Line", "laid_out"]

RELATED = 90
"""Edges up to which their labels are written."""
LONGEST = 22
"""Letters of a relation."""
LAYER = 0.75
"""Between the layers of a hierarchy."""
ABOVE = 0.25
"""How far above its node the label of an edge in a hierarchy is."""
PAD = 0.06
"""Around the text in a box."""
BESIDE = 0.14
"""From the middle of a dot down to the middle of its label."""
GROWN = (1.0, 1.3, 1.7, 2.2)
"""How much larger than its names need a graph is tried, until the labels of its edges find room."""
FEW = 20
"""Nodes of a hierarchy up to which it is tried likewise, wider."""
MARGIN = 0.06
"""Around the whole."""


@dataclass(frozen=True, eq=False)
class Line:
    """An edge as it is drawn: its number, its points (k, 2), and whether its end may have an arrow."""

    edge: int
    points: NDArray[np.float64]
    arrow: bool = True


@dataclass(frozen=True, eq=False)
class Laid:
    """A graph laid out.

    Attributes:
        places: (n, 2) of nodes.
        texts: (n, 2) of the middles of their names.
        points: size of their letters.
        dots: whether nodes are dots, with the names next to or in them; otherwise their names are boxed.
        lines: edges.
        relations: labels of edges.
        below: lines of text below the drawing: labels that have no room at their edges.
        size: width and height.
    """

    places: NDArray[np.float64]
    texts: NDArray[np.float64]
    points: float
    dots: bool
    lines: tuple[Line, ...]
    relations: tuple[Written, ...]
    below: tuple[str, ...]
    size: tuple[float, float]


def laid_out(structure: Structure, form: Form, names: list[str]) -> Laid:
    """The plan of a sequence, a grid, a hierarchy or a graph; asked while ``look`` holds."""
    points = _points(structure.size, form)
    boxed = 0.02 if form == "graph" else 2 * PAD
    sizes = np.array([(wide(name, points) + 2 * PAD, tall(points) + boxed) for name in names])
    written = len(structure.edges) <= RELATED and form not in ("sequence", "grid")
    relations = [label(structure.relation(edge), LONGEST) if written else "" for edge in range(len(structure.edges))]
    tries = [_Try(structure, form, sizes, relations, 1.0)]
    while tries[-1].left and (form == "graph" or structure.size <= FEW) and len(tries) < len(GROWN):
        tries.append(_Try(structure, form, sizes, relations, GROWN[len(tries)]))
    best = min(tries, key=lambda each: len(each.left))
    return _settled(best, [_told(structure, names, edge, relations) for edge in best.left], points)


class _Try:
    """A plan, without the list below.

    Attributes:
        texts, places: (n, 2) of names, and of nodes.
        lines: the edges.
        written: labels.
        left: edges whose labels have no room.
        taken: boxes of all texts and nodes.
    """

    def __init__(
        self, structure: Structure, form: Form, sizes: NDArray[np.float64], relations: list[str], grown: float
    ) -> None:
        beside = form == "graph" and structure.size <= NAMED
        self.dots = form == "graph"
        self.texts = _texts(structure, form, sizes, relations, grown)
        self.places = self.texts + np.array([0.0, BESIDE]) if beside else self.texts
        self.taken = [text_box(*middle, *size) for middle, size in zip(self.texts, sizes, strict=True)]
        ends = [text_box(x, y, 0.12, 0.12) for x, y in self.places] if beside else list(self.taken)
        edges = _Edges(structure, form, self.places, ends, relations)
        self.taken += [*ends, *(_box_of(each) for each in edges.fixed)]
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
    """Moved to where its lower left is at 0, above the list."""
    corners = [
        *best.taken,
        *(np.concatenate([line.points.min(axis=0), line.points.max(axis=0)]) for line in best.lines),
    ]
    low = np.min([corner[:2] for corner in corners], axis=0) - MARGIN
    width, height = (np.max([corner[2:] for corner in corners], axis=0) + MARGIN - low).tolist()
    width = max(width, *(wide(entry, RELATION) + 2 * MARGIN for entry in below), 0.0)
    told = tuple(wrapped(below, width - 2 * MARGIN))
    under = tall(RELATION) * len(told) + 0.1 * bool(told)
    move = np.array([0.0, under]) - low
    return Laid(
        best.places + move,
        best.texts + move,
        points,
        best.dots,
        tuple(Line(line.edge, line.points + move, line.arrow) for line in best.lines),
        tuple(Written(each.text, each.x + float(move[0]), each.y + float(move[1])) for each in best.written),
        told,
        (width, height + under),
    )


class _Edges:
    """The edges of a plan: how each is drawn, and what its label may do.

    Attributes:
        lines: of all edges that are drawn.
        fixed: labels whose place is kept free for them.
        across: the number and the label of every other edge, with the ways that it may go.
    """

    def __init__(
        self, structure: Structure, form: Form, places: NDArray[np.float64], ends: list[Box], relations: list[str]
    ) -> None:
        self.lines: list[Line] = []
        self.fixed: list[Written] = []
        self.across: list[tuple[int, str, tuple[Curve, ...]]] = []
        found = walk(structure) if form == "hierarchy" else None
        child = {} if found is None else {int(edge): node for node, edge in enumerate(found.edge) if edge >= 0}
        seen: dict[tuple[int, int], int] = {}
        for edge, (source, target) in enumerate(structure.edges.tolist()):
            pair = (min(source, target), max(source, target))
            seen[pair] = seen.get(pair, -1) + 1
            if found is not None and edge in child:
                node = child[edge]
                self._down(edge, (ends[int(found.parent[node])], ends[node]), node == target, relations[edge])
            elif form != "sequence" or places[source, 1] == places[target, 1]:  # a line goes on below, as text does
                if source == target:
                    self._loop(edge, ends[source], relations[edge])
                    continue
                bend = 0.22 * (seen[pair] + (found is not None)) * (1 if source < target else -1)
                bends = [bend] if found is None else [bend, -bend, 1.8 * bend, -1.8 * bend, 2.6 * bend, -2.6 * bend]
                ways = tuple(curve_of(places[source], places[target], each) for each in bends)
                self.across.append((edge, relations[edge], ways))

    def _down(self, edge: int, ends: tuple[Box, Box], down: bool, relation: str) -> None:
        """From below the parent to above the child, where its label is, and straight on through that."""
        upper, lower = ends
        x = (lower[0] + lower[2]) / 2
        middle = (lower[1] + lower[3]) / 2
        points = np.array([((upper[0] + upper[2]) / 2, upper[1]), (x, middle + ABOVE + 0.1), (x, lower[3])])
        self.lines.append(Line(edge, points if down else points[::-1]))
        if relation:
            self.fixed.append(Written(relation, float(x), float(middle + ABOVE)))

    def _loop(self, edge: int, box: Box, relation: str) -> None:
        """A circle at the upper right of its node; the label is tried around it."""
        centre = np.array([box[2], box[3] + 0.04])
        turn = np.linspace(0, 2 * np.pi, 17)
        self.lines.append(Line(edge, centre + 0.1 * np.stack([np.sin(turn), np.cos(turn)], axis=1), arrow=False))
        around = centre + np.array([(0.0, 0.18), (0.0, 0.0), (0.3, 0.0)])
        self.across.append((edge, relation, (Curve(around),)))


def _points(size: int, form: Form) -> float:
    """Of the names of nodes."""
    if form in ("sequence", "hierarchy") or size <= 30:
        return 8.0
    if size <= NAMED:
        return 7.0
    return 5.5 if form == "grid" else 4.5


def _texts(
    structure: Structure, form: Form, sizes: NDArray[np.float64], relations: list[str], grown: float
) -> NDArray[np.float64]:
    """(n, 2) the middle of each name, of a graph so many times as far apart as names need."""
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


def _between(edge: int, curve: Curve, start: Box, end: Box) -> Line:
    """The part of an edge that is outside of the boxes of its nodes."""
    points = np.stack([curve.at(way) for way in np.linspace(0, 1, 161)])
    free = [not _within(point, start) and not _within(point, end) for point in points]
    kept = points[free]
    return Line(edge, kept) if len(kept) > 1 else Line(edge, curve.points[[0, 2]], arrow=False)


def _within(point: NDArray[np.float64], box: Box) -> bool:
    return bool(box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3])


def _box_of(written: Written) -> Box:
    return text_box(written.x, written.y, wide(written.text, RELATION, "italic") + 0.06, tall(RELATION))


def _told(structure: Structure, names: list[str], edge: int, relations: list[str]) -> str:
    source, target = structure.edges[edge].tolist()
    return f"{names[source]} {'→' if structure.directed else '–'} {names[target]}: {relations[edge]}"
