"""Labels as a reader would write them, so that nodes and texts share their words."""

from __future__ import annotations

import re
from dataclasses import replace

from structpe.structure import Structure

__all__ = ["readable", "with_readable_labels"]

_SENSE = re.compile(r"(?<=[a-z])-\d\d+$")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])")


def readable(label: str) -> str:
    """``want-01`` is "want", ``Alan_Bean`` "Alan Bean", ``birthPlace`` "birth place", ``"B"`` B; roles (``:ARG0``) stay."""
    if label.startswith(":"):
        return label
    text = _SENSE.sub("", label.strip('"')).replace("_", " ")
    if _HUMP.search(text) and " " not in text:
        text = _HUMP.sub(" ", text)
        text = text if text[0].isupper() else text.lower()
    return " ".join(text.split()) or label


def with_readable_labels(structure: Structure) -> Structure:
    """The same graph with every node label and relation as :func:`readable` writes it. It must have no units yet."""
    return replace(
        structure,
        nodes=tuple(readable(label) for label in structure.nodes),
        relations=tuple(readable(label) for label in structure.relations),
    )
