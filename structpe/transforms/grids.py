"""Products of structures: a grid is a product of paths, a video a product of three."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.errors import StructureError
from structpe.structure import Ids, Structure, of_structures, path

__all__ = ["grid", "product"]

MOST = 1 << 20
"""The largest number of nodes of a product; with more, quantities of pairs would need 10^12 numbers."""


def grid(shape: Sequence[int], labels: Sequence[str] | None = None, name: str = "") -> Structure:
    """A grid of any number of axes: the product of one path per axis, in row-major order, the last axis fastest.

    An edge leads from each node to its next neighbour on each axis, the root is the first node, and the feature
    ``coordinates`` (n, axes) has the place of each node. ``grid((n,))`` is a path with coordinates.

    Args:
        shape: length of each axis, such as (height, width) or (frames, height, width).
        labels: labels of the nodes, in row-major order; by default their coordinates, such as "0,1".
        name: name of the structure.

    Raises:
        StructureError: there is no axis, an axis is shorter than 1, there are more than 2^20 nodes, or the number of
            labels is wrong.
    """
    if not _is_whole(shape):
        raise StructureError(f"the shape of a grid is a list of whole numbers, such as (4, 6); given is {shape!r}")
    if not len(shape) or min(shape) < 1 or math.prod(shape) > MOST:
        raise StructureError(
            f"a grid of shape {tuple(shape)} cannot be made; give one axis or more, each 1 or longer, and {MOST} nodes "
            f"at most"
        )
    lines = [_line(length) for length in shape]
    whole = replace(reduce(product, lines), name=name)
    if labels is None:
        return whole
    if len(labels) != whole.size:
        raise StructureError(f"a grid of shape {tuple(shape)} has {whole.size} nodes; given are {len(labels)} labels")
    return replace(whole, nodes=tuple(labels))


@of_structures
def product(a: Structure, b: Structure) -> Structure:
    """The Cartesian product: a node (i, j) for each node i of ``a`` and j of ``b``, numbered i n_b + j.

    An edge i -> i' of ``a`` becomes (i, j) -> (i', j) for each j, with its relation, and the same for edges of ``b``.
    The reading order is that of ``a``, and within a node of ``a`` that of ``b``. There is an order, or a root, only if
    both have one. Coordinates are those of ``a``, then those of ``b``; the reading order replaces missing coordinates.
    A node (i, j) has the features of i and of j; features of edges are left out. Its label is "label of i,label of j".

    Raises:
        StructureError: units are already split, only one structure is directed, both have the same feature, or there
            are more than 2^20 nodes.
    """
    _check(a, b)
    edges = [(a.edges[:, None] * b.size + np.arange(b.size)[None, :, None]).reshape(-1, 2)]
    edges += [(b.edges[None] + b.size * np.arange(a.size)[:, None, None]).reshape(-1, 2)]
    relations = [a.relation(e) for e in range(len(a.edges)) for _ in b.nodes] + [
        b.relation(e) for _ in a.nodes for e in range(len(b.edges))
    ]
    return Structure(
        tuple(f"{i},{j}" for i in a.nodes for j in b.nodes),
        np.concatenate(edges),
        relations=tuple(relations) if a.relations or b.relations else (),
        directed=a.directed,
        order=None if a.order is None or b.order is None else (a.order[:, None] * b.size + b.order).reshape(-1),
        root=None if a.root is None or b.root is None else int(a.root) * b.size + int(b.root),
        features=_features(a, b),
        name=",".join(filter(None, (a.name, b.name))),
    )


def _is_whole(given: Any) -> bool:
    """Whether it is a list of whole numbers."""
    return isinstance(given, Sequence) and all(isinstance(each, (int, np.integer)) for each in given)


def _line(length: int) -> Structure:
    places = np.arange(length)
    return replace(path([str(place) for place in places]), features={"coordinates": places[:, None]})


def _check(a: Structure, b: Structure) -> None:
    for structure in (a, b):
        if structure.units is not None:
            raise structure.error("the nodes are already split into units; make the product first, then split")
    if a.directed != b.directed:
        raise StructureError("one structure is directed and the other is not; give two of one kind")
    if a.size * b.size > MOST:
        raise StructureError(f"the product of {a.size} and {b.size} nodes is too large; {MOST} nodes at most")
    if both := sorted((set(_of_nodes(a)) & set(_of_nodes(b))) - {"coordinates"}):
        raise StructureError(f"both structures have a feature {both[0]!r}; rename or remove one")


def _of_nodes(structure: Structure) -> Mapping[str, NDArray[Any]]:
    return {key: np.asarray(value) for key, value in structure.features.items() if not key.startswith("edge_")}


def _features(a: Structure, b: Structure) -> dict[str, NDArray[Any]]:
    features = {key: np.repeat(value, b.size, axis=0) for key, value in _of_nodes(a).items()}
    features |= {key: np.concatenate([value] * a.size) for key, value in _of_nodes(b).items()}
    features.pop("coordinates", None)
    here, there = _coordinates(a), _coordinates(b)
    if here is None or there is None:
        return features
    both = [np.repeat(here, b.size, axis=0), np.concatenate([there] * a.size)]
    return features | {"coordinates": np.concatenate(both, axis=1)}


def _coordinates(structure: Structure) -> NDArray[Any] | Ids | None:
    """(n, axes) coordinates of the nodes, or their reading order as a single axis."""
    if "coordinates" in structure.features:
        given = np.asarray(structure.features["coordinates"])
        return given.reshape(structure.size, -1)
    return None if structure.order is None else structure.order[:, None]
