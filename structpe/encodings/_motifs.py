"""Small graphs with a root, and the number of their homomorphisms into many graphs, by eliminating vertices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Motif", "elimination", "motif", "rooted_counts", "width"]

Motif: TypeAlias = tuple[tuple[int, int], ...]
"""Edges between the vertices 0, 1, ...; 0 is the root."""
Floats = NDArray[np.float64]
Factor: TypeAlias = tuple[tuple[int, ...], Floats]
"""Vertices, and an array (b, n, ...) with one axis for each."""

_MOST_VERTICES = 12


def motif(name: str) -> Motif | None:
    """Of a name: ``cycle-K``, ``path-K`` (from an end), ``star-K`` (from its middle) or ``clique-K``, K vertices each.

    A cycle of two vertices is an edge. None for any other name.
    """
    kind, _, size = name.partition("-")
    if not size.isdecimal() or not 2 <= (k := int(size)) <= _MOST_VERTICES:
        return None
    path = [(i, i + 1) for i in range(k - 1)]
    made = {
        "cycle": path if k == 2 else [*path, (0, k - 1)],
        "path": path,
        "star": [(0, i) for i in range(1, k)],
        "clique": list(combinations(range(k), 2)),
    }
    return tuple(made[kind]) if kind in made else None


def elimination(edges: Motif) -> list[tuple[int, int]]:
    """The vertices but the root in the order in which they are summed over, each with its number of neighbours then.

    The one with the fewest neighbours is the next.
    """
    near = {v: {b for e in edges for b in e if v in e and b != v} for e in edges for v in e}
    order = []
    while len(near) > 1:
        v = min((each for each in near if each), key=lambda each: (len(near[each]), each))
        around = near.pop(v)
        order.append((v, len(around)))
        for each in around:
            near[each] = (near[each] | around) - {v, each}
    return order


def width(edges: Motif) -> int:
    """How many axes of n the largest array has that counting needs."""
    return max(size for _, size in elimination(edges))


def rooted_counts(edges: Motif, adjacency: Floats, weights: Floats | None) -> Floats:
    """(b, n) how many homomorphisms, each weighed by the product of the weights of its images, map the root to a node.

    Args:
        edges: of the motif.
        adjacency: (b, n, n) A, symmetric.
        weights: (b, n); None for 1.
    """
    factors: list[Factor] = [(edge, adjacency) for edge in edges]
    if weights is not None:
        factors += [((v,), weights) for v in {v for edge in edges for v in edge}]
    for v, _ in elimination(edges):
        those = [factor for factor in factors if v in factor[0]]
        factors = [factor for factor in factors if v not in factor[0]]
        factors.append(_summed(v, those))
    counts: Floats = reduce(np.multiply, (array for _, array in factors))
    return counts


def _summed(v: int, factors: Sequence[Factor]) -> Factor:
    """The product of the factors, summed over a vertex that all of them have."""
    left = tuple(sorted({each for scope, _ in factors for each in scope} - {v}))
    if any(len(scope) > 2 for scope, _ in factors):
        letters = {vertex: chr(ord("a") + i) for i, vertex in enumerate((v, *left))}
        terms = ["z" + "".join(letters[each] for each in scope) for scope, _ in factors]
        expression = f"{','.join(terms)}->z{''.join(letters[each] for each in left)}"
        return left, np.einsum(expression, *(array for _, array in factors))
    single = [array for scope, array in factors if len(scope) == 1]
    towards: dict[int, Floats] = {}  # products of matrices by their other vertex, v last
    for scope, array in factors:
        if len(scope) == 2:
            a, turned = (scope[0], array) if scope[1] == v else (scope[1], array.swapaxes(1, 2))
            towards[a] = towards[a] * turned if a in towards else turned
    first = towards[left[0]]
    if single:
        first = first * reduce(np.multiply, single)[:, None]
    if len(left) == 1:
        return left, first.sum(axis=2)
    if len(left) == 2:
        return left, first @ towards[left[1]].swapaxes(1, 2)
    a, b, c = left
    return (c, a, b), (first[:, None] * towards[c][:, :, None]) @ towards[b].swapaxes(1, 2)[:, None]
