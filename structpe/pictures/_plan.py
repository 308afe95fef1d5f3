"""Places of nodes, edges and their labels, in inches from the lower left, so that no two texts overlap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.pictures._boxes import Box, apart, tall, text_box, wide
from structpe.pictures._hierarchy import walk
from structpe.pictures._plot import label
from structpe.pictures._relations import RELATION, Curve, Written, curve_of, holds, wrapped, write
from structpe.pictures.heat import NAMED
from structpe.pictures.places import Form, places_of
from structpe.structure import Structure

__all__ = ["RELATED", "Laid", "Line", "laid_out"]

RELATED = 90
"""Largest number of edges whose labels are written."""
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
"""Scales of a graph, relative to the room for its names, that are tried until the labels of its edges have room."""
FEW = 20
"""Largest number of nodes of a hierarchy for which larger scales are tried."""
MARGIN = 0.06
"""Margin around the picture."""


@dataclass(frozen=True, eq=False)
class Line:
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
    lines: tuple[Line, ...]
    relations: tuple[Written, ...]
    below: tuple[str, ...]
    size: tuple[float, float]


def laid_out(structure: Structure, form: Form, names: list[str]) -> Laid:
    """The layout of a sequence, a grid, a hierarchy or a graph; call it within ``look``."""
    points = _points(structure.size, form)
    boxed = 0.02 if form == "graph" else 2 * PAD
    sizes = np.array([(wide(name, points) + 2 * PAD, tall(points) + boxed) for name in names])
    written = len(structure.edges) <= RELATED and form not in ("sequence", "grid")
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
    """The layout, moved so that its lower left is at 0, above the list."""
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
        tuple(Line(line.edge, line.points + move, line.arrow) for line in best.lines),
        tuple(Written(each.text, each.x + float(move[0]), each.y + float(move[1])) for each in best.written),
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
            elif form != "sequence" or places[source, 1] == places[target, 1]:  # no edge at a line break
                if source == target:
                    self._loop(edge, ends[source], relations[edge])
                    continue
                bend = 0.22 * (seen[pair] + (found is not None)) * (1 if source < target else -1)
                bends = [bend] if found is None else [bend, -bend, 1.8 * bend, -1.8 * bend, 2.6 * bend, -2.6 * bend]
                ways = tuple(curve_of(places[source], places[target], each) for each in bends)
                self.across.append((edge, relations[edge], ways))

    def _down(self, edge: int, ends: tuple[Box, Box], down: bool, relation: str) -> None:
        """An edge from below the parent to the label above the child, and straight through it to the child."""
        upper, lower = ends
        x = (lower[0] + lower[2]) / 2
        middle = (lower[1] + lower[3]) / 2
        points = np.array([((upper[0] + upper[2]) / 2, upper[1]), (x, middle + ABOVE + 0.1), (x, lower[3])])
        self.lines.append(Line(edge, points if down else points[::-1]))
        if relation:
            self.fixed.append(Written(relation, float(x), float(middle + ABOVE)))

    def _loop(self, edge: int, box: Box, relation: str) -> None:
        """A circle at the upper right of its node, with the label around it."""
        centre = np.array([box[2], box[3] + 0.04])
        turn = np.linspace(0, 2 * np.pi, 17)
        self.lines.append(Line(edge, centre + 0.1 * np.stack([np.sin(turn), np.cos(turn)], axis=1), arrow=False))
        around = centre + np.array([(0.0, 0.18), (0.0, 0.0), (0.3, 0.0)])
        self.across.append((edge, relation, (Curve(around),)))


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
    """(n, 2) the middle of each name, with the graph scaled relative to the room for names."""
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
    free = [not holds(start, point) and not holds(end, point) for point in points]
    kept = points[free]
    return Line(edge, kept) if len(kept) > 1 else Line(edge, curve.points[[0, 2]], arrow=False)


def _entry(structure: Structure, names: list[str], edge: int, relations: list[str]) -> str:
    source, target = structure.edges[edge].tolist()
    return f"{names[source]} {'→' if structure.directed else '–'} {names[target]}: {relations[edge]}"
