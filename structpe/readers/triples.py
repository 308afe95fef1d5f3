"""Triples (subject, relation, object): a graph whose entities are nodes and whose facts are edges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from structpe.errors import ReadError, StructureError
from structpe.readers._text import lines, shown
from structpe.readers.base import Item, Outcome, attempt, reader
from structpe.structure import Structure

__all__ = ["triples", "tsv"]

Triple = Sequence[str]


def triples(facts: Sequence[Triple], name: str = "") -> Structure:
    """A knowledge graph: one node per entity, one edge per fact.

    Args:
        facts: (subject, relation, object) each; entities with the same text are the same node.
        name: where the facts come from, for error messages.

    Returns:
        Nodes are in the order in which the facts first mention them, which is also the reading order; edges are in
        the order of the facts, a fact given twice is two edges. The root is the first subject.

    Raises:
        StructureError: no fact, one that has not three parts, or an empty part.
    """
    for place, fact in enumerate(facts, 1):
        if len(fact) != 3 or not all(str(part).strip() for part in fact):
            message = f"triple {place} is {fact!r}; give (subject, relation, object), three texts that are not empty"
            raise StructureError(message).at(*([name] if name else []))
    number: dict[str, int] = {}
    edges = [[number.setdefault(entity, len(number)) for entity in (s, o)] for s, _, o in facts]
    return Structure(
        tuple(number),
        np.array(edges, dtype=np.int64).reshape(-1, 2),
        tuple(relation for _, relation, _ in facts),
        order=np.arange(len(number)),
        root=0 if number else None,
        name=name,
    )


@reader("triples", ".tsv")
def tsv(path: Path) -> Iterator[Outcome]:
    """Subject, relation and object apart by tabs, a fact per line: the whole file is one graph."""
    yield attempt(partial(_item, path))


def _item(path: Path) -> Item:
    facts = []
    for number, line in lines(path):
        if line.strip():
            fact = [part.strip() for part in line.split("\t")]
            if len(fact) != 3 or not all(fact):
                message = f"{shown(line)} is no triple; give subject, relation and object, apart by tabs"
                raise ReadError(message).at(f"line {number}")
            facts.append(fact)
    return Item(triples(facts, name=path.name), id="1")
