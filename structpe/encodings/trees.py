"""Positions in rooted trees: depths, branches, and the steps between two nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.base import Column, Encoding, check_matrices, check_sizes
from structpe.encodings.bfs import Adjacent, levels
from structpe.encodings.columns import joined, ranges
from structpe.encodings.graphs import Graphs, Limited, OfNodes, column_of_integers, known, ranks_of_all
from structpe.encodings.tree_pairs import ancestors, heights, meetings, sides
from structpe.errors import EncodingError, StructureError
from structpe.structure import Ids, Structure

__all__ = [
    "AncestorDistance",
    "BranchPath",
    "ChildPath",
    "Depth",
    "LowestCommonAncestor",
    "ParentChild",
    "RootDistance",
    "SPRRelative",
    "SiblingDistance",
    "SiblingIndex",
    "branches",
    "by_parent",
    "check_trees",
    "left_child_right_sibling",
    "steps_from_roots",
]


def by_parent(parent: Ids, order: Ids) -> Ids:
    """(T,) the nodes by their parent, and those of one parent by a rank (T,)."""
    return np.lexsort((order, parent))


def branches(parent: Ids, order: Ids) -> Ids:
    """(T,) index of each node among the children of its parent, sorted by a rank (T,); 0 for a root."""
    nodes = by_parent(parent, order)
    sorted_parent = parent[nodes]
    first = np.searchsorted(sorted_parent, sorted_parent, side="left")
    branch = np.empty_like(parent)
    branch[nodes] = np.arange(len(parent)) - first
    return np.where(parent >= 0, branch, 0)


def check_trees(encoding: Encoding, graphs: Graphs, structures: Sequence[Structure]) -> None:
    """Check that all structures are trees.

    Raises:
        EncodingError: a structure is not a tree whose edges lead away from its root.
    """
    above = graphs.rooted.parent[graphs.start[:-1] + np.maximum(graphs.roots, 0)] >= 0  # of what is to be the root
    wrong = np.flatnonzero(~graphs.rooted.tree | ((graphs.roots >= 0) & above))
    if not len(wrong):
        return
    structure = structures[wrong[0]]
    try:
        parents = structure.parents()
    except StructureError as error:
        raise encoding.error(
            structure,
            f"it needs a tree whose edges lead away from the root: {error.message}; for graphs choose an "
            "encoding of the graph itself, such as 'distance'",
        ) from error
    top, root = int(np.flatnonzero(parents < 0)[0]), structure.root or 0
    raise encoding.error(
        structure,
        f"it needs a tree; the root is node {root} "
        f"({structure.nodes[root]!r}), but the edges lead away from node {top} "
        f"({structure.nodes[top]!r}); give Structure(root={top}), or reverse the edges",
    )


def steps_from_roots(encoding: Encoding, graphs: Graphs, structures: Sequence[Structure]) -> Ids:
    """(T,) the length of the shortest path from the root of each structure; -1 without a path.

    Raises:
        EncodingError: a structure has no root.
    """
    for lacking in np.flatnonzero(graphs.roots < 0)[:1]:
        message = "the structure has no root to count from; give Structure(root=...)"
        raise encoding.error(structures[lacking], message)
    trees = graphs.rooted.tree & (graphs.rooted.parent[graphs.start[:-1] + graphs.roots] < 0)
    if trees.all():
        return graphs.rooted.depth.copy()
    result, rest, others = graphs.rooted.depth.copy(), graphs.only(~trees), np.repeat(~trees, graphs.sizes)
    both = np.ones(len(rest.sizes), dtype=np.bool_)
    result[others] = Adjacent.of(rest, both).steps_from(rest.roots) if levels.pays(len(both)) else _search(rest)
    return result


def _search(graphs: Graphs) -> Ids:
    """One breadth-first search of all structures, from a node above all roots."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    top = int(graphs.start[-1])
    above = np.stack([np.full(len(graphs.roots), top), graphs.start[:-1] + graphs.roots], axis=1)
    ends = np.concatenate([graphs.edges, above])
    steps = csr_array((np.ones(len(ends)), ends.T), shape=(top + 1, top + 1))
    parent = breadth_first_order(steps, top, directed=False)[1][:top].astype(np.int64)
    missed = parent < 0
    depth, _ = heights(np.where(missed | (parent == top), top, parent))
    depth[missed] = -1
    return depth


@dataclass(frozen=True)
class Depth(OfNodes, name="depth"):
    """Depth: the number of edges between a unit's node and the root.

    abs(u) = d(u, root): number of edges on the shortest path from the root, ignoring directions.

    In a tree this is the depth, the absolute structural position of Wang X. et al. 2019 (survey, section 4.3.1). In any
    other graph it is the position of Cai & Lam 2020 in AMR: the level in a breadth-first search from the root. All
    units of a node have its depth.

    Raises:
        EncodingError: the structure has no root, or a node that cannot be reached from the root.
    """

    causal = True

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> Ids:
        depth = steps_from_roots(self, graphs, structures)
        if len(missed := np.flatnonzero(depth < 0)):
            which = int(graphs.graph[missed[0]])
            structure, node = structures[which], int(missed[0] - graphs.start[which])
            raise self.error(
                structure,
                f"no path leads from the root {structure.root} ({structure.nodes[structure.root or 0]!r}) to node "
                f"{node} ({structure.nodes[node]!r}); connect it, or choose an encoding that allows this, such as "
                f"'distance'",
            )
        return depth


@dataclass(frozen=True)
class RootDistance(OfNodes, name="root-distance"):
    """The number of edges between a unit's node and the root, with a special value for nodes without a path.

    h_u: edges on the shortest path from the root, ignoring directions (Zhang et al. 2020, section 3.1).

    As :class:`Depth`, but with a special value for nodes without a path from the root, 99 in the code of Graph-BERT.
    There the root is the node for which a context was sampled.

    Args:
        unreachable: the special value.

    Raises:
        EncodingError: the structure has no root.
    """

    causal = True

    unreachable: int = 99

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> Ids:
        steps = steps_from_roots(self, graphs, structures)
        steps[steps < 0] = self.unreachable
        return steps


@dataclass(frozen=True)
class SiblingIndex(OfNodes, name="sibling-index"):
    """The place of a node among the children of its parent in a tree, from 0; 0 for the root.

    s(i) = |{j : parent(j) = parent(i), j before i}|

    Children are counted in reading order if the structure has one, else by node number. Beside the depth it is what
    tree-based positions of source code are made of (Bartkowiak and Gralinski 2025, as their abstract says; no code by
    the authors is known): give one ``learned`` table this encoding and another one ``depth``. All units of a node have
    its place.

    Raises:
        EncodingError: the structure is not a tree whose edges lead away from its root.
    """

    causal = True

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> Ids:
        check_trees(self, graphs, structures)
        return branches(graphs.rooted.parent, ranks_of_all(structures))


class _OfTrees(Encoding):
    """Encodings of pairs of nodes of a tree.

    Raises:
        EncodingError: the structure is not a tree whose edges lead away from its root.
    """

    arity = 2
    numbers: ClassVar[int] = 1
    """How many numbers a pair of nodes takes."""

    @abstractmethod
    def of_trees(self, graphs: Graphs, structures: Sequence[Structure]) -> Column:
        """Encode structures that are trees."""

    def many(self, structures: Sequence[Structure]) -> Column:
        graphs = Graphs.of(structures)
        check_matrices(self, graphs.most, self.numbers)
        check_trees(self, graphs, structures)
        return self.of_trees(graphs, structures)


@dataclass(frozen=True)
class SPRRelative(_OfTrees, name="spr-relative"):
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

    causal = True

    def of_trees(self, graphs: Graphs, structures: Sequence[Structure]) -> Column:
        orders = [each.order for each in structures if each.order is not None]
        if len(orders) < len(structures):
            raise self.error(
                next(each for each in structures if each.order is None),
                "the structure has no reading order, which tells left from right between "
                "branches; give Structure(order=...), or choose 'distance', which needs none",
            )
        relative = sides(graphs.start, graphs.rooted, joined(orders))
        most = int(relative.max(initial=0))  # and -most the least: rel(s, t) = -rel(t, s)
        index = relative.view(f"u{relative.itemsize}")
        index += index.dtype.type(most)
        narrowest = index.astype(np.min_scalar_type(2 * most), copy=False)
        pairs = graphs.pairs_of_units(narrowest)
        return Column(graphs.units, np.arange(-most, most + 1), pairs, graphs.unit_pair_start)


@dataclass(frozen=True)
class _Relatives(Limited, _OfTrees):
    """Encodings of pairs of relatives in a tree; other pairs are UNREACHABLE.

    Args:
        max_distance: pairs at a larger distance are UNREACHABLE too; None for no limit.

    Raises:
        EncodingError: the structure is not a tree whose edges lead away from its root.
    """

    causal = True
    codes = ("unreachable", "within")


@dataclass(frozen=True)
class AncestorDistance(_Relatives, name="ancestor-distance"):
    """How far a node of a tree is above or below another.

    a: number of generations of the key's node below the query's, negative if it is above (Zuegner et al. 2021).

    ::

        a_ts = depth(s) - depth(t)    if one of t and s is an ancestor of the other, or both are one node
               WITHIN + k             if they are units of one node, s the k-th after t, k != 0
               UNREACHABLE            otherwise

    The authors' code numbers nodes depth first, and has 10,000 and -10,000 for pairs that are UNREACHABLE here.
    """

    def of_trees(self, graphs: Graphs, structures: Sequence[Structure]) -> Column:
        nodes, deepest = np.arange(int(graphs.start[-1])), int(graphs.rooted.depth.max(initial=0))
        below = np.empty(int(graphs.pair_start[-1]), dtype=np.min_scalar_type(-deepest - 2))
        below.fill(np.iinfo(below.dtype).max)
        below[graphs.pairs_at(nodes, nodes)] = 0
        for node, above, generations in islice(ancestors(graphs.rooted.parent), self.max_distance):
            below[graphs.pairs_at(above, node)] = generations
            below[graphs.pairs_at(node, above)] = -generations
        return column_of_integers(graphs, below)


@dataclass(frozen=True)
class LowestCommonAncestor(Limited, _OfTrees, name="lowest-common-ancestor"):
    """The path between two nodes of a tree: the numbers of steps up to their lowest common ancestor, and down.

    (up, down) = (depth(t) - depth(c), depth(s) - depth(c)), c the lowest common ancestor of t and s: values (r, 2).

    (Kim et al. 2021 write the path between two nodes as moves up and down; Villmow et al. 2021 represent it by these
    two numbers.) up + down is the distance in the tree; (0, down) is a pair of an ancestor and its descendant. Units
    have the values of their nodes, units of the same node (0, 0).

    Args:
        max_distance: largest number of steps, up or down; more are clipped to it. None for no limit.

    Raises:
        EncodingError: the structure is not a tree whose edges lead away from its root.
    """

    causal = True
    numbers = 2

    def of_trees(self, graphs: Graphs, structures: Sequence[Structure]) -> Column:
        deepest = int(graphs.rooted.depth.max(initial=0))
        most = min(self.max_distance or deepest, deepest)
        values, index = known(meetings(graphs.start, graphs.rooted, most), (most + 1) ** 2)
        steps = np.stack(np.divmod(values, most + 1), axis=1)
        return Column(graphs.units, steps, graphs.pairs_of_units(index), graphs.unit_pair_start)


@dataclass(frozen=True)
class SiblingDistance(_Relatives, name="sibling-distance"):
    """The offset between two siblings of a tree.

    b: how many places the key's node is after the query's among the children of their parent; negative if before.

    (Zuegner et al. 2021.) Children are counted in reading order if the structure has one, else by node number::

        b_ts = place(s) - place(t)    if t and s have the same parent, or are one node
               WITHIN + k             if they are units of one node, s the k-th after t, k != 0
               UNREACHABLE            otherwise

    The authors' code numbers nodes depth first, and has 10,000 and -10,000 for pairs that are UNREACHABLE here.
    """

    def of_trees(self, graphs: Graphs, structures: Sequence[Structure]) -> Column:
        parent = graphs.rooted.parent
        nodes = by_parent(parent, ranks_of_all(structures))
        # Roots, which come first, are alone; others stand beside those with the same parent.
        family = np.where(parent[nodes] < 0, -1 - np.arange(len(nodes)), parent[nodes])
        ends = np.append(np.flatnonzero(np.diff(family)) + 1, len(nodes))
        first = np.repeat(np.append(0, ends[:-1]), count := np.diff(ends, prepend=0))
        key = ranges(first, np.repeat(count, count))
        query = np.repeat(np.arange(len(nodes)), np.repeat(count, count))
        after, most = key - query, int(count.max(initial=1)) if self.max_distance is None else self.max_distance
        near = np.abs(after) <= most
        pairs = np.empty(int(graphs.pair_start[-1]), dtype=np.min_scalar_type(-int(count.max(initial=1)) - 1))
        pairs.fill(np.iinfo(pairs.dtype).max)
        pairs[graphs.pairs_at(nodes[query[near]], nodes[key[near]])] = after[near]
        return column_of_integers(graphs, pairs)


@dataclass(frozen=True)
class BranchPath(OfNodes, name="branch-path"):
    """Tree position encodings: the branches on the path from the root of a tree, as one-hot vectors.

    x_u = [onehot(b(u)); onehot(b(parent of u)); ...; 0], float32 (depth * width): the path from the root.

    (Shiv & Quirk 2019; survey, section 4.3.1.) b(v) in 0..width-1 is the index of v among the children of its parent,
    in reading order if the structure has one, else by node number. The deepest step comes first, as in the authors'
    code (the survey leaves this open): x[j width + b] = 1 if the node j edges above u is the b-th child of its parent.
    The root is all zero. Shorter paths end in zeros; of longer ones the steps next to the root are dropped. All units
    of a node have its vector.

    In the authors' code, the width of a one-hot is the number of children of the parent, which is the same in a
    complete tree.

    Args:
        depth: number of steps kept; the authors use 256.
        width: k, the largest number of children of a node.
        binary: first convert the tree to a binary one by :func:`left_child_right_sibling`, for trees of any width; the
            width must be 2.

    Raises:
        EncodingError: the structure is not a tree whose edges lead away from its root, or a node has too many children.
    """

    causal = True
    real = True

    depth: int = 16
    width: int = 2
    binary: bool = False

    def __post_init__(self) -> None:
        if min(self.depth, self.width) < 1 or (self.binary and self.width != 2):
            raise EncodingError(
                f"encoding {self.name!r}: depth and width must be 1 or more, and a binary tree has width 2; these are "
                f"depth {self.depth}, width {self.width}, binary {self.binary}"
            )
        check_sizes(self, depth=self.depth, width=self.width)

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> NDArray[np.float32]:
        check_trees(self, graphs, structures)
        parent, order = graphs.rooted.parent, ranks_of_all(structures)
        if self.binary:
            parent, branch = left_child_right_sibling(parent, order)
        else:
            branch = branches(parent, order)
            self._check_width(structures, graphs, branch)
        paths = np.zeros((len(parent), self.depth * self.width), dtype=np.float32)
        nodes = at = np.arange(len(parent))
        for step in range(self.depth):  # all nodes climb at once; those that are at a root fall away
            below = parent[at] >= 0
            nodes, at = nodes[below], at[below]
            if not len(nodes):
                break
            paths[nodes, step * self.width + branch[at]] = 1.0
            at = parent[at]
        return paths

    def _check_width(self, structures: Sequence[Structure], graphs: Graphs, branch: Ids) -> None:
        if not (over := np.flatnonzero(branch >= self.width)).size:
            return
        full = int(graphs.rooted.parent[over[0]])
        which = int(graphs.graph[full])
        structure, node = structures[which], full - int(graphs.start[which])
        children = int((graphs.rooted.parent == full).sum())
        raise self.error(
            structure,
            f"node {node} ({structure.nodes[node]!r}) has {children} children, the width is {self.width}; "
            f"give a width of {children} or more, or binary=True, which converts any tree to width 2",
        )


def left_child_right_sibling(parent: Ids, order: Ids) -> tuple[Ids, Ids]:
    """The binary tree in which a node's left child is its first child, and its right child its next sibling.

    Args:
        parent: (T,) parent of each node, -1 for a root; several trees may be concatenated.
        order: (T,) rank by which the children of a node are sorted.

    Returns:
        (T,) parent of each node in the binary tree, and (T,) its side: 0 left, 1 right; 0 for a root.
    """
    branch = branches(parent, order)
    nodes = by_parent(parent, branch)
    before = np.empty_like(parent)
    before[nodes] = np.roll(nodes, 1)  # the previous sibling, if there is one
    return np.where(branch > 0, before, parent), (branch > 0).astype(np.int64)


@dataclass(frozen=True)
class ChildPath(OfNodes, name="child-path"):
    """Two-dimensional positions in trees: on the path from the root, the index and number of siblings.

    [id(root), ..., id(parent of u), id(u), 0, ...], int64 (depth): the path from the root to a unit's node.

    The i-th of n siblings, i from 1, has id(u) = i + n(n - 1)/2, which is unique for each pair (i, n); the root is the
    first of one. i and n are at most ``width``. (Peng et al. 2022, section 3.2.) Children are counted in reading order
    if the structure has one, else by node number. Longer paths keep the steps next to the root, as in the authors'
    code. All units of a node have its path.

    Args:
        depth: number of steps kept.
        width: largest number of siblings that are distinguished.

    Raises:
        EncodingError: the structure is not a tree whose edges lead away from its root; depth or width is below 1.
    """

    depth: int = 16
    width: int = 16

    def __post_init__(self) -> None:
        check_sizes(self, depth=self.depth, width=self.width)

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> Ids:
        check_trees(self, graphs, structures)
        ids, parent, level = _ids(graphs, structures, self.width), graphs.rooted.parent, graphs.rooted.depth
        paths = np.zeros((len(ids), self.depth), dtype=np.int64)
        nodes = np.arange(len(ids))
        at = np.where(level >= self.depth, parent, nodes)
        while (level[at] >= self.depth).any():  # up to the lowest node that is kept; each round doubles the step
            at = at[at]
        while len(nodes):
            paths[nodes, level[at]] = ids[at]
            below = parent[at] >= 0
            nodes, at = nodes[below], parent[at[below]]
        return paths


@dataclass(frozen=True)
class ParentChild(_OfTrees, name="parent-child"):
    """Two-dimensional positions in trees, of a parent and its child.

    id(s) if the key's node is a child of the query's, -id(t) if it is its parent, else 0.

    id is that of :class:`ChildPath`. (Peng et al. 2022, section 3.3.) Units of one node have 0.

    Args:
        width: largest number of siblings that are distinguished.

    Raises:
        EncodingError: the structure is not a tree whose edges lead away from its root; the width is below 1.
    """

    width: int = 16

    def __post_init__(self) -> None:
        check_sizes(self, width=self.width)

    def of_trees(self, graphs: Graphs, structures: Sequence[Structure]) -> Column:
        ids, parent = _ids(graphs, structures, self.width), graphs.rooted.parent
        child = np.flatnonzero(parent >= 0)
        values, which = np.unique(np.concatenate([[0], ids[child], -ids[child]]), return_inverse=True)
        index = np.empty(int(graphs.pair_start[-1]), dtype=np.min_scalar_type(len(values)))
        index.fill(which[0])
        index[graphs.pairs_at(parent[child], child)] = which[1 : len(child) + 1]
        index[graphs.pairs_at(child, parent[child])] = which[len(child) + 1 :]
        return Column.of_pairs(graphs.units, values, graphs.pairs_of_units(index))


def _ids(graphs: Graphs, structures: Sequence[Structure], width: int) -> Ids:
    """(T,) id(u) of :class:`ChildPath`."""
    parent, order = graphs.rooted.parent, ranks_of_all(structures)
    children = np.bincount(parent[parent >= 0], minlength=len(parent))
    which = np.minimum(branches(parent, order) + 1, width)
    siblings = np.minimum(np.where(parent >= 0, children[parent], 1), width)
    ids: Ids = which + siblings * (siblings - 1) // 2
    return ids
