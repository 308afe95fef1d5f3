"""Labels as a reader would write them, so that nodes and texts share their words."""

from __future__ import annotations

import re
from dataclasses import replace

from structpe.structure import Structure

__all__ = ["readable", "readable_relation", "with_readable_labels"]

_SENSE = re.compile(r"(?<=[a-z])-\d\d+$")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def readable(label: str) -> str:
    """A node: ``want-01`` is "want", ``Alan_Bean`` "Alan Bean", ``"B"`` B. Humps stay: AmeriGas."""
    return " ".join(_SENSE.sub("", label.strip().strip('"')).replace("_", " ").split()) or label


def readable_relation(label: str) -> str:
    """A relation: ``birthPlace`` is "birth place", ``LCCN_number`` "LCCN number"; roles (``:ARG0``) stay."""
    if label.startswith(":"):
        return label
    words = _HUMP.sub(" ", label.strip().strip('"').replace("_", " ")).split()
    return " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in words) or label


def with_readable_labels(structure: Structure) -> Structure:
    """The same graph with its labels as :func:`readable` and :func:`readable_relation` write them.

    Nodes stay as they are told apart, even where two now read alike.

    Raises:
        StructureError: the nodes are split into units already; relabel first, then split.
    """
    if structure.units is not None:
        raise structure.error("the nodes are split into units already; make the labels readable first, then split")
    return replace(
        structure,
        nodes=tuple(readable(label) for label in structure.nodes),
        relations=tuple(readable_relation(label) for label in structure.relations),
    )
