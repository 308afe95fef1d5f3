"""What a tokenizer could not align with the nodes of a structure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

__all__ = ["Alignment", "Gap"]


class Gap(NamedTuple):
    """Characters that no unit covers.

    Attributes:
        node: the node with the label; -1 if a whole text was split.
        start: their first position in the label or text.
        text: the characters.
    """

    node: int
    start: int
    text: str


@dataclass(frozen=True)
class Alignment:
    """What a tokenizer could not align with the nodes, if its offsets are right. White space does not count.

    BPE without bytes and without an unknown token drops characters, which shifts the following offsets: gaps then have
    the right length, but are too far right.

    Attributes:
        missing: nodes without a unit; they have the unknown token, or no unit.
        gaps: characters that no unit covers.
        shared: (text of the unit, its node, another node that it also covers) of units that cross a border.
        dropped: texts of units in no node, which were left out.
        blanks: texts of units of white space only, which were left out. This is not a loss, but differs from the
            tokenizer's output.
        moved: texts of units whose order differs from the text, as units are sorted by node. This is not a loss.
    """

    missing: tuple[int, ...] = ()
    gaps: tuple[Gap, ...] = ()
    shared: tuple[tuple[str, int, int], ...] = ()
    dropped: tuple[str, ...] = ()
    blanks: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all was aligned."""
        return not (self.missing or self.gaps or self.shared or self.dropped)

    def plain(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self) | {"gaps": [gap._asdict() for gap in self.gaps], "complete": self.complete}

    def __str__(self) -> str:
        parts = {
            "nodes without a unit": self.missing,
            "pieces of text in no unit": [gap.text for gap in self.gaps],
            "units across a border": [text for text, *_ in self.shared],
            "units in no node": self.dropped,
            "units of blanks left out": self.blanks,
            "units in another place than in the text": self.moved,
        }
        lines = [f"{len(found)} {what}: {', '.join(map(repr, found))}" for what, found in parts.items() if found]
        return "; ".join((["every unit has one node, every node a unit"] if self.complete else []) + lines)
