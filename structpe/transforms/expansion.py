"""From nodes that own units to units that are nodes: the positions of subwords from that of their word."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from structpe.structure import Ids, Structure, of_structures

__all__ = ["Rule", "expand"]

Rule = Literal["all", "first", "chain"]

UNIT = "unit"
"""The relation between two units of one word."""


@of_structures
def expand(structure: Structure, rule: Rule = "all") -> Structure:
    """Choose the positions of the subwords of a word.

    * ``all``: every unit has the place of its word (survey, footnote 1). Nothing changes, since encodings do this by
      default. Those of offsets between nodes, such as ``distance``, distinguish the units of one word by their order
      (survey, eq. 31).
    * ``first``: the first unit replaces the word, with its edges; each further unit is a new node, a child of the first
      by the relation ``unit``. In a tree it is one level deeper, so only the first unit has the position of the word.
    * ``chain``: as ``first``, but each further unit is a child of the previous one, so that positions continue within
      the word: depths are d, d + 1, d + 2, ..., and ``spr-relative`` and signed distances between them are offsets.

    The units are read in their order. A node has the features of its word; those of a new edge are 0. A word of a tree
    without units is left out: its dependents become those of its head. If it is the root, its first dependent becomes
    the root and the head of the others.

    Raises:
        StructureError: the rule does not exist; a node has no unit, and the graph is not a tree.
    """
    if rule not in ("all", "first", "chain"):
        raise structure.error(f"the rule is {rule!r}; give 'all', 'first' or 'chain'")
    if rule == "all" or structure.units is None or structure.owner is None:
        return structure
    structure = _without_units(structure, structure.owner)
    assert structure.owner is not None, "the nodes that are left own units"
    assert structure.units is not None, "which have texts"
    owner = structure.owner
    first = np.searchsorted(owner, np.arange(structure.size))
    further = np.flatnonzero(first[owner] != np.arange(len(owner)))
    heads = first[owner[further]] if rule == "first" else further - 1
    labelled = structure.relations or not len(structure.edges)
    return replace(
        structure,
        nodes=structure.units,
        edges=np.concatenate([first[structure.edges], np.column_stack([heads, further])]),
        relations=(*structure.relations, *[UNIT] * len(further)) if labelled else (),
        order=_order(structure, owner),
        root=None if structure.root is None else int(first[structure.root]),
        units=None,
        owner=None,
        features={name: _rows(name, value, owner, len(further)) for name, value in structure.features.items()},
    )


def _rows(name: str, values: NDArray[Any], owner: Ids, further: int) -> NDArray[Any]:
    values = np.asarray(values)
    if not name.startswith("edge_"):
        return values[owner]
    return np.pad(values, [(0, further), *[(0, 0)] * (values.ndim - 1)])


def _order(structure: Structure, owner: Ids) -> Ids | None:
    if structure.order is None:
        return None
    return np.argsort(np.argsort(structure.order[owner], kind="stable"), kind="stable")


def _without_units(structure: Structure, owner: Ids) -> Structure:
    """The tree without nodes that have no unit."""
    kept = np.unique(owner)
    if len(kept) == structure.size:
        return structure
    parents = structure.parents()
    has = np.isin(np.arange(structure.size), kept)
    while len(wrong := kept[(parents[kept] >= 0) & ~has[parents[kept]]]):
        parents[wrong] = parents[parents[wrong]]
    tops = kept[parents[kept] < 0]
    parents[tops[1:]] = tops[0]
    place = np.cumsum(has) - 1
    below = kept[parents[kept] >= 0]
    edge = np.empty(structure.size, dtype=np.int64)
    edge[structure.edges[:, 1]] = np.arange(len(structure.edges))
    rows = {name: edge[below] if name.startswith("edge_") else kept for name in structure.features}
    return replace(
        structure,
        nodes=tuple(structure.nodes[node] for node in kept),
        edges=np.column_stack([place[parents[below]], place[below]]),
        relations=tuple(structure.relations[number] for number in edge[below]) if structure.relations else (),
        order=None if structure.order is None else np.argsort(np.argsort(structure.order[kept])),
        root=None if structure.root is None else int(place[tops[0]]),
        owner=place[owner],
        features={name: np.asarray(value)[rows[name]] for name, value in structure.features.items()},
    )
