"""The edges of a structure as facts, for formats that identify entities by their labels and contain facts only."""

from __future__ import annotations

import numpy as np

from structpe.structure import Structure
from structpe.writers.base import WriteError

__all__ = ["facts"]


def facts(structure: Structure, rule: str) -> list[tuple[str, str, str]]:
    """(subject, relation, object) of each edge.

    Args:
        structure: the graph.
        rule: how the format identifies nodes, for errors.

    Raises:
        WriteError: two nodes have the same label, or a node has no edge.
    """
    if len(set(structure.nodes)) < structure.size:
        seen: set[str] = set()
        twice = next(label for label in structure.nodes if label in seen or seen.add(label))  # type: ignore[func-returns-value]
        raise WriteError(f"two nodes are labelled {twice!r}; {rule}, make them differ")
    if alone := set(range(structure.size)) - set(np.unique(structure.edges).tolist()):
        raise WriteError(f"node {min(alone)} ({structure.nodes[min(alone)]!r}) is in no edge; triples are edges only")
    return [
        (structure.nodes[source], structure.relation(edge), structure.nodes[target])
        for edge, (source, target) in enumerate(structure.edges.tolist())
    ]
