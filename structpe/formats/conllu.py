"""CoNLL-U: dependency trees of sentences, as in Universal Dependencies, or their enhanced graphs; and ``conllu``.

The reader keeps all fields unchanged, and the writer can write a sentence as it was read. Of a structure that becomes a
``conllu.TokenList``, the name is the ``sent_id``; units and features are lost, and the order is that of the words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from structpe.errors import ReadError, StructureError, needing
from structpe.formats.converting import ConversionError, add_converter
from structpe.formats.reading import Item, Yielded, attempt, reader
from structpe.formats.text import blocks, shown
from structpe.formats.trees import tree
from structpe.formats.writing import WriteError, as_text, writer
from structpe.structure import Ids, Structure

__all__ = [
    "COLUMNS",
    "Range",
    "Row",
    "Sentence",
    "conllu",
    "conllu_text",
    "dependencies",
    "from_conllu",
    "parse",
    "spans_with_ranges",
    "to_conllu",
]


Range = tuple[int, int, str]
"""Numbers of the first and the last word, from 1, and the form."""


def spans_with_ranges(words: Sequence[str], ranges: Sequence[Range], text: str) -> Ids:
    """(n, 2) start and end of each word in the text, found from left to right; -1, -1 for a missing word.

    The text contains a range, but maybe not its words. If the words concatenate to the range, each has its part. If
    there are two, and the first is a prefix of the range or the last a suffix, the other has the rest. Otherwise each
    has the whole range.
    """
    found: list[tuple[int, int]] = []
    at, wide = 0, {first: (last, form) for first, last, form in ranges}
    while len(found) < len(words):
        place = len(found)
        last, form = wide.get(place + 1, (place + 1, words[place]))
        inside = words[place : max(last, place + 1)]
        start = text.find(form, at) if form else -1
        if start < 0:
            found += [(-1, -1)] * len(inside)
            continue
        at = start + len(form)
        found += [(start + a, start + b) for a, b in _parts(form, inside)]
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def _parts(whole: str, words: Sequence[str]) -> list[tuple[int, int]]:
    if "".join(words) == whole:
        return list(pairwise(accumulate(map(len, words), initial=0)))
    if len(words) == 2 and 0 < len(words[0]) < len(whole) and whole.startswith(words[0]):
        return [(0, len(words[0])), (len(words[0]), len(whole))]
    if len(words) == 2 and 0 < len(words[1]) < len(whole) and whole.endswith(words[1]) and words[0] != whole:
        return [(0, len(whole) - len(words[1])), (len(whole) - len(words[1]), len(whole))]
    return [(0, len(whole))] * len(words)


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


SENT_ID = re.compile(r"\s*#\s*sent_id\s*=(.*)")
KEPT = ("lemma", "upos", "xpos", "feats", "deps", "misc")


@reader("conllu", ".conllu .conll", parallel=True)
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


Columns: TypeAlias = dict[str, Sequence[str]]

NOTHING = "_"


@writer("conllu", ".conllu")
def conllu_text(item: Item, graph: Literal["basic", "enhanced"] | None = None) -> str:
    """A sentence in ten columns separated by tabs, and a blank line after it.

    Words are in the order of the structure. HEAD and DEPREL are its edges. The metadata from the reader ``conllu`` is
    written again: comments, the other fields of each node, multiword ranges and empty nodes. So an unchanged sentence
    is written byte for byte as it was read, and changes of the tree are written. Unknown fields are ``_``.

    Args:
        item: an item, or a structure.
        graph: ``basic`` writes a tree. ``enhanced`` writes any digraph into DEPS, each edge at its target; HEAD and
            DEPREL are those of the metadata then. By default as the item was read, or ``basic``.

    Raises:
        WriteError: the structure is undirected or, with ``basic``, not a tree; a field cannot store a text; the
            metadata does not fit.
    """
    graph = graph or ("enhanced" if item.metadata.get("graph") == "enhanced" else "basic")
    structure = item.structure
    if not structure.directed:
        raise WriteError("the edges are undirected; CoNLL-U has edges from head to dependent")
    reading = structure.reading
    empty = np.asarray(structure.features.get("is_empty", np.zeros(structure.size, dtype=bool)), dtype=bool)
    ids = _ids(reading, empty)
    columns = _kept(item, structure.size)
    columns |= _basic_columns(item, ids) if graph == "basic" else _enhanced_columns(structure, ids, reading, columns)
    rows = [[ids[node], *(columns[name][node] for name in ORDER)] for node in reading.tolist()]
    lines = [_line(row) for row in _with_lines_between(rows, item)]
    return "".join(line + "\n" for line in [*_comments(item), *lines, ""])


ORDER = ("form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")


def _ids(reading: Any, empty: Any) -> list[str]:
    """The id of each node: words count 1, 2, ..., empty nodes after word 3 count 3.1, 3.2, ..."""
    ids = [""] * len(reading)
    word = behind = 0
    for node in reading.tolist():
        word, behind = (word, behind + 1) if empty[node] else (word + 1, 0)
        ids[node] = f"{word}.{behind}" if empty[node] else str(word)
    return ids


def _kept(item: Item, size: int) -> Columns:
    columns: Columns = {"form": [label or NOTHING for label in item.structure.nodes]}
    for name in ORDER[1:]:
        values = item.metadata.get(name)
        if not isinstance(values, (tuple, list)):
            values = _blanks(item) if name == "misc" else (NOTHING,) * size
        if len(values) != size:
            raise WriteError(f"metadata {name!r} has {len(values)} values for {size} nodes; give one per node, or none")
        columns[name] = [str(value) or NOTHING for value in values]
    return columns


def _blanks(item: Item) -> list[str]:
    """MISC from ``space_after``, for sentences that were not read from CoNLL-U."""
    after = item.metadata.get("space_after")
    if not isinstance(after, (tuple, list)) or len(after) != item.structure.size:
        return [NOTHING] * item.structure.size
    return [NOTHING if blank else "SpaceAfter=No" for blank in after]


def _basic_columns(item: Item, ids: Sequence[str]) -> Columns:
    structure = item.structure
    try:
        parents = structure.parents().tolist()
    except StructureError as error:
        raise WriteError(f"{error.message}; graph='enhanced' writes any digraph") from None
    relations = [str(item.metadata.get("root_relation", "root"))] * structure.size
    for edge, target in enumerate(structure.edges[:, 1].tolist()):
        relations[target] = structure.relation(edge) or NOTHING
    return {"head": ["0" if parent < 0 else ids[parent] for parent in parents], "deprel": relations}


def _enhanced_columns(structure: Structure, ids: Sequence[str], reading: Any, columns: Columns) -> Columns:
    heads: list[list[tuple[int, str]]] = [[] for _ in ids]
    for edge, (source, target) in enumerate(structure.edges.tolist()):
        heads[target].append((source, f"{ids[source]}:{structure.relation(edge) or NOTHING}"))
    place = np.argsort(reading)
    roots = np.asarray(structure.features.get("is_root", np.arange(structure.size) == structure.root), dtype=bool)
    written = []
    for node, raw in enumerate(columns["deps"]):
        said = [part for part in raw.split("|") if part != NOTHING]
        own = [text for _, text in heads[node]]
        # If the edges are unchanged, so is the field, with the order of its parts and the label of the root.
        if any(part.startswith("0:") for part in said) == roots[node] and own == [
            part for part in said if not part.startswith("0:")
        ]:
            written.append(raw)
        else:
            own = [text for _, text in sorted(heads[node], key=lambda head: int(place[head[0]]))]
            written.append("|".join([*(["0:root"] if roots[node] else []), *own]) or NOTHING)
    return {"deps": written}


def _with_lines_between(rows: list[list[str]], item: Item) -> Iterator[Sequence[str]]:
    """The rows, with ranges before their first word, and empty nodes that are not nodes after their word."""
    ids = [row[0] for row in rows]
    before: dict[str, list[Sequence[str]]] = {}
    behind: dict[str, list[Sequence[str]]] = {}
    for name, separator, places in (("ranges", "-", before), ("empty", ".", behind)):
        kept = item.metadata.get(name)
        for row in kept if isinstance(kept, (tuple, list)) else ():
            word = row[0].partition(separator)[0]
            if word not in ids and word != "0":
                raise WriteError(f"metadata {name!r} has {row[0]!r}, but there is no word {word}; take it out")
            places.setdefault(word, []).append(row)
    yield from behind.get("0", ())
    for row in rows:
        yield from before.get(row[0], ())
        yield row
        yield from behind.get(row[0], ())


def _comments(item: Item) -> Iterator[str]:
    kept = item.metadata.get("comments")
    if isinstance(kept, (tuple, list)):
        lines = [str(line) for line in kept]
    else:
        text = item.metadata.get("text")
        lines = [f"# sent_id = {item.id}"] if item.id else []
        lines += [f"# text = {text}"] if isinstance(text, str) and text else []
    for line in lines:
        if "\n" in line or "\r" in line:
            raise WriteError(f"{shown(line)} cannot be written in a comment of CoNLL-U; give a text of one line")
        yield line


def _line(row: Sequence[str]) -> str:
    line = "\t".join(row)
    if line.count("\t") != len(ORDER) or "\n" in line or "\r" in line or not all(row):
        wrong = next((text for text in row if not text or any(letter in text for letter in "\t\n\r")), line)
        raise WriteError(f"{wrong!r} cannot be written in a field of CoNLL-U; give a text without tabs and line ends")
    return line


def from_conllu(sentence: Any) -> Structure:
    """The basic tree of a ``conllu.TokenList``, named by its ``sent_id``, without ranges and empty nodes.

    Raises:
        ConversionError: words are not numbered 1, 2, 3, ..., or one has no form or head.
        StructureError: the heads are not a tree.
    """
    if lacking := [place for place, token in enumerate(sentence, 1) if "id" not in token]:
        raise ConversionError(f"token {lacking[0]} has no id; ids count 1, 2, 3, ..., and each word has one")
    words = [token for token in sentence if isinstance(token["id"], int)]
    for place, word in enumerate(words, 1):
        if word["id"] != place or word.get("form") is None or word.get("head") is None:
            raise ConversionError(
                f"word {place} has id {word['id']}, form {word.get('form')!r} and head {word.get('head')!r}; ids count "
                "1, 2, 3, ..., and each word has a form and a head"
            )
    labels = [str(word.get("deprel") or "_") for word in words]
    name = str((sentence.metadata or {}).get("sent_id") or "")
    return tree([word["form"] for word in words], [word["head"] for word in words], labels, name)


def to_conllu(structure: Structure) -> Any:
    """The structure as a ``conllu.TokenList``, with forms, heads and relations.

    Raises:
        WriteError: it is not a tree, or a label cannot be written in a column: see the writer ``conllu``.
    """
    with needing("conllu", "trees"):
        import conllu
    return conllu.parse(as_text(Item(structure, id=structure.name), "conllu"))[0]


add_converter("conllu", "conllu.TokenList", "sentences with heads, and back", from_conllu, to_conllu)
