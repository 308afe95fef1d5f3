"""Segments of a text, such as sentences: the number of that of each unit, and the place of the unit in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structpe.encodings._graphs import Graphs
from structpe.encodings._nearby import ranks_of_all
from structpe.encodings._units import of_units
from structpe.encodings.base import Encoded, Encoding, check_key, flags
from structpe.structure import Ids, Structure

__all__ = ["SegmentNumber", "SegmentPlace"]


@dataclass(frozen=True)
class SegmentNumber(Encoding, name="segment-number"):
    """The number of the segment of each unit, such as a sentence.

    How many segments of the text end before the unit, in reading order: 0 in the first segment.

    A segment ends with a node that the feature ``structure.features[key]`` marks, such as a full stop; the mark counts
    to the segment that it ends. A structure without the feature is one segment. A text that is being generated has no
    marks yet, so a decoder cannot use it with a cache.

    Args:
        key: name of the feature, 1 for nodes that end a segment and 0 for others.

    Raises:
        EncodingError: the structure has no order, or the feature has several numbers per node.
    """

    arity = 1

    key: str = "separator"

    def __post_init__(self) -> None:
        check_key(self, self.key)

    def one(self, structure: Structure) -> Encoded:
        return Encoded(_read(self, structure, self.key)[0])


@dataclass(frozen=True)
class SegmentPlace(Encoding, name="segment-place"):
    """The place of each unit in its segment, such as a sentence.

    How many units of its segment come before the unit, in reading order: 0 for the first of each segment.

    Segments are those of :class:`SegmentNumber`.

    Args:
        key: name of the feature, 1 for nodes that end a segment and 0 for others.

    Raises:
        EncodingError: the structure has no order, or the feature has several numbers per node.
    """

    arity = 1

    key: str = "separator"

    def __post_init__(self) -> None:
        check_key(self, self.key)

    def one(self, structure: Structure) -> Encoded:
        return Encoded(_read(self, structure, self.key)[1])


def _read(encoding: Encoding, structure: Structure, key: str) -> tuple[Ids, Ids]:
    """The number of the segment of each unit, and the place in it."""
    if structure.order is None:
        raise encoding.error(structure, "the structure has no reading order; give Structure(order=...)")
    graphs, rank = Graphs.of([structure]), ranks_of_all([structure])
    places = rank if graphs.owner is None else graphs.places(rank)
    order = np.argsort(places, kind="stable")
    node = of_units(structure, np.arange(structure.size))[order]
    last = np.append(node[1:] != node[:-1], True)  # a marked node of several units ends with the last of them
    ends = flags(encoding, structure, key)[node] & last
    number = np.cumsum(ends) - ends
    place = np.arange(len(order)) - np.searchsorted(number, number)
    back = np.argsort(order, kind="stable")
    return number[back].astype(np.int64), place[back].astype(np.int64)
