"""Transforms: from a structure to another with the same content. Nothing is transformed unless you call one."""

from structpe.transforms.contexts import contexts
from structpe.transforms.edge_tokens import edge_tokens
from structpe.transforms.expansion import expand
from structpe.transforms.labels import with_readable_labels
from structpe.transforms.levi import levi
from structpe.transforms.linearise import linearise
from structpe.transforms.numbering import renumbered
from structpe.transforms.product import grid, product, with_class_token
from structpe.transforms.subgraph import subgraph
from structpe.transforms.units import split
from structpe.transforms.virtual import with_virtual_node

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
