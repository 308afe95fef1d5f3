"""Another reading order, such as that of a translation or a predicted one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structpe.encodings._units import places_by
from structpe.encodings.base import Encoded, Encoding, check_key
from structpe.structure import Structure

__all__ = ["Reordered"]


@dataclass(frozen=True)
class Reordered(Encoding, name="reordered"):
    """Another reading order, such as that of a translation or a predicted one.

    t': the place of a unit, from 0, if nodes are read in the order of a feature.

    The feature has a different number for each node, by which nodes are sorted; units of a node are in their order
    within the node. For a structure without the feature, t' is that of :class:`structpe.encodings.Order`.

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
                f"feature {self.key!r} must rank the nodes, each by a different number; it is {ranks.tolist()}",
            )
        return Encoded(places_by(structure, ranks))
