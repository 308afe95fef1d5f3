"""Triples apart by tabs: a fact per line. Nodes without an edge cannot be said."""

from __future__ import annotations

from structpe.readers._text import shown
from structpe.readers.base import Item
from structpe.writers._facts import facts
from structpe.writers.base import WriteError, writer

__all__ = ["triples"]


@writer("triples", ".tsv")
def triples(item: Item) -> str:
    """Subject, relation and object apart by tabs, a fact per line.

    Entities are known by their labels when the file is read again, so that labels must differ; parts must not be empty
    nor hold tabs or ends of lines. The reader numbers nodes as facts mention them.

    Raises:
        WriteError: two nodes of one label, a node without an edge, or a part that a line cannot hold.
    """
    rows = facts(item.structure, "triples know nodes by their labels")
    return "".join("\t".join(map(_part, row)) + "\n" for row in rows)


def _part(text: str) -> str:
    if not text.strip() or text != text.strip() or any(letter in text for letter in "\t\n\r"):
        raise WriteError(f"{shown(text)} cannot be written in a line of triples; leave out tabs and ends of lines")
    return text
