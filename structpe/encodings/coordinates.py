"""Places of units in a grid or in space, and offsets and distances between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.base import Column, Encoded, Encoding, check_all_pairs, check_key, flags
from structpe.encodings.columns import blocks, narrow, ranges, significant
from structpe.encodings.graphs import Graphs, column_of, of_units, places_by
from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = [
    "OUTSIDE",
    "CircleInSpace",
    "Coordinates",
    "Diagonal",
    "Euclidean",
    "GridOffset",
    "GridRange",
    "GridRank",
    "Points",
    "UnitSquare",
    "places_in_grid",
    "places_in_space",
]


def places_in_grid(encoding: Encoding, structure: Structure, axes: int) -> Ids:
    """(u, axes) places in a grid, -1 on every axis without one; see :class:`structpe.encodings.Coordinates`.

    Raises:
        EncodingError: the structure has neither coordinates nor an order, has coordinates on more axes, or coordinates
            that are not whole numbers from 0.
    """
    given = _given(encoding, structure, "coordinates", axes)
    places = given.astype(np.int64)
    outside = (places == -1).all(axis=1)
    if len(wrong := np.flatnonzero((places != given).any(axis=1) | ((places < 0).any(axis=1) & ~outside))):
        raise encoding.error(
            structure,
            f"the coordinates of unit {wrong[0]} are {given[wrong[0]].tolist()}; places in a grid are whole numbers "
            f"from 0, or -1 on every axis of what has no place; for others choose the encoding 'points'",
        )
    widened: Ids = _widened(places, axes)
    widened[outside] = -1
    return widened


def places_in_space(encoding: Encoding, structure: Structure, key: str, axes: int) -> NDArray[Any]:
    """(u, axes) values of a feature for the units, or their reading order; see :class:`structpe.encodings.Points`.

    Raises:
        EncodingError: the structure has neither the feature nor an order, the feature has more axes, or the structure
            is a grid without the feature.
    """
    return _widened(_given(encoding, structure, key, axes), axes)


def _given(encoding: Encoding, structure: Structure, key: str, axes: int) -> NDArray[Any]:
    """(u, axes given) numbers."""
    if key in structure.features:
        of_nodes = np.asarray(structure.features[key])
        of_nodes = of_nodes[:, None] if of_nodes.ndim == 1 else of_nodes
        if of_nodes.ndim != 2 or of_nodes.shape[1] > axes:
            raise encoding.error(
                structure,
                f"feature {key!r} has {'x'.join(map(str, of_nodes.shape[1:]))} numbers per node, this encoding takes "
                f"{axes} at most; give it more axes",
            )
        return of_units(structure, of_nodes)
    if structure.order is None or "coordinates" in structure.features:
        raise encoding.error(
            structure,
            f"the structure has no feature {key!r}, and is no sequence, which would not need one; give "
            f"Structure(features={{{key!r}: ...}}), an array of one row per node; grid(shape) gives 'coordinates'",
        )
    return places_by(structure, structure.order)[:, None]


def _widened(places: NDArray[Any], axes: int) -> NDArray[Any]:
    return np.pad(places, ((0, 0), (axes - places.shape[1], 0)))


_AXES = 64  # more than any grid has

OUTSIDE = 1 << 24
"""The offset on every axis if a unit has no place in the grid: OUTSIDE + 1 if only the query has none, OUTSIDE + 2 if
only the key, OUTSIDE + 3 if both."""


@dataclass(frozen=True)
class _OnAxes(Encoding):
    """Encodings of places with coordinates.

    Args:
        axes: number of coordinates.

    Raises:
        EncodingError: the structure has neither coordinates nor an order, has coordinates on more axes, or coordinates
            that are not whole numbers from 0.
    """

    axes: int = 2

    def __post_init__(self) -> None:
        if not 1 <= self.axes <= _AXES:
            needed = "1 or more" if self.axes < 1 else f"{_AXES} at most"
            raise EncodingError(f"encoding {self.name!r}: the number of axes is {self.axes}; give {needed}")


@dataclass(frozen=True)
class Coordinates(_OnAxes, name="coordinates"):
    """The place of a unit in a grid.

    (y, x), or any other number of axes: the place of a unit in a grid, int64 (axes), each from 0.

    The values are the row of the unit's node in ``structure.features["coordinates"]``, which
    :func:`structpe.transforms.grid` and :func:`structpe.transforms.product` create. A structure without this feature is
    a grid of one line: the place in reading order (:class:`structpe.encodings.Order`) is the last coordinate, and the
    others are 0. If a grid has fewer axes, the first coordinates are 0. A node without a place in the grid, such as a
    class token, has -1 on every axis.
    """

    arity = 1
    causal = True

    def one(self, structure: Structure) -> Encoded:
        return Encoded(places_in_grid(self, structure, self.axes))


@dataclass(frozen=True)
class GridOffset(_OnAxes, name="grid-offset"):
    """The offset of two units along each axis of a grid.

    (y_s - y_t, x_s - x_t), key minus query on each axis: values (r, axes), int64.

    The coordinates are those of :class:`Coordinates`; on a sequence the last offset is s - t and the others are 0.
    Units of one node of a grid have the same place. For pairs with a unit without a place see :data:`OUTSIDE`.
    """

    arity = 2
    causal = True

    def one(self, structure: Structure) -> Encoded:
        check_all_pairs(self, [structure], self.axes)
        places = places_in_grid(self, structure, self.axes)
        outside = places[:, 0] < 0
        reach = places.max(axis=0, initial=0)
        if math.prod(2 * int(most) + 1 for most in reach) > np.iinfo(np.int64).max:
            raise self.error(
                structure,
                f"the grid reaches to {reach.tolist()}, which has more offsets than int64 has numbers; number the "
                f"places of each axis from 0 on, or choose the encoding 'points'",
            )
        # One number per offset, with a digit per axis: sorting numbers is faster than sorting rows.
        number = np.zeros((len(places), len(places)), dtype=np.int64)
        for axis, most in zip(places.T, reach, strict=True):
            number = number * (2 * most + 1) + (axis[None, :] - axis[:, None] + most)
        code = outside[:, None] + 2 * outside[None, :]
        number = np.where(code > 0, -code, number)
        distinct, index = np.unique(number, return_inverse=True)
        return Encoded(_offsets(distinct, reach), narrow(index.reshape(number.shape)))


@dataclass(frozen=True)
class GridRank(_OnAxes, name="grid-rank"):
    """The rank of a unit on each line of a grid that goes through it.

    (rank, length) on each axis, int64 (axes, 2): the rank from 1 of a unit on the line through it, and the length.

    With m_c = 1 if the place c of a grid exists and is valid, and the line through the unit's place u on axis a::

        value[a] = (sum of m_c over the places c of the line up to u, sum of m_c over the whole line)

    So (y + 1, height) and (x + 1, width) in a whole image. Nodes with 0 in the feature ``valid`` (n), such as padding
    of an image, are not counted; without this feature all places are valid. A unit without a place in the grid has (0,
    0) on every axis. Places are those of :class:`Coordinates`.
    """

    arity = 1

    def one(self, structure: Structure) -> Encoded:
        places, of_unit = np.unique(places_in_grid(self, structure, self.axes), axis=0, return_inverse=True)
        valid = np.zeros(len(places), dtype=np.int64)
        given = flags(self, structure, "valid") if "valid" in structure.features else np.ones(structure.size)
        np.maximum.at(valid, of_unit.reshape(-1), of_units(structure, given) != 0)
        outside = places[:, 0] < 0
        valid[outside] = 0
        ranks = np.stack([_ranks(places, valid, axis) for axis in range(self.axes)], axis=1)
        ranks[outside] = 0
        return Encoded(ranks[of_unit.reshape(-1)])


@dataclass(frozen=True)
class Points(_OnAxes, name="points"):
    """The place of a unit in space.

    The place of a unit in space, float32 (axes): metres, degrees, seconds.

    The values are the row of the unit's node in a feature of the structure. A structure without it and without
    coordinates is a line: the place in reading order is the last coordinate, and the others are 0. If a space has fewer
    axes, the first coordinates are 0.

    Args:
        key: name of the feature.

    Raises:
        EncodingError: the structure has neither the feature nor an order, the feature has more axes, or the structure
            is a grid without the feature.
    """

    arity = 1
    causal = True
    real = True

    key: str = "coordinates"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_key(self, self.key)

    def one(self, structure: Structure) -> Encoded:
        places = places_in_space(self, structure, self.key, self.axes)
        if (farthest := np.abs(places.astype(np.float64)).max(initial=0)) > np.finfo(np.float32).max:
            raise self.error(
                structure, f"feature {self.key!r} reaches to {farthest:g}, too far for float32; give it in larger units"
            )
        return Encoded(places.astype(np.float32))


def _ranks(places: Ids, valid: Ids, axis: int) -> Ids:
    """(places, 2) number of valid places on the line up to each place, and on the whole line."""
    others = np.delete(places, axis, axis=1)
    line = np.unique(others, axis=0, return_inverse=True)[1].reshape(-1) if others.shape[1] else np.zeros_like(valid)
    order = np.lexsort((places[:, axis], line))
    total = np.bincount(line, weights=valid).astype(np.int64)
    before = np.cumsum(total) - total
    counted = np.empty_like(valid)
    counted[order] = np.cumsum(valid[order])
    return np.stack([counted - before[line], total[line]], axis=1)


def _offsets(numbers: Ids, reach: Ids) -> Ids:
    """(r, axes) offsets from their numbers; negative numbers are special values."""
    values = np.empty((len(numbers), len(reach)), dtype=np.int64)
    rest = numbers
    for axis in reversed(range(len(reach))):
        rest, digit = np.divmod(rest, 2 * reach[axis] + 1)
        values[:, axis] = digit - reach[axis]
    return np.where(numbers[:, None] < 0, OUTSIDE - numbers[:, None], values)


@dataclass(frozen=True)
class UnitSquare(Encoding, name="unit-square"):
    """The place in a grid, scaled to the same range for every size of grid.

    -1 + 2 c/(n - 1) and 2/(n - 1) along each axis, c = 0..n-1 the coordinate: the place of a unit, and the step.

    float32 (2, 2) per unit: for each axis the place, from -1 to 1, and the step from one place to the next. c is that
    of :class:`structpe.encodings.Coordinates`, n one more than the largest c of the structure. Along an axis on which
    all units have c = 0, the place is -1 and the step 0. A unit without a place in the grid has place 0 and step -1.

    Raises:
        EncodingError: the structure has neither coordinates nor an order, or it has more than two coordinates.
    """

    arity = 1
    real = True

    def one(self, structure: Structure) -> Encoded:
        c = places_in_grid(self, structure, 2)
        reach = np.maximum(c.max(axis=0), 0)
        step = 2 / np.where(reach > 0, reach, np.inf)
        both = np.stack([-1 + c * step, np.broadcast_to(step, c.shape)], axis=-1)
        both[c[:, 0] < 0] = (0, -1)
        return Encoded(both.astype(np.float32))


@dataclass(frozen=True)
class GridRange(_OnAxes, name="grid-range"):
    """The place in a grid, scaled to the same range for every size of grid, as the middle of a step or its beginning.

    low + (high - low) (c + 1/2)/n along each axis, c = 0..n-1 the coordinate; without ``centre`` c in place of c + 1/2.

    float32 (axes) per unit. c is that of :class:`structpe.encodings.Coordinates`, n one more than the largest c of the
    structure. -1 to 1 with centres are the coordinates of patches in DINOv3; 0 to 16 without are those of EVA-02, which
    was trained on 16 patches a side. A unit without a place in the grid has 0 on each axis.

    Args:
        low: where the range begins.
        high: where it ends, above ``low``.
        centre: whether a place is the middle of its step.
    """

    arity = 1
    real = True

    low: float = -1.0
    high: float = 1.0
    centre: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low < self.high:
            raise EncodingError(
                f"encoding {self.name!r}: a range from {self.low:g} to {self.high:g} is empty; give a high above low"
            )

    def one(self, structure: Structure) -> Encoded:
        c = places_in_grid(self, structure, self.axes)
        share = (c.astype(np.float32) + np.float32(0.5 * self.centre)) / (c.max(axis=0, initial=0) + 1).astype(
            np.float32
        )
        scaled = np.float32(self.high - self.low) * share + np.float32(self.low)
        scaled[c[:, 0] < 0] = 0
        return Encoded(scaled)


@dataclass(frozen=True)
class Diagonal(Encoding, name="diagonal"):
    """The place in a video, its frames one after another on the diagonal of time, row and column (VideoRoPE).

    (s t, s t + y - floor((H-1)/2), s t + x - floor((W-1)/2)) of the place (t, y, x) in a grid: float32 (3) per unit.

    The middle of each frame is where the unit of a text would be that is s t places on. H and W are one more than the
    largest y and x of the structure. Places are those of :class:`structpe.encodings.Coordinates`, with three axes; a
    unit without one has 0 three times. A structure without coordinates is a text: its places, three times. (Wei et al.
    2025, and their code, where s is 2 in most models.)

    Args:
        scale: s, places of text from one frame to the next, above 0.
    """

    arity = 1
    real = True
    axes: ClassVar[int] = 3

    scale: float = 2.0

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise EncodingError(f"encoding {self.name!r}: frames are {self.scale:g} places apart; give more than 0")

    def one(self, structure: Structure) -> Encoded:
        c = places_in_grid(self, structure, self.axes)
        if "coordinates" not in structure.features:
            return Encoded(np.repeat(c[:, -1:], self.axes, axis=1).astype(np.float32))
        middle = c.max(axis=0, initial=0) // 2
        places = c[:, :1] * self.scale + (c - middle) * np.array([0, 1, 1])
        places[c[:, 0] < 0] = 0
        return Encoded(places.astype(np.float32))


@dataclass(frozen=True)
class CircleInSpace(Encoding, name="circle-in-space"):
    """The place in an image, on a circle around the line of the places of texts (Circle-RoPE).

    r (cos(a) v + sin(a) w), v = (0, 1, -1) / sqrt(2), w = (2, -1, -1) / sqrt(6): float32 (3) per unit.

    ::

        a = alpha 2 pi (b - min b) / (max b - min b) + (1 - alpha) 2 pi (y W + x) / (H W),  b = atan2(y - y', x - x')

    (y', x') is the middle of the image. The circle is in the plane at right angles to (1, 1, 1), the direction in which
    texts go on, so that a text has the same distance from all parts of an image. The numbers are for time, row and
    column. (Wang C. et al. 2025, and their code: r = 10 and alpha = 0.5.) Places are those of
    :class:`structpe.encodings.Coordinates`; a unit without one has 0 three times. A structure without coordinates is a
    text: its places, three times.

    Args:
        radius: r.
        alpha: share of the angle at which a place is seen from the middle; the rest is the rank of the place.
    """

    arity = 1
    real = True
    axes: ClassVar[int] = 3

    radius: float = 10.0
    alpha: float = 0.5

    def __post_init__(self) -> None:
        if self.radius <= 0 or not 0 <= self.alpha <= 1:
            raise EncodingError(
                f"encoding {self.name!r}: a radius of {self.radius:g} and an alpha of {self.alpha:g}; give a radius "
                f"above 0 and an alpha from 0 to 1"
            )

    def one(self, structure: Structure) -> Encoded:
        c = places_in_grid(self, structure, 2)
        if "coordinates" not in structure.features:
            return Encoded(np.repeat(c[:, -1:], self.axes, axis=1).astype(np.float32))
        inside = c[c[:, 0] >= 0]
        points = np.zeros((len(c), self.axes))
        if len(inside):
            points[c[:, 0] >= 0] = self._points(inside)
        return Encoded(points.astype(np.float32))

    def _points(self, places: Ids) -> NDArray[np.float64]:
        height, width = places.max(axis=0) + 1
        y, x = (places - (np.array([height, width]) - 1) / 2).T
        # Of the whole image, as some of its places may have no unit.
        rows, columns = np.ogrid[:height, :width]
        every = np.arctan2(rows - (height - 1) / 2, columns - (width - 1) / 2)
        seen, span = np.arctan2(y, x), every.max() - every.min()
        seen = (seen - every.min()) / span * (2 * math.pi) if span > 0 else seen
        rank = (places[:, 0] * width + places[:, 1]) / (height * width) * (2 * math.pi)
        angle = self.alpha * seen + (1 - self.alpha) * rank
        v, w = np.array([0, 1, -1]) / math.sqrt(2), np.array([2, -1, -1]) / math.sqrt(6)
        circle: NDArray[np.float64] = self.radius * (np.cos(angle)[:, None] * v + np.sin(angle)[:, None] * w)
        return circle


Floats = NDArray[np.float64]

_PAIRS = 1 << 18  # of the structures that are encoded together
_FAR = 1e30  # models read distances in float32, squared


@dataclass(frozen=True)
class Euclidean(Encoding, name="euclidean"):
    """Distances in space between units, with the labels of their nodes.

    (|x_t - x_s|, label of t, label of s) of the nodes of query t and key s: values (r, 3), float64.

    x is the row of a node in a feature of the structure, with any number of coordinates; a structure without it is a
    line, and x the place of a node in reading order. Labels are numbers: 1 + i is ``labels[i]``, 0 an unknown label.
    All units of a node are at its place.
    Distances have 11 significant digits, so equal ones are one value. (For Graphormer-3D, Shi et al. 2022.)

    Args:
        labels: the known labels of nodes, such as the elements of atoms; :meth:`fit` finds them.
        key: name of the feature.

    Raises:
        EncodingError: the structure has neither the feature nor an order.
    """

    arity = 2
    causal = True
    real = True
    recurs = True
    version = 2

    labels: tuple[str, ...] = ()
    key: str = "coordinates"

    def __post_init__(self) -> None:
        check_key(self, self.key)

    def fit(self, structures: Sequence[Structure]) -> Euclidean:
        return replace(self, labels=tuple(sorted({label for s in structures for label in s.nodes})))

    def many(self, structures: Sequence[Structure]) -> Column:
        check_all_pairs(self, structures)  # before the coordinates are read, which may be missing
        places = [self._places(structure) for structure in structures]
        for structure, mine in zip(structures, places, strict=True):
            check_all_pairs(self, [structure], max(3, mine.shape[1]))
            if (farthest := np.abs(mine).max(initial=0)) > _FAR:
                raise self.error(structure, f"feature {self.key!r} reaches to {farthest:g}; give it in larger units")
        graphs = Graphs.of(structures)
        numbers = {label: i for i, label in enumerate(self.labels, start=1)}
        names = chain.from_iterable(each.nodes for each in structures)
        labels = np.fromiter(map(numbers.get, names, repeat(0)), dtype=np.int64, count=len(graphs.graph))
        index = np.empty(int(graphs.pair_start[-1]), dtype=np.uint32)
        values, counts = [np.zeros((0, 3))], [np.zeros(0, dtype=np.int64)]
        for some in blocks(np.square(graphs.sizes), _PAIRS):
            pairs = slice(graphs.pair_start[some.start], graphs.pair_start[some.stop])
            found, index[pairs], count = _triples(graphs, some, places[some], labels)
            values.append(found)
            counts.append(count)
        return column_of(graphs, np.concatenate(values), index, np.concatenate(counts))

    def _places(self, structure: Structure) -> NDArray[np.float64]:
        if self.key in structure.features:
            return np.asarray(structure.features[self.key], dtype=np.float64).reshape(structure.size, -1)
        if structure.order is None:
            raise self.error(
                structure,
                f"the structure has no feature {self.key!r}, and no reading order in its place; give "
                f"Structure(features={{{self.key!r}: ...}}), an array of one row per node",
            )
        return structure.order[:, None].astype(np.float64)


def _triples(graphs: Graphs, some: slice, places: Sequence[Floats], labels: Ids) -> tuple[Floats, Ids, Ids]:
    """Of some structures: the distinct triples of each, the index of each pair among them, and their numbers."""
    sizes = graphs.sizes[some]
    apart = np.concatenate([np.sqrt(((x[:, None] - x[None, :]) ** 2).sum(axis=-1)).reshape(-1) for x in places])
    distances, which = np.unique(significant(apart), return_inverse=True)
    graph = np.repeat(np.arange(len(sizes)), np.square(sizes))
    first = np.repeat(graphs.start[some], sizes)
    query = np.repeat(np.arange(len(first)) + graphs.start[some.start], np.repeat(sizes, sizes))
    key = ranges(first, np.repeat(sizes, sizes))
    # Numbers in place of rows, which sort faster: of structure and distance, then also of both labels.
    lengths, nth = np.unique(graph * len(distances) + which, return_inverse=True)
    known, label = np.unique(labels[graphs.start[some.start] : graphs.start[some.stop]], return_inverse=True)
    label_of = label[query - graphs.start[some.start]] * len(known) + label[key - graphs.start[some.start]]
    triples, index = np.unique(nth * len(known) ** 2 + label_of, return_inverse=True)
    nth, both = np.divmod(triples, len(known) ** 2)
    mine, length = np.divmod(lengths[nth], len(distances))
    counts = np.bincount(mine, minlength=len(sizes))
    values = np.column_stack([distances[length], known[both // len(known)], known[both % len(known)]])
    return values, index - np.repeat(np.cumsum(counts) - counts, np.square(sizes)), counts
