"""Distances in space between units, with the labels of their nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from structpe.encodings._flat import blocks, ranges
from structpe.encodings._graphs import Graphs
from structpe.encodings._own_values import column_of
from structpe.encodings._rounding import significant
from structpe.encodings.base import Column, Encoded, Encoding, check_all_pairs, check_key
from structpe.structure import Ids, Structure

__all__ = ["Euclidean"]

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
    Distances have 11 significant digits, so that equal ones are one value. (For Graphormer-3D, Shi et al. 2022.)

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
        object.__setattr__(self, "labels", tuple(self.labels))
        check_key(self, self.key)

    def fit(self, structures: Sequence[Structure]) -> Euclidean:
        return replace(self, labels=tuple(sorted({label for s in structures for label in s.nodes})))

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

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
