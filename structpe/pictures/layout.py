"""The form of a structure, and the places of its nodes.

==========  ===========================================  ==============================================
form        structures                                   places
==========  ===========================================  ==============================================
sequence    with a reading order that the edges follow,  on lines of text
            without relations
grid        with coordinates on one to three axes        at their coordinates
molecule    undirected, elements joined by bonds         RDKit's
tree        words of a text, joined by dependencies      on a line, edges as arcs above it
hierarchy   directed, below a root                       by depth, from the root down
graph       all others                                   those of stress (Kamada and Kawai 1989)
==========  ===========================================  ==============================================

All structures of a corpus should have the same form. A parse and a meaning graph that is a tree both have an order and
a root; :func:`has_words` describes how words of a text are recognized.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structpe.formats.smiles import SYMBOLS, ring_bonds, too_large
from structpe.structure import Structure

__all__ = ["Form", "Points", "Walk", "form_of", "has_words", "hierarchy", "places_of", "reading_rank", "walk"]


@dataclass(frozen=True, eq=False)
class Walk:
    """A spanning tree of a graph, ignoring directions.

    Attributes:
        parent: (n,) the node from which each node is first reached, -1 for the first of each component.
        edge: (n,) the edge by which it is reached, or -1.
        order: all nodes, in the order in which they are reached.
    """

    parent: NDArray[np.int64]
    edge: NDArray[np.int64]
    order: list[int]


def _leads_down(structure: Structure, most_leaves: int) -> bool:
    """Whether a directed graph is drawn as a hierarchy: it has few leaves, and few edges in addition to a tree.

    With a given root, there may be up to twice the edges of a tree, and other components, as in some graphs of a corpus
    of trees. Without a given root, the only node without an incoming edge must reach all nodes, and the graph must be
    nearly a tree. Edges may lead upwards, such as inverse relations of AMR.
    """
    root, extra = _root(structure), len(structure.edges) - (structure.size - 1)
    if not structure.directed or root is None or structure.size < 2:
        return False
    given = structure.root is not None
    if extra > (max(4, structure.size) if given else max(2, structure.size // 4)):
        return False
    found = walk(structure)
    parts = int((found.parent < 0).sum())
    leaves = structure.size - len(set(found.parent.tolist()) - {-1})
    return leaves <= most_leaves and ((given and len(structure.edges) > 0) or parts == 1)


def walk(structure: Structure) -> Walk:
    """The breadth-first tree of a graph from its root, with ties in reading order; then those of other components."""
    near: list[list[tuple[int, int]]] = [[] for _ in range(structure.size)]
    for edge, (source, target) in enumerate(structure.edges.tolist()):
        near[source].append((target, edge))
        near[target].append((source, edge))
    if (order := structure.order) is not None:
        near = [sorted(each, key=lambda other: int(order[other[0]])) for each in near]
    found = Walk(np.full(structure.size, -1), np.full(structure.size, -1), [])
    seen: set[int] = set()
    for first in (_root(structure) or 0, *range(structure.size)):
        if first in seen:
            continue
        part = [first]
        seen.add(first)
        for node in part:  # grows in the loop
            for other, edge in near[node]:
                if other not in seen:
                    seen.add(other)
                    found.parent[other], found.edge[other] = node, edge
                    part.append(other)
        found.order.extend(part)
    return found


def hierarchy(structure: Structure, widths: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """(n, 2) middle of each node: y is minus its depth, x the middle of the column of its subtree.

    Args:
        structure: the graph.
        widths: (n,) width of each node, including the label of the edge to it; 1 by default. Nodes of the same depth
            do not overlap.
    """
    found = walk(structure)
    own = np.ones(structure.size) if widths is None else widths
    children: list[list[int]] = [[] for _ in range(structure.size)]
    depth, column = np.zeros(structure.size), own.copy()
    for node in found.order:
        if (parent := found.parent[node]) >= 0:
            children[parent].append(node)
            depth[node] = depth[parent] + 1
    for node in reversed(found.order):  # children before their parents
        column[node] = max(own[node], sum(column[child] for child in children[node]))
    left = np.zeros(structure.size)
    start = 0.0
    x = np.zeros(structure.size)
    for node in found.order:
        if found.parent[node] < 0:
            left[node], start = start, start + column[node]
        at = left[node] + (column[node] - sum(column[child] for child in children[node])) / 2
        for child in children[node]:
            left[child], at = at, at + column[child]
        x[node] = left[node] + column[node] / 2
    return np.stack([x - x.min(), -depth], axis=1)


def _root(structure: Structure) -> int | None:
    if structure.root is not None:
        return int(structure.root)
    free = np.setdiff1d(np.arange(structure.size), structure.edges[:, 1])
    return int(free[0]) if len(free) == 1 else None


Form: TypeAlias = Literal["sequence", "grid", "molecule", "tree", "hierarchy", "graph"]
Points: TypeAlias = NDArray[np.float64]

ELEMENTS = frozenset(SYMBOLS[: SYMBOLS.index("U") + 1])
_BONDS = frozenset({"single", "double", "triple", "aromatic"})
LINE, WORD, BETWEEN = 10.5, 0.6, 0.42
"""Widths of a line of words, of a word of unknown width, and of the space between two words."""
SLOW = 250
"""Largest number of nodes of a component for a layout by stress; larger ones use springs, in linear time."""
WIDE = 100
"""Largest number of leaves of a hierarchy; with more it would be too wide."""
DEPENDENCIES = """
    acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated expl fixed
    flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum root vocative xcomp
    acomp agent attr auxpass csubjpass dative dobj intj meta neg npadvmod nsubjpass oprd pcomp pobj poss preconj predet
    prep prt quantmod relcl
"""
"""Relations of Universal Dependencies, and other ones of spaCy's English models."""
DEPENDS = frozenset(DEPENDENCIES.split())


def form_of(structure: Structure) -> Form:
    """The form of a structure."""
    axes = np.asarray(structure.features.get("coordinates", np.zeros(0)))
    if axes.ndim == 2 and 1 < axes.shape[1] <= 3:
        return "grid"
    if _is_molecule(structure):
        return "molecule"
    if _is_sequence(structure):
        return "sequence"
    if has_words(structure):
        return "tree"
    if _leads_down(structure, WIDE):
        return "hierarchy"
    return "tree" if structure.order is not None and structure.is_tree() else "graph"


def has_words(structure: Structure) -> bool:
    """Whether the nodes are words of a text, as in a parse.

    This is the case if a reader has set their character offsets, or marked empty nodes of an enhanced parse; or if the
    relations are dependencies; or if the graph is a tree whose reading order does not start at the root, unlike in
    meaning graphs, facts and phrases.
    """
    if not structure.directed or structure.order is None or structure.size < 2 or not len(structure.edges):
        return False
    if "is_relation" in structure.features or (structure.edges[:, 0] == structure.edges[:, 1]).any():
        return False
    if not {"span", "is_empty"}.isdisjoint(structure.features):
        return True
    if not structure.is_tree():
        return False
    named = {relation.partition(":")[0].lower() for relation in structure.relations}
    return (bool(named) and named <= DEPENDS) or int(structure.order[structure.root or 0]) > 0


def places_of(structure: Structure, form: Form, widths: NDArray[np.float64] | None = None) -> Points:
    """(n, 2) the place of each node, x to the right and y upwards; for molecules see :mod:`structpe.pictures.drawing`.

    Nodes of a graph have distances of about 1. Words of a sequence and subtrees of a hierarchy have the distances of
    their ``widths`` (n,).
    """
    if form == "grid":
        return _grid(np.asarray(structure.features["coordinates"]))
    if form == "hierarchy":
        return hierarchy(structure, widths)
    if form == "sequence":
        return _lines(structure, np.full(structure.size, WORD) if widths is None else widths)
    if form == "tree":
        return np.stack([reading_rank(structure), np.zeros(structure.size)], axis=1).astype(np.float64)
    return _graph(structure)


def reading_rank(structure: Structure) -> NDArray[np.int64]:
    """(n,) place of each node in reading order, or its number if there is no order."""
    return np.arange(structure.size) if structure.order is None else structure.order


def _is_molecule(structure: Structure) -> bool:
    known = ELEMENTS.issuperset(structure.nodes) and _BONDS.issuperset(structure.relations)
    named = bool(structure.relations) or not len(structure.edges)
    undirected = not structure.directed and structure.order is None
    return undirected and known and named and not too_large(structure.size, ring_bonds(structure))


def _is_sequence(structure: Structure) -> bool:
    if structure.order is None or len(structure.edges) != structure.size - 1 or any(structure.relations):
        return False
    ends = np.sort(structure.order[structure.edges], axis=1)
    return bool((ends[:, 1] - ends[:, 0] == 1).all()) and len(np.unique(ends[:, 0])) == len(ends)


def _lines(structure: Structure, widths: NDArray[np.float64]) -> Points:
    """Words one after another, in lines of text."""
    places = np.zeros((structure.size, 2))
    x, line = 0.0, 0
    for node in np.argsort(reading_rank(structure)):
        half = widths[node] / 2
        if x and x + 2 * half > LINE:
            x, line = 0.0, line + 1
        places[node] = x + half, -line
        x += 2 * half + BETWEEN
    return places


def _grid(coordinates: NDArray[np.generic]) -> Points:
    """The last axis to the right, the one before down, a third axis as frames to the right; other nodes on the left."""
    at = coordinates.astype(np.float64)
    rows, columns = at[:, -2], at[:, -1]
    frames = at[:, 0] if at.shape[1] == 3 else np.zeros(len(at))
    out = at.min(axis=1) < 0
    x = np.where(out, -1.5, columns + frames * (columns.max(initial=0) + 2))
    return np.stack([x, np.where(out, -np.cumsum(out) + 1.0, -rows)], axis=1)


def _graph(structure: Structure) -> Points:
    """Each component separately, in rows, the largest first."""
    import networkx

    plain: networkx.Graph[int] = networkx.Graph()
    plain.add_nodes_from(range(structure.size))
    plain.add_edges_from((int(a), int(b)) for a, b in structure.edges if a != b)
    parts = sorted((sorted(part) for part in networkx.connected_components(plain)), key=lambda part: (-len(part), part))
    places = np.zeros((structure.size, 2))
    wide, x, y, tall = 1.4 * np.sqrt(structure.size) + 1, 0.0, 0.0, 0.0
    for part in parts:
        at = _spread(plain.subgraph(part), part)
        width, height = np.ptp(at, axis=0) + 1.0
        if x and x + width > wide:
            x, y, tall = 0.0, y - tall, 0.0
        places[part] = at - [at[:, 0].min() - x, at[:, 1].max() - y]
        x, tall = x + width, max(tall, height)
    return places


def _spread(part: Any, nodes: list[int]) -> Points:
    """The layout of a component, with edges of a length of about 1 and the longer axis horizontal."""
    from networkx import all_pairs_shortest_path_length, kamada_kawai_layout, spring_layout

    count = len(nodes)
    if count == 1:
        return np.zeros((1, 2))
    if count <= SLOW:  # without dist, networkx would compute the same distances from weights, which is slower
        found = kamada_kawai_layout(part, dist=dict(all_pairs_shortest_path_length(part)))
    else:
        found = spring_layout(part, seed=0, iterations=60)
    at = np.array([found[node] for node in nodes])
    at -= at.mean(axis=0)
    turn = np.linalg.svd(at, full_matrices=False)[2]
    at = at @ turn.T
    at *= np.where(at[np.abs(at).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)  # fixes the reflection
    ends = np.array([(nodes.index(a), nodes.index(b)) for a, b in part.edges])
    typical = float(np.median(np.linalg.norm(at[ends[:, 0]] - at[ends[:, 1]], axis=1)))
    spread: Points = at / (typical or 1.0)
    return spread
