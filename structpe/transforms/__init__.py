"""Transforms: from a structure to another with the same content. Nothing is transformed unless you call one."""

from structpe.transforms.grids import grid, product
from structpe.transforms.nodes import edge_tokens, levi, with_class_token, with_virtual_node
from structpe.transforms.parts import contexts, renumbered, subgraph
from structpe.transforms.texts import linearise, with_readable_labels
from structpe.transforms.units import expand, split

__all__ = [
    "contexts",
    "edge_tokens",
    "expand",
    "grid",
    "levi",
    "linearise",
    "product",
    "renumbered",
    "split",
    "subgraph",
    "with_class_token",
    "with_readable_labels",
    "with_virtual_node",
]
