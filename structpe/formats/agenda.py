"""AGENDA: knowledge graphs of scientific abstracts, in the format of GraphWriter (Koncel-Kedziorski et al. 2019)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from structpe.errors import ReadError
from structpe.formats.reading import Item, Yielded, attempt, reader
from structpe.formats.text import lines, shown
from structpe.structure import Structure

__all__ = ["agenda"]

COLUMNS = ("title", "entities", "types", "relations", "abstract", "plan")
VOCABULARY = "relations.vocab"
RELATIONS = ("USED-FOR", "CONJUNCTION", "FEATURE-OF", "PART-OF", "COMPARE", "EVALUATE-FOR", "HYPONYM-OF")
"""The relations if there is no relations.vocab next to the file: those of the published corpus."""
TITLE, TYPE = "TITLE-OF", "TYPE"
SLOT = re.compile(r"<([a-z]+)_([0-9]{1,9})>")
TYPED = re.compile(r"<([^<>\s]+)>")
NUMBER = re.compile(r"[0-9]{1,9}")


class _Row(NamedTuple):
    title: str
    entities: list[str]
    types: list[str]
    facts: list[tuple[int, str, int]]
    abstract: str
    plan: str


@reader("agenda", "", also=".tsv")
def agenda(
    path: Path,
    title: bool = False,
    types: Literal["metadata", "nodes"] = "metadata",
    slots: Literal["filled", "kept"] = "filled",
) -> Iterator[Yielded]:
    """AGENDA rows: entities of an abstract and the relations between them, with the abstract as text.

    Six fields separated by tabs: title, entities separated by `` ; ``, their types ``<task> <method> ...``, relations
    ``0 2 3`` (subject, relation, object, as numbers) separated by ``;``, the abstract with slots ``<task_0>`` for
    entities, and a plan of its sentences. The names of relations are read from ``relations.vocab`` in the same folder,
    a relation per line; without that file they are those of the published corpus.

    Entities are nodes in their order, including those with equal texts and those without relations. ``metadata`` has
    ``title``, ``types`` of the entities, ``abstract`` as in the file, and ``plan``.

    Args:
        path: a file such as ``preprocessed.train.tsv``; name this reader, since many formats use ``.tsv``.
        title: whether the title is also a node, the first and the root, with an edge ``TITLE-OF`` to each entity.
        types: ``nodes`` adds a node for each type, after the entities, with an edge ``TYPE`` from its entities.
        slots: ``filled`` puts the entities into the slots of the text, ``kept`` keeps the slots.
    """
    named_file = path.with_name(VOCABULARY)
    relations = [line.strip() for _, line in lines(named_file) if line.strip()] if named_file.is_file() else RELATIONS
    for number, line in lines(path):
        if line.strip():
            make = partial(_item, line, relations, str(number), path.name, title, types == "nodes", slots == "filled")
            yield attempt(make, line=number)


def _item(line: str, relations: Sequence[str], id: str, file: str, title: bool, types: bool, filled: bool) -> Item:
    row = _row(line, relations)
    nodes, edges = list(row.entities), list(row.facts)
    if types:
        number = {kind: len(nodes) + place for place, kind in enumerate(dict.fromkeys(row.types))}
        nodes += number
        edges += [(entity, TYPE, number[kind]) for entity, kind in enumerate(row.types)]
    if title:
        nodes.insert(0, row.title)
        edges = [(source + 1, relation, target + 1) for source, relation, target in edges]
        edges = [(0, TITLE, entity + 1) for entity in range(len(row.entities))] + edges
    structure = Structure(
        tuple(nodes),
        np.array([(source, target) for source, _, target in edges], dtype=np.int64).reshape(-1, 2),
        tuple(relation for _, relation, _ in edges),
        order=np.arange(len(nodes)),
        root=0 if title else None,
        name=f"{file}:{id}",
    )
    text = _filled(row)
    metadata = {"title": row.title, "types": tuple(row.types), "abstract": row.abstract, "plan": row.plan}
    return Item(structure, (text if filled else row.abstract,) if row.abstract else (), id, metadata)


def _row(line: str, relations: Sequence[str]) -> _Row:
    fields = line.split("\t")
    if len(fields) != len(COLUMNS):
        wrong = f"the line has {len(fields)} fields; AGENDA has six separated by tabs: {', '.join(COLUMNS)}"
        raise ReadError(f"{wrong}; the line is {shown(line)}")
    title, entities, types, facts, abstract, plan = fields
    names = [name.strip() for name in entities.split(" ; ")]
    kinds = TYPED.findall(types)
    if not all(names):
        raise ReadError(f"entity {names.index('')} has no text; entities are separated by ' ; '")
    if len(kinds) != len(names):
        raise ReadError(f"{len(kinds)} types for {len(names)} entities; give one for each, such as <task>")
    numbers = [fact.split() for fact in facts.split(";") if fact.strip()]
    made = [_fact(fact, len(names), relations) for fact in numbers]
    return _Row(title.strip(), names, kinds, made, abstract.strip(), plan.strip())


def _fact(fact: Sequence[str], count: int, relations: Sequence[str]) -> tuple[int, str, int]:
    if len(fact) != 3 or not all(NUMBER.fullmatch(part) for part in fact):
        raise ReadError(f"the relation {shown(' '.join(fact))} is not three numbers: subject, relation, object")
    subject, relation, target = map(int, fact)
    for entity in (subject, target):
        if entity >= count:
            raise ReadError(f"the relation {' '.join(fact)!r} has entity {entity}, but entities are 0..{count - 1}")
    if relation >= len(relations):
        known = f"the {len(relations)} known are 0..{len(relations) - 1}"
        raise ReadError(f"the relation {' '.join(fact)!r} has number {relation}, but {known}; see {VOCABULARY}")
    return subject, relations[relation], target


def _filled(row: _Row) -> str:
    def entity(slot: re.Match[str]) -> str:
        number = int(slot[2])
        if number >= len(row.entities) or row.types[number] != slot[1]:
            raise ReadError(
                f"the slot {slot[0]} of the abstract names no entity; write <type_number> of one of the row"
            )
        return row.entities[number]

    return SLOT.sub(entity, row.abstract)
