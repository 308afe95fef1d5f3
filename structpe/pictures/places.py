"""Where the nodes of a structure are drawn: what form it has, and the place of each node in that form.

==========  ===========================================  ==============================================
form        structures                                   places
==========  ===========================================  ==============================================
sequence    with a reading order that the edges follow,  on a line, which goes on in a next one as text
            without relations
grid        with coordinates on one to three axes        at their coordinates
molecule    undirected, elements joined by bonds         RDKit's
tree        words of a text, joined by dependencies      on a line, edges as arcs above it
hierarchy   directed, below a root                       near nodes above, side by side
graph       all others                                   those of stress (Kamada and Kawai 1989)
==========  ===========================================  ==============================================

All structures of a corpus are to have one form. A parse and a meaning graph that is a tree look alike, for both have an
order and a root; how words of a text are recognized is described at :func:`has_words`.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structpe.pictures._hierarchy import hierarchy, leads_down
from structpe.structure import Structure

__all__ = ["BONDS", "Form", "Places", "form_of", "has_words", "places_of", "reading_rank"]

Form: TypeAlias = Literal["sequence", "grid", "molecule", "tree", "hierarchy", "graph"]
Places: TypeAlias = NDArray[np.float64]

SYMBOLS = """
    H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y Zr Nb Mo
    Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl
    Pb Bi Po At Rn Fr Ra Ac Th Pa U
"""
ELEMENTS = frozenset(SYMBOLS.split())
BONDS = frozenset({"single", "double", "triple", "aromatic"})
LINE, WORD, BETWEEN = 10.5, 0.6, 0.42
"""Widths of a line of words, of a word that is not measured, and of what is between two words."""
SLOW = 250
"""Nodes of a part beyond which its layout is made by springs, in a time linear in its edges."""
WIDE = 100
"""Leaves beyond which a hierarchy would be too wide to read."""
DEPENDENCIES = """
    acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated expl fixed
    flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum root vocative xcomp
    acomp agent attr auxpass csubjpass dative dobj intj meta neg npadvmod nsubjpass oprd pcomp pobj poss preconj predet
    prep prt quantmod relcl
"""
"""Relations of Universal Dependencies, and those that spaCy's English models have besides them."""
DEPENDS = frozenset(DEPENDENCIES.split())


def form_of(structure: Structure) -> Form:
    """In which form a structure is drawn."""
    axes = np.asarray(structure.features.get("coordinates", np.zeros(0)))
    if axes.ndim == 2 and 1 < axes.shape[1] <= 3:
        return "grid"
    if _is_molecule(structure):
        return "molecule"
    if _is_sequence(structure):
        return "sequence"
    if has_words(structure):
        return "tree"
    if leads_down(structure, WIDE):
        return "hierarchy"
    return "tree" if structure.order is not None and structure.is_tree() else "graph"


def has_words(structure: Structure) -> bool:
    """Whether the nodes are words of a text, with arcs above them: a parse, in any of three ways.

    A reader has given their places in the text, or which of them are empty nodes of an enhanced parse; or the
    relations are dependencies; or the graph is a tree that is not read from its root on, as meaning graphs, facts and
    phrases are.
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


def places_of(structure: Structure, form: Form, widths: NDArray[np.float64] | None = None) -> Places:
    """(n, 2) x to the right and y upwards, of each node; of molecules see :mod:`structpe.pictures.molecule`.

    Nodes of a graph are about 1 apart, whatever their number. Words of a sequence and subtrees of a hierarchy are as
    far apart as ``widths`` (n,) says that they are wide.
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
    """(n,) place of each node in reading order; its number where there is no order."""
    return np.arange(structure.size) if structure.order is None else structure.order


def _is_molecule(structure: Structure) -> bool:
    known = ELEMENTS.issuperset(structure.nodes) and BONDS.issuperset(structure.relations)
    named = bool(structure.relations) or not len(structure.edges)
    return not structure.directed and structure.order is None and known and named


def _is_sequence(structure: Structure) -> bool:
    if structure.order is None or len(structure.edges) != structure.size - 1 or any(structure.relations):
        return False
    ends = np.sort(structure.order[structure.edges], axis=1)
    return bool((ends[:, 1] - ends[:, 0] == 1).all()) and len(np.unique(ends[:, 0])) == len(ends)


def _lines(structure: Structure, widths: NDArray[np.float64]) -> Places:
    """Words one after the other, which go on in the next line as text does."""
    places = np.zeros((structure.size, 2))
    x, line = 0.0, 0
    for node in np.argsort(reading_rank(structure)):
        half = widths[node] / 2
        if x and x + 2 * half > LINE:
            x, line = 0.0, line + 1
        places[node] = x + half, -line
        x += 2 * half + BETWEEN
    return places


def _grid(coordinates: NDArray[np.generic]) -> Places:
    """The last axis to the right, the one before down, a third one frame by frame to the right; others on the left."""
    at = coordinates.astype(np.float64)
    rows, columns = at[:, -2], at[:, -1]
    frames = at[:, 0] if at.shape[1] == 3 else np.zeros(len(at))
    out = at.min(axis=1) < 0
    x = np.where(out, -1.5, columns + frames * (columns.max(initial=0) + 2))
    return np.stack([x, np.where(out, -np.cumsum(out) + 1.0, -rows)], axis=1)


def _graph(structure: Structure) -> Places:
    """Each part by itself, the parts in rows, the largest first."""
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


def _spread(part: Any, nodes: list[int]) -> Places:
    """A connected part, its edges about 1 long and its longer axis across."""
    from networkx import kamada_kawai_layout, spring_layout

    count = len(nodes)
    if count == 1:
        return np.zeros((1, 2))
    found = kamada_kawai_layout(part) if count <= SLOW else spring_layout(part, seed=0, iterations=60)
    at = np.array([found[node] for node in nodes])
    at -= at.mean(axis=0)
    turn = np.linalg.svd(at, full_matrices=False)[2]
    at = at @ turn.T
    at *= np.where(at[np.abs(at).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)  # one of the two ways to turn it round
    ends = np.array([(nodes.index(a), nodes.index(b)) for a, b in part.edges])
    typical = float(np.median(np.linalg.norm(at[ends[:, 0]] - at[ends[:, 1]], axis=1)))
    spread: Places = at / (typical or 1.0)
    return spread
