"""Sequence order: the place of each unit, from the start, the end or the middle, and the signed offset of pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structpe.encodings._encoded import narrow
from structpe.encodings._units import places_by
from structpe.encodings.base import Encoded, Encoding, check_all_pairs
from structpe.errors import EncodingError
from structpe.structure import Ids, Structure

__all__ = ["Centred", "Offset", "Order", "Remaining", "Window"]

_MOST_PAIRS = 1 << 27  # listed pairs, each of which takes 64 bytes during the computation


@dataclass(frozen=True)
class Order(Encoding, name="order"):
    """t: the place of a unit in reading order, counted from 0 (survey, section 3.1, "absolute").

    Nodes are in the order of the structure, units of a node in their order within the node.

    Raises:
        EncodingError: the structure has no order.
    """

    arity = 1
    causal = True

    def one(self, structure: Structure) -> Encoded:
        return Encoded(_places(self, structure))


@dataclass(frozen=True)
class Remaining(Encoding, name="remaining"):
    """u - 1 - t: number of units after the unit at place t in reading order, of u units; 0 for the last one.

    Raises:
        EncodingError: the structure has no order.
    """

    arity = 1

    def one(self, structure: Structure) -> Encoded:
        return Encoded(structure.unit_count - 1 - _places(self, structure))


@dataclass(frozen=True)
class Centred(Encoding, name="centred"):
    """t - (u - 1)/2, float32: signed distance of the unit at place t in reading order from the middle of u units.

    Raises:
        EncodingError: the structure has no order.
    """

    arity = 1
    real = True

    def one(self, structure: Structure) -> Encoded:
        return Encoded((_places(self, structure) - (structure.unit_count - 1) / 2).astype(np.float32))


@dataclass(frozen=True)
class Offset(Encoding, name="offset"):
    """s - t: how many places the key s is after the query t (survey, section 3.1, "relative").

    Raises:
        EncodingError: the structure has no order.
    """

    arity = 2
    causal = True

    def quadratic(self, structure: Structure) -> bool:
        return not _in_order(_places(self, structure))

    def one(self, structure: Structure) -> Encoded:
        places = _places(self, structure)
        most = len(places) - 1
        if _in_order(places):
            return Encoded.of_offsets(np.arange(-most, most + 1))
        check_all_pairs(self, [structure])
        return Encoded(np.arange(-most, most + 1), narrow(places[None, :] - places[:, None] + most))


@dataclass(frozen=True)
class Window(Encoding, name="window"):
    """s - t, as in :class:`Offset`, but only for the pairs with |s - t| <= reach; linear in the number of units.

    Args:
        reach: largest offset, to either side.

    Raises:
        EncodingError: the structure has no order, or the reach is below 1, or there are more than 2^27 pairs.
    """

    arity = 2
    causal = True
    sparse = True

    reach: int = 256

    def __post_init__(self) -> None:
        if self.reach < 1:
            raise EncodingError(f"encoding 'window': reach is {self.reach}; give 1 or more")

    def one(self, structure: Structure) -> Encoded:
        in_order = np.argsort(_places(self, structure))
        n = len(in_order)
        most = min(self.reach, n - 1)
        if (pairs := n * (2 * most + 1)) > _MOST_PAIRS:
            raise self.error(
                structure,
                f"{n} units with {most} to either side are {pairs} pairs, which take {pairs / 2**24:.0f} GiB; "
                f"{_MOST_PAIRS} pairs at most. Give a reach of {max((_MOST_PAIRS // n - 1) // 2, 1)}, or encode parts "
                f"of the text",
            )
        query, offset = np.repeat(np.arange(n), 2 * most + 1), np.tile(np.arange(-most, most + 1), n)
        there = (query + offset >= 0) & (query + offset < n)
        query, offset = query[there], offset[there]
        return Encoded.of_list(in_order[np.column_stack([query, query + offset])], offset, n)


def _in_order(places: Ids) -> bool:
    """Whether units are in reading order, so that an offset is that of their indices."""
    return bool((places[1:] > places[:-1]).all())


def _places(encoding: Encoding, structure: Structure) -> Ids:
    if structure.order is None:
        raise encoding.error(
            structure,
            "the structure has no reading order; give Structure(order=...), or choose an "
            "encoding of the graph itself, such as 'distance'",
        )
    return places_by(structure, structure.order)
