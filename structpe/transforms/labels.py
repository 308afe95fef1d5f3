"""Labels as words, so that nodes and texts share a vocabulary."""

from __future__ import annotations

import re
from dataclasses import replace

from structpe.structure import Structure, of_structures

__all__ = ["readable", "readable_relation", "with_readable_labels"]

_SENSE = re.compile(r"(?<=[a-z])-\d\d+$")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def readable(label: str) -> str:
    """The label of a node: ``want-01`` becomes "want", ``Alan_Bean`` "Alan Bean", ``"B"`` B; AmeriGas stays."""
    return " ".join(_SENSE.sub("", label.strip().strip('"')).replace("_", " ").split()) or label


def readable_relation(label: str) -> str:
    """A relation: ``birthPlace`` becomes "birth place", ``LCCN_number`` "LCCN number"; roles (``:ARG0``) stay."""
    if label.startswith(":"):
        return label
    words = _HUMP.sub(" ", label.strip().strip('"').replace("_", " ")).split()
    return " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in words) or label


@of_structures
def with_readable_labels(structure: Structure) -> Structure:
    """The same graph with labels from :func:`readable` and :func:`readable_relation`.

    Nodes stay separate, even if two have the same label now.

    Raises:
        StructureError: the nodes are already split into units; relabel first, then split.
    """
    if structure.units is not None:
        raise structure.error("the nodes are already split into units; make the labels readable first, then split")
    return replace(
        structure,
        nodes=tuple(readable(label) for label in structure.nodes),
        relations=tuple(readable_relation(label) for label in structure.relations),
    )
