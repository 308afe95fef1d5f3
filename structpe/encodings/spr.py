"""Structural position representations of dependency trees, relative; absolute ones are ``depth``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from structpe.encodings._flat import joined
from structpe.encodings._integers import column_of_integers
from structpe.encodings._tree_pairs import sides
from structpe.encodings._trees import Forest
from structpe.encodings.base import Column, Encoded, Encoding
from structpe.structure import Ids, Structure

__all__ = ["SPRRelative"]


@dataclass(frozen=True)
class SPRRelative(Encoding, name="spr-relative"):
    """Structural position representations of dependency trees, relative; absolute ones are ``depth``.

    rel(t, s): the relative structural position of Wang X. et al. 2019 (survey, section 4.3.1).

    With abs(u) the tree distance of u from the root, and t, s also the places in reading order::

        rel(t, s) = abs(t) - abs(s)                      if t is on the path from s to the root, or s on that of t
                    sgn(t - s) (abs(t) + abs(s))         otherwise

    All units of a word have the word's place (survey, footnote 1). On a path graph rel(t, s) = t - s, the negative
    offset. For two words on different branches, the sum of depths does not depend on where their branches meet: two
    children of the root have distance 2, and so do a word and its grandchild.

    Raises:
        EncodingError: the structure is not a tree whose edges lead away from its root, or has no reading order.
    """

    arity = 2
    causal = True

    def one(self, structure: Structure) -> Encoded:
        return self.many([structure])[0]

    def many(self, structures: Sequence[Structure]) -> Column:
        forest = Forest.of(self, structures, numbers=1)
        graphs = forest.graphs
        order = joined([_order(self, each) for each in structures])
        return column_of_integers(graphs, sides(graphs.start, graphs.rooted, graphs.ways, order), within=False)


def _order(encoding: SPRRelative, structure: Structure) -> Ids:
    order = structure.order
    if order is None:
        raise encoding.error(
            structure,
            "the structure has no reading order, which tells left from right between "
            "branches; give Structure(order=...), or choose 'distance', which needs none",
        )
    return order
