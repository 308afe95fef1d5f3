"""Another reading order: that of a translation, say, or one that was predicted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structpe.encodings._units import places_by
from structpe.encodings.base import Encoded, Encoding, check_key
from structpe.structure import Structure

__all__ = ["Reordered"]


@dataclass(frozen=True)
class Reordered(Encoding, name="reordered"):
    """t': the place of a unit, counted from 0, when nodes are read in the order that a feature gives them.

    The feature ranks the nodes by numbers, of which no two are the same; units of one node stand in their own order. A
    structure without it is read in its own order: t' is then that of :class:`structpe.encodings.Order`.

    Args:
        key: name of the feature.

    Raises:
        EncodingError: two nodes have the same rank, a node has several, or there is neither the feature nor an order.
    """

    arity = 1

    key: str = "reordered"

    def __post_init__(self) -> None:
        check_key(self, self.key)

    def one(self, structure: Structure) -> Encoded:
        given = structure.features.get(self.key, structure.order)
        if given is None:
            raise self.error(
                structure,
                f"the structure has no feature {self.key!r}, and no reading order in its place; give it one with "
                f"Structure(features={{{self.key!r}: ...}}), a rank per node",
            )
        ranks = np.asarray(given)
        if ranks.ndim != 1 or len(np.unique(ranks)) != len(ranks):
            raise self.error(
                structure,
                f"feature {self.key!r} must rank the nodes, each by a number of its own; it is {ranks.tolist()}",
            )
        return Encoded(places_by(structure, ranks))
