"""Linearised graph: the sequence that a text model reads instead of the graph, as a baseline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from structpe.structure import Ids, Structure, of_structures, path
from structpe.transforms._reading import tour

__all__ = ["linearise"]


class _Token(NamedTuple):
    text: str
    origin: int = -1
    edge: int = -1


@of_structures
def linearise(structure: Structure) -> Structure:
    """A path graph over the depth-first linearisation, after Konstas et al. (2017): PENMAN without its variables.

    A node becomes its label, an edge its relation followed by its target. A node with outgoing edges is in brackets,
    except at the start. An edge of a directed graph that is walked against its direction adds ``-of``. A re-entrant
    node is repeated at each mention, without its edges. Edges without a relation have no token.

    ``(w / want-01 :ARG0 (b / boy) :ARG1 (g / go-02 :ARG0 b))`` becomes ``want-01 :ARG0 boy :ARG1 ( go-02 :ARG0 boy )``.

    Features: ``origin``, the node of each token, -1 for brackets and relations; ``edge``, the edge of each relation, -1
    for others; ``is_relation``.

    Raises:
        StructureError: the structure has no order, or units are already split; split after this.
    """
    if structure.units is not None:
        raise structure.error("the nodes are already split into units; linearise first, then split")
    tokens = list(_tokens(structure))
    sequence = path([token.text for token in tokens], structure.name)
    features = {
        "origin": np.array([token.origin for token in tokens]),
        "edge": np.array([token.edge for token in tokens]),
        "is_relation": np.array([token.edge >= 0 for token in tokens]),
    }
    return replace(sequence, features=features)


def _tokens(structure: Structure) -> Iterator[_Token]:
    way = tour(structure)
    read: list[list[int]] = [[] for _ in structure.nodes]
    for edge, node in enumerate(way.site.tolist()):
        read[node].append(edge)
    # A stack of tokens to yield and nodes to expand, instead of recursion, since paths can be long.
    todo: list[_Token | int] = list(reversed(way.starts))
    while todo:
        here = todo.pop()
        if isinstance(here, _Token):
            yield here
            continue
        label = _Token(structure.nodes[here], here)
        bracketed = bool(read[here]) and (here not in way.starts or len(way.starts) > 1)
        below = [part for edge in read[here] for part in _edge(structure, edge, here, way.entry)]
        todo += reversed([_Token("("), label, *below, _Token(")")] if bracketed else [label, *below])


def _edge(structure: Structure, edge: int, here: int, entry: Ids) -> Iterator[_Token | int]:
    source, target = structure.edges[edge].tolist()
    forward = source == here
    other = target if forward else source
    if structure.relations:
        yield _Token(structure.relation(edge) + ("" if forward or not structure.directed else "-of"), edge=edge)
    yield other if entry[other] == edge else _Token(structure.nodes[other], other)
