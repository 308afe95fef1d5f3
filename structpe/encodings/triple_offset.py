"""Offsets inside triples: a graph as many short texts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.base import UNREACHABLE, Encoded, Encoding, check_all_pairs, flags
from structpe.structure import Ids, Structure

__all__ = ["TripleOffset"]

_FAR = 1 << 17  # an offset beyond every table


@dataclass(frozen=True)
class TripleOffset(Encoding, name="triple-offset"):
    """Offsets inside triples: a graph as many short texts.

    r_ts: how many places unit s is after unit t in the text "head relation tail" of a triple that contains both.

    ::

        r_ts = place of s - place of t    in the text of a triple, or within their common node
               UNREACHABLE                if no triple has both

    The graph is that of :func:`structpe.transforms.levi`, split into units: relations are nodes, each with the units
    of its label, one for each triple, marked by the feature ``is_relation``. An edge between two nodes that are not
    relations is a triple whose relation has no unit. (Plenz and Frank 2024, section 4.) If two triples have the same
    head and tail, the offsets between these are those in the last triple, as in the authors' code. A node that is head
    and tail of one triple keeps the offsets within the node, which the code overwrites by those between its two
    occurrences in the text.

    A virtual node (feature ``virtual``) is an end mark, as ``</s>`` in the code: 131072 places after every unit, which
    is infinite for all tables of T5.
    """

    arity = 2
    codes = ("unreachable",)

    def one(self, structure: Structure) -> Encoded:
        check_all_pairs(self, [structure])
        owner = structure.unit_owner
        first, count = np.searchsorted(owner, np.arange(structure.size)), np.bincount(owner, minlength=structure.size)
        offsets = np.full((len(owner), len(owner)), UNREACHABLE)
        for members in self._texts(structure):
            units = np.concatenate([first[node] + np.arange(count[node]) for node in members])
            places = np.arange(len(units))
            offsets[units[:, None], units[None, :]] = places[None, :] - places[:, None]
        for node in range(structure.size):  # a head that is also the tail occurs twice in its text
            places = np.arange(count[node])
            own = slice(first[node], first[node] + count[node])
            offsets[own, own] = places[None, :] - places[:, None]
        return Encoded.of_pairs(_marked(flags(self, structure, "virtual")[owner], offsets))

    def _texts(self, structure: Structure) -> list[tuple[int, ...]]:
        """The nodes of each triple, in the order in which edges lead on from their heads."""
        relation = flags(self, structure, "is_relation")
        onward: dict[int, list[int]] = {}
        for source, target in structure.edges.tolist():
            if relation[source]:
                onward.setdefault(source, []).append(target)
        texts: list[tuple[int, ...]] = []
        for source, target in structure.edges.tolist():
            if relation[source]:
                continue
            tails = onward.get(target, [])
            texts += [(source, target, tail) for tail in tails] if relation[target] else [(source, target)]
        return texts


def _marked(its: NDArray[np.bool_], offsets: Ids) -> Ids:
    """Move the units of the virtual node, marked by (u,), far after every other unit."""
    here, there = its[:, None], its[None, :]
    return np.where(here & ~there, -_FAR, np.where(there & ~here, _FAR, offsets))
