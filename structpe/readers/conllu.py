"""CoNLL-U: dependency trees of sentences, as in Universal Dependencies, or their enhanced graphs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from structpe.errors import ReadError
from structpe.readers._conllu_lines import NUMBER, Row, Sentence, dependencies, parse
from structpe.readers._ranges import Range, spans_with_ranges
from structpe.readers._text import blocks, shown
from structpe.readers.base import Item, Yielded, attempt, reader
from structpe.readers.tree import tree
from structpe.structure import Structure

__all__ = ["conllu"]

SENT_ID = re.compile(r"\s*#\s*sent_id\s*=(.*)")
KEPT = ("lemma", "upos", "xpos", "feats", "deps", "misc")


@reader("conllu", ".conllu .conll", apart=True)
def conllu(path: Path, graph: Literal["basic", "enhanced"] = "basic", strict: bool = True) -> Iterator[Yielded]:
    """CoNLL-U sentences: trees from head to dependent, relations from DEPREL.

    ``metadata`` has the comments, such as ``sent_id`` and ``text``; the fields ``lemma``, ``upos``, ``xpos``,
    ``feats``, ``deps`` and ``misc`` of each node, unchanged; ``space_after``, whether a space follows each word; and
    everything that is not a node: all ``comments``, the lines of multiword ``ranges`` (``3-4``) and of ``empty`` nodes
    (``5.1``) with their ten fields, their numbers ``multiword_tokens`` and ``empty_nodes``, and ``root_relation``. From
    these the writer ``conllu`` restores the sentence.

    With a text, the feature ``span`` has start and end of each word in it, -1 for a missing word. Words of a range have
    their part of it, or the whole range if the parts cannot be determined.

    Args:
        path: a file.
        graph: ``basic`` makes the tree. ``enhanced`` makes the digraph of DEPS, where a node may have several heads.
            Empty nodes are nodes then, marked by the feature ``is_empty``; ``is_root`` marks those with head 0, the
            first of which is the root; ``metadata`` has ``head`` and ``deprel`` of the tree.
        strict: whether the last sentence must also end with a blank line, as CoNLL-U requires. Otherwise a truncated
            sentence could not be detected, since its first words are often a tree. False keeps such a sentence, and
            ``ended`` in its ``metadata`` is False.
    """
    made = _basic if graph == "basic" else _enhanced
    for number, (first, block, ended) in enumerate(blocks(path), 1):
        ids = [found[1].strip() for line in block if (found := SENT_ID.match(line))]
        id = ids[0] if ids else str(number)
        make = partial(_item, block, first, id, path.name, made)
        yield attempt(make if ended else partial(_unended, make, strict), ids[0] if ids else "", first)


def _unended(make: Callable[[], Item], strict: bool) -> Item:
    item = make()
    if strict:
        raise ReadError(
            "the file ends without a blank line after this sentence, so it may be truncated; restore the file, or, if "
            "the sentence is complete, add the line or give strict=False"
        )
    return replace(item, metadata={**item.metadata, "ended": False})


def _item(block: Sequence[str], first: int, id: str, file: str, made: Any) -> Item:
    sentence = parse(block, first)
    said = sentence.metadata()
    structure: Structure
    structure, own = made(sentence, f"{file}:{id}")
    if said.get("text") is not None:
        forms, ranges = [word.form for word in sentence.words], [_range(row) for row in sentence.ranges]
        words = spans_with_ranges(forms, ranges, str(said["text"]))
        place = np.full((structure.size, 2), -1)
        place[~np.asarray(structure.features.get("is_empty", np.zeros(structure.size, dtype=bool)))] = words
        structure = replace(structure, features={**structure.features, "span": place})
    kept = {
        "comments": tuple(sentence.comments),
        "space_after": _space_after(sentence),
        "ranges": tuple(tuple(row[1:]) for row in sentence.ranges),
        "multiword_tokens": len(sentence.ranges),
        "empty_nodes": len(sentence.empty),
    }
    return Item(structure, id=id, metadata={**said, **own, **kept})


def _basic(sentence: Sentence, name: str) -> tuple[Structure, dict[str, Any]]:
    heads = [_head(row) for row in sentence.words]
    # The tree checks the heads; None is an invalid head.
    made = tree([row.form for row in sentence.words], heads, [row.deprel for row in sentence.words], name)  # type: ignore[arg-type]
    own = _fields(sentence.words, KEPT)
    relation = sentence.words[heads.index(0)].deprel
    empty = tuple(tuple(row[1:]) for row in sentence.empty)
    return made, {**own, "graph": "basic", "root_relation": relation, "empty": empty}


def _enhanced(sentence: Sentence, name: str) -> tuple[Structure, dict[str, Any]]:
    number = {row.id: place for place, row in enumerate(sentence.nodes)}
    edges: list[tuple[int, int, str]] = []
    roots = np.zeros(len(number), dtype=bool)
    for place, row in enumerate(sentence.nodes):
        for head, relation in dependencies(row):
            if head == "0":
                roots[place] = True
            elif head in number:
                edges.append((number[head], place, relation))
            else:
                wrong = f"{row.form!r} has the head {head}, but there is no such node; heads are ids, or 0 for the root"
                raise ReadError(wrong).at(f"line {row.line}")
    if not edges and not roots.any():
        raise ReadError("the sentence has no enhanced dependencies (DEPS is _ everywhere); read it with graph='basic'")
    structure = Structure(
        tuple(row.form for row in sentence.nodes),
        np.array([edge[:2] for edge in edges], dtype=np.int64).reshape(-1, 2),
        tuple(edge[2] for edge in edges),
        order=np.arange(len(number)),
        root=int(roots.argmax()) if roots.any() else None,
        features={"is_empty": np.array(["." in row.id for row in sentence.nodes]), "is_root": roots},
        name=name,
    )
    return structure, {"graph": "enhanced", "empty": (), **_fields(sentence.nodes, (*KEPT, "head", "deprel"))}


def _fields(rows: Sequence[Row], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    columns = dict(zip(Row._fields, zip(*rows, strict=True), strict=False))
    return {name: columns.get(name, ()) for name in names}


def _head(row: Row) -> int | None:
    if row.head == "_":
        return None
    if not NUMBER.fullmatch(row.head):
        wrong = f"HEAD of {row.form!r} is {shown(row.head)}; give the number of a word, or 0 for the root"
        raise ReadError(wrong).at(f"line {row.line}")
    return int(row.head)


def _space_after(sentence: Sentence) -> tuple[bool, ...]:
    """Whether a space follows each word: none inside a range, and after it as the range says."""
    spaces = [_blank(row) for row in sentence.words]
    for row in sentence.ranges:
        first, last, _ = _range(row)
        spaces[first - 1 : last] = [*[False] * (last - first), _blank(row)]
    return tuple(spaces)


def _range(row: Row) -> Range:
    first, _, last = row.id.partition("-")
    return int(first), int(last), row.form


def _blank(row: Row) -> bool:
    return "SpaceAfter=No" not in row.misc.split("|")
