"""Triples separated by tabs: a fact per line. Nodes without an edge cannot be written."""

from __future__ import annotations

from structpe.readers._text import shown
from structpe.readers.base import Item
from structpe.writers._facts import facts
from structpe.writers.base import WriteError, writer

__all__ = ["triples"]


@writer("triples", ".tsv")
def triples(item: Item) -> str:
    """Subject, relation and object separated by tabs, a fact per line.

    The reader identifies entities by their labels, so labels must differ. Parts must not be empty, nor contain tabs or
    line ends. The reader numbers nodes in the order of the facts.

    Raises:
        WriteError: two nodes have the same label, a node has no edge, or a part cannot be written in a line.
    """
    rows = facts(item.structure, "triples know nodes by their labels")
    return "".join("\t".join(map(_part, row)) + "\n" for row in rows)


def _part(text: str) -> str:
    if not text.strip() or text != text.strip() or any(letter in text for letter in "\t\n\r"):
        raise WriteError(f"{shown(text)} cannot be written in a line of triples; leave out tabs and ends of lines")
    return text
