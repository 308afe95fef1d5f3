"""Hypothesis strategies for structures, and the relabelling of one; for whoever tests a law on all of them.

``structures()`` draws from everything: paths, rooted trees, labelled digraphs (disconnected, with isolated nodes,
self-loops and parallel edges), undirected graphs; nodes may own several units.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from structpe.structure import Structure, path

__all__ = ["digraphs", "paths", "relabelled", "structures", "trees", "undirected"]

RELATIONS = ("nsubj", "obj", "det", ":ARG0", ":ARG1", ":mod")


@st.composite
def paths(draw: st.DrawFn, most: int = 12, units: bool = True) -> Structure:
    """A sequence of 1 to ``most`` tokens; with ``units``, tokens may be split into several."""
    size = draw(st.integers(1, most))
    return _with_units(draw, path([f"w{i}" for i in range(size)], name="drawn path"), units)


@st.composite
def trees(draw: st.DrawFn, most: int = 12, units: bool = True, labels: bool = True) -> Structure:
    """A rooted tree whose edges lead away from its root, with a reading order of its own (often non-projective)."""
    size = draw(st.integers(1, most))
    parents = [draw(st.integers(0, i - 1)) for i in range(1, size)]
    number = np.array(draw(st.permutations(range(size))))
    edges = np.array([(number[p], number[i]) for i, p in enumerate(parents, start=1)], dtype=np.int64).reshape(-1, 2)
    tree = Structure(
        nodes=tuple(f"n{i}" for i in range(size)),
        edges=edges[draw(st.permutations(range(size - 1)))],
        relations=_relations(draw, size - 1, labels),
        order=np.array(draw(st.permutations(range(size)))),
        root=int(number[0]),
        name="drawn tree",
    )
    return _with_units(draw, tree, units)


@st.composite
def digraphs(
    draw: st.DrawFn, most: int = 10, units: bool = True, labels: bool = True, connected: bool = False
) -> Structure:
    """A digraph with self-loops and parallel edges, in pieces and with isolated nodes unless ``connected``.

    Order and root are there or not. ``connected`` means that every node is reached when edges are walked both ways.
    """
    return draw(_graphs(True, most, units, labels, connected))


@st.composite
def undirected(
    draw: st.DrawFn, most: int = 10, units: bool = True, labels: bool = True, connected: bool = False
) -> Structure:
    """As :func:`digraphs`, but undirected."""
    return draw(_graphs(False, most, units, labels, connected))


def structures(most: int = 10, units: bool = True) -> st.SearchStrategy[Structure]:
    """Any of the above."""
    return st.one_of(paths(most, units), trees(most, units), digraphs(most, units), undirected(most, units))


def relabelled(structure: Structure, number: NDArray[np.int64]) -> tuple[Structure, NDArray[np.int64]]:
    """The same structure with node i renumbered ``number[i]``, and p: unit j of the new one was unit p[j] of the old.

    What is computed per unit must come out as ``old[p]``, per pair of units as ``old[p][:, p]``.
    """
    back = np.argsort(number)
    units = np.argsort(number[structure.unit_owner], kind="stable")
    own = structure.owner is not None
    new = replace(
        structure,
        nodes=tuple(structure.nodes[i] for i in back),
        edges=number[structure.edges],
        order=None if structure.order is None else structure.order[back],
        root=None if structure.root is None else int(number[structure.root]),
        units=tuple(structure.unit_texts[j] for j in units) if own else None,
        owner=number[structure.unit_owner][units] if own else None,
        features={k: v if k.startswith("edge_") else np.asarray(v)[back] for k, v in structure.features.items()},
    )
    return new, units


@st.composite
def _graphs(draw: st.DrawFn, directed: bool, most: int, units: bool, labels: bool, connected: bool) -> Structure:
    size = draw(st.integers(1, most))
    node = st.integers(0, size - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=2 * size))
    if connected:
        spanning = [(draw(st.integers(0, i - 1)), i) for i in range(1, size)]
        pairs += [(b, a) if directed and draw(st.booleans()) else (a, b) for a, b in spanning]
    graph = Structure(
        nodes=tuple(f"n{i}" for i in range(size)),
        edges=np.array(pairs, dtype=np.int64).reshape(-1, 2),
        relations=_relations(draw, len(pairs), labels),
        directed=directed,
        order=np.array(draw(st.permutations(range(size)))) if draw(st.booleans()) else None,
        root=draw(st.one_of(st.none(), node)),
        name="drawn digraph" if directed else "drawn graph",
    )
    return _with_units(draw, graph, units)


def _relations(draw: st.DrawFn, edges: int, labels: bool) -> tuple[str, ...]:
    if not labels or not draw(st.booleans()):
        return ()
    return tuple(draw(st.lists(st.sampled_from(RELATIONS), min_size=edges, max_size=edges)))


def _with_units(draw: st.DrawFn, structure: Structure, units: bool) -> Structure:
    if not units or not draw(st.booleans()):
        return structure
    counts = draw(st.lists(st.integers(1, 3), min_size=structure.size, max_size=structure.size))
    owner = np.repeat(np.arange(structure.size), counts)
    return structure.with_units([f"u{j}" for j in range(len(owner))], owner)
