"""The lines of a sentence in CoNLL-U: comments, words, multiword ranges and empty nodes.

Fields are kept unchanged, so that a sentence can be written as it was read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from structpe.errors import ReadError
from structpe.readers._text import shown

__all__ = ["COLUMNS", "Row", "Sentence", "dependencies", "parse"]

NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
ID = re.compile(r"(0|[1-9][0-9]{0,8})(?:([-.])([1-9][0-9]{0,8}))?")


class Row(NamedTuple):
    """A line that is not a comment: its number in the file, and its ten fields."""

    line: int
    id: str
    form: str
    lemma: str
    upos: str
    xpos: str
    feats: str
    head: str
    deprel: str
    deps: str
    misc: str


COLUMNS = Row._fields[1:]


@dataclass
class Sentence:
    """The lines of a sentence, by kind.

    Attributes:
        comments: the lines before the first word, with their ``#``.
        words: the words, whose ids are 1, 2, 3, ...
        ranges: multiword tokens such as ``3-4``, which are before their first word.
        empty: empty nodes such as ``3.1``, which are after their word.
        nodes: words and empty nodes, in the order of the file.
    """

    comments: list[str] = field(default_factory=list)
    words: list[Row] = field(default_factory=list)
    ranges: list[Row] = field(default_factory=list)
    empty: list[Row] = field(default_factory=list)
    nodes: list[Row] = field(default_factory=list)

    def metadata(self) -> dict[str, str | None]:
        """The comments of the form ``# key = value``, ``# newdoc`` and ``# newpar``."""
        found: dict[str, str | None] = {}
        for comment in self.comments:
            key, equals, value = comment.strip()[1:].partition("=")
            if equals or key.strip() in ("newdoc", "newpar"):
                found.setdefault(key.strip(), value.strip() if equals else None)
        return found


def parse(block: Sequence[str], first: int) -> Sentence:
    """Parse a sentence from its lines, the first of which has the number ``first`` in the file.

    Raises:
        ReadError: a line does not have ten fields, an id is out of order, or a comment is between words.
    """
    sentence = Sentence()
    end, before = 0, ""
    for line, text in enumerate(block, first):
        if text.lstrip().startswith("#"):
            if before:
                raise ReadError("a comment is between words; move it before the first word").at(f"line {line}")
            sentence.comments.append(text)
            continue
        row = _row(text, line)
        end = _add(sentence, row, end, before)
        before = row.id
    if end > len(sentence.words):
        last = sentence.ranges[-1]
        message = f"the range {last.id} ends after the last word, {len(sentence.words)}"
        raise ReadError(f"{message}; give it existing words").at(f"line {last.line}")
    return sentence


def dependencies(row: Row) -> list[tuple[str, str]]:
    """The heads of a node in the enhanced graph, as (id, relation); 0 is the head of the root.

    Raises:
        ReadError: the field DEPS is not ``head:relation|head:relation``.
    """
    if row.deps == "_":
        return []
    pairs = [part.partition(":") for part in row.deps.split("|")]
    for head, _, relation in pairs:
        if not relation or not ID.fullmatch(head) or "-" in head:
            remedy = "write head:relation, separated by '|', or _"
            raise ReadError(f"DEPS of {row.form!r} is {shown(row.deps)}; {remedy}").at(f"line {row.line}")
    return [(head, relation) for head, _, relation in pairs]


def _row(text: str, line: int) -> Row:
    fields = text.split("\t")
    if len(fields) != len(COLUMNS):
        wrong = f"the line has {len(fields)} fields, CoNLL-U has ten separated by tabs; the line is {shown(text)}"
        raise ReadError(wrong).at(f"line {line}")
    for place in (1, 7):
        if not fields[place]:
            wrong = f"{COLUMNS[place].upper()} is empty; write _ for an empty field"
            raise ReadError(wrong).at(f"line {line}")
    return Row(line, *fields)


def _add(sentence: Sentence, row: Row, end: int, before: str) -> int:
    """Add a row to a sentence. Returns the last word of the last range."""
    found = ID.fullmatch(row.id)
    if found is None:
        raise ReadError(f"{row.id!r} is not an id; ids are 3, 3-4 or 3.1").at(f"line {row.line}")
    number, kind, other = int(found[1]), found[2], int(found[3] or 0)
    due = len(sentence.words) + 1
    if "-" in before and (kind or number != due):
        wrong = f"{row.id} follows the range {before}, which must be followed by its first word"
        raise ReadError(wrong).at(f"line {row.line}")
    if not kind:
        if number != due:
            message = f"{row.form!r} has id {row.id}; ids count 1, 2, 3, ..., so it must be {due}"
            raise ReadError(message).at(f"line {row.line}")
        sentence.words.append(row)
    elif kind == "-":
        if number != due or other < number or number <= end:
            message = f"the range {row.id} is before word {due}; a range must be before its first word, without overlap"
            raise ReadError(message).at(f"line {row.line}")
        sentence.ranges.append(row)
        return other
    else:
        last, _, count = sentence.empty[-1].id.partition(".") if sentence.empty else ("", "", "")
        if number != due - 1 or other != (int(count) + 1 if last == found[1] else 1):
            message = f"the empty node {row.id} is after word {due - 1}; empty nodes count {due - 1}.1, ..."
            raise ReadError(message).at(f"line {row.line}")
        sentence.empty.append(row)
    sentence.nodes.append(row)
    return end
