"""Triples (subject, relation, object): a graph whose entities are nodes and whose facts are edges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from structpe.errors import LONGEST, ReadError, StructureError
from structpe.formats.converting import ConversionError, add_converter
from structpe.formats.reading import Item, Yielded, attempt, reader
from structpe.formats.text import cut_off, ended_lines, lines, longer, shown
from structpe.formats.writing import WriteError, facts, writer
from structpe.structure import Structure

__all__ = ["HEADERS", "from_triples", "triples", "triples_text", "tsv", "without_header"]


Triple = Sequence[str]
Numbered = list[tuple[int, str]]


def triples(facts: Sequence[Triple], name: str = "") -> Structure:
    """A knowledge graph: one node per entity, one edge per fact.

    Args:
        facts: (subject, relation, object) each; entities with the same text are the same node.
        name: where the facts come from, for error messages.

    Returns:
        Nodes are in the order in which the facts first mention them, which is also the reading order; edges are in
        the order of the facts, a fact given twice is two edges. The root is the first subject.

    Raises:
        StructureError: there is no fact, or one does not have three parts that are not empty.
    """
    for place, fact in enumerate(facts, 1):
        if len(fact) != 3 or not all(str(part).strip() for part in fact):
            wrong = (
                f"triple {place} is {_shown(fact)}; give three texts that are not empty, subject, relation and object"
            )
            raise StructureError(wrong).at(*([name] if name else []))
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


HEADERS = (
    ("head", "subject", "subj", "source", "src", "from", "head_entity", "entity1", "node1", "h", "s"),
    ("relation", "predicate", "pred", "property", "edge", "rel", "type", "label", "relationship", "r", "p"),
    ("tail", "object", "obj", "target", "dst", "to", "tail_entity", "entity2", "node2", "t", "o"),
)
"""The usual names of the columns of tables of triples: of the subject, the relation and the object."""


def without_header(facts: Sequence[Triple], header: bool | None) -> Sequence[Triple]:
    """The facts, without the first if it is a header.

    Raises:
        ReadError: ``header`` is None, and the first has the usual names of columns.
    """
    first = [str(part).strip().lower() for part in facts[0]] if facts else []
    if header is None and len(first) == 3 and all(part in known for part, known in zip(first, HEADERS, strict=True)):
        wrong = f"the first triple is {_shown(facts[0])}, which are usual names of columns"
        raise ReadError(f"{wrong}; give header=True to leave it out, or header=False if it is a fact")
    return facts[1:] if header else facts


def _shown(fact: Triple) -> str:
    text = repr(fact)
    return text if len(text) <= 3 * LONGEST else f"{text[: 3 * LONGEST]}..."


@reader("triples", ".tsv", also=".txt")
def tsv(
    path: Path,
    columns: str | None = None,
    numbered: bool = False,
    names: str | None = None,
    header: bool | None = None,
) -> Iterator[Yielded]:
    """Subject, relation and object separated by tabs, a fact per line: the whole file is one graph.

    WN18RR, UMLS and Nations are published like this (``reader="triples"``, as their names end in ``.txt``), the last
    with ``columns="rht"``. OpenKE's format is ``numbered=True, names="."``.

    Args:
        path: a file.
        columns: the order of head (h, the subject), relation (r) and tail (t, the object); None for ``hrt``, or with
            ``numbered`` for ``htr``, the order of OpenKE.
        numbered: whether the first line is the number of facts, and the others are three whole numbers separated by
            spaces, as in OpenKE. If ``entity2id.txt`` and ``relation2id.txt`` are in the same folder, each number must
            be in them.
        names: with ``numbered``, the folder, relative to that of the file, with ``entity2id.txt`` and
            ``relation2id.txt``, whose first line is a number and whose others are a name, a tab and its number; None
            uses the numbers as names.
        header: whether the first line names the columns, and is left out; None: it is a fact, but an error if it has
            the usual names, such as ``head relation tail``. Give True or False then.
    """
    if columns is not None and sorted(columns) != sorted("hrt"):
        raise ReadError(f"columns is {columns!r}; give h, r, t (head, relation, tail) in their order, such as 'hrt'")
    if names is not None and not numbered:
        raise ReadError("names needs numbered facts; give numbered=True too, or leave it out")
    if header is not None and numbered:
        raise ReadError("the first line of numbered facts is their number, not a header; leave out header")
    yield attempt(partial(_item, path, columns or ("htr" if numbered else "hrt"), numbered, names, header))


def _item(path: Path, columns: str, numbered: bool, names: str | None, header: bool | None) -> Item:
    facts = _numbers(path, columns, names) if numbered else without_header(_texts(path, columns), header)
    return Item(triples(facts, name=path.name), id="1")


def _texts(path: Path, columns: str) -> list[list[str]]:
    facts: list[list[str]] = []
    for number, line, ended in ended_lines(path):
        if line.strip():
            fact = [part.strip() for part in line.split("\t")]
            if len(fact) != 3 or not all(fact):
                message = f"{shown(line)} is not a triple; give subject, relation and object, separated by tabs"
                table = "; a table with a header and more columns, such as texts, is read by reader='facts'"
                raise ReadError(message + (table if len(fact) > 3 else "")).at(f"line {number}")
            if not ended and (cut := cut_off(line, number, longer(fact[-1], _like_last(facts, columns)))) is not None:
                raise cut
            facts.append(_in_order(fact, columns))
    return facts


def _like_last(facts: list[list[str]], columns: str) -> Iterator[str]:
    """The relations or entities of the facts, by the last column."""
    return (part for fact in facts for part in (fact[1:2] if columns[-1] == "r" else fact[::2]))


def _numbers(path: Path, columns: str, names: str | None) -> list[list[str]]:
    """The facts of a file in OpenKE's format, with names if there are any."""
    known = {kind: _known(path, names, kind) for kind in KINDS}
    facts = []
    for number, line in _counted(path):
        given = line.split()
        if len(given) != 3 or not all(_is_number(part) for part in given):
            wrong = f"{shown(line)} is not a triple; give three whole numbers, separated by spaces"
            raise ReadError(wrong).at(f"line {number}")
        fact = [int(part) for part in _in_order(given, columns)]
        for part, kind in zip(fact, ROLES, strict=True):
            table = known[kind]
            if table is not None and part not in table:
                raise _unknown(kind, part, table, _other_order(given, known, columns)).at(f"line {number}")
        tables = [None if names is None else known[kind] for kind in ROLES]
        facts.append([str(part) if t is None else t[part] for part, t in zip(fact, tables, strict=True)])
    return facts


KINDS = ("entity", "relation")
ROLES = ("entity", "relation", "entity")
"""The kinds of head, relation and tail."""
Names = dict[int, str]


def _known(path: Path, names: str | None, kind: str) -> Names | None:
    """The names of all numbers of a kind; None if no names are requested, and there is no file next to the facts."""
    file = path.parent / (names or ".") / f"{kind}2id.txt"
    return _names(file) if names is not None or file.is_file() else None


def _unknown(kind: str, number: int, table: Names, other: str) -> ReadError:
    problem = f"{kind} {number} is not in {kind}2id.txt, which has 0..{len(table) - 1}"
    remedy = f"the numbers fit columns={other!r}, give that" if other else "restore the original files"
    return ReadError(f"{problem}; {remedy}")


def _other_order(given: list[str], known: dict[str, Names | None], columns: str) -> str:
    """Another order in which all numbers of a line are known; empty if no order fits."""
    for other in ("htr", "hrt", "rht"):
        fact = [int(part) for part in _in_order(given, other)]
        tables = [known[kind] for kind in ROLES]
        if other != columns and all(t is None or part in t for part, t in zip(fact, tables, strict=True)):
            return other
    return ""


def _names(path: Path) -> Names:
    """The name of each number in a file of names."""
    found: Names = {}
    try:
        counted = _counted(path)
        for number, line in counted:
            name, _, text = line.rpartition("\t")
            if not name.strip() or not _is_number(text.strip()):
                raise ReadError(f"{shown(line)} is not a name; give a name, a tab and its number").at(f"line {number}")
            if int(text) >= len(counted):
                wrong = f"{shown(name)} has the number {int(text)}, but the {len(counted)} are 0..{len(counted) - 1}"
                raise ReadError(f"{wrong}; restore the file").at(f"line {number}")
            if int(text) in found:
                raise ReadError(f"the number {int(text)} is given twice, to {shown(name)} too").at(f"line {number}")
            found[int(text)] = name.strip()
        _check_different(found)
    except ReadError as error:
        raise error.at(path.name) from None
    except FileNotFoundError:
        raise ReadError(f"there is no {path.name} in the folder given as names; give the one that has it") from None
    return found


def _check_different(names: Names) -> None:
    """Check that names differ, since entities with the same name would be one node."""
    first: dict[str, int] = {}
    for number, name in names.items():
        if (other := first.setdefault(name, number)) != number:
            raise ReadError(f"the numbers {other} and {number} have the same name, {shown(name)}; make them differ")


def _counted(path: Path) -> Numbered:
    """The lines after the first, which must be their number."""
    given = [(number, line) for number, line in lines(path) if line.strip()]
    if not given or not _is_number(given[0][1].strip()):
        first = shown(given[0][1]) if given else "nothing"
        raise ReadError(f"the first line says how many lines follow; it is {first}").at("line 1")
    if int(given[0][1]) != len(given) - 1:
        wrong = f"{int(given[0][1])} lines are announced, {len(given) - 1} follow; restore the file"
        raise ReadError(wrong).at("line 1")
    return given[1:]


def _in_order(parts: list[str], columns: str) -> list[str]:
    """Head, relation, tail."""
    return [parts[columns.index(part)] for part in "hrt"] if len(parts) == 3 else parts


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


@writer("triples", ".tsv")
def triples_text(item: Item) -> str:
    """Subject, relation and object separated by tabs, a fact per line.

    The reader identifies entities by their labels, so labels must differ. Parts must not be empty, nor contain tabs or
    line ends. The reader numbers nodes in the order of the facts.

    Raises:
        WriteError: the edges are undirected, two nodes have the same label, a node has no edge, or a part cannot be
            written in a line.
    """
    rows = facts(item.structure, "triples know nodes by their labels")
    return "".join("\t".join(map(_part, row)) + "\n" for row in rows)


def _part(text: str) -> str:
    if not text.strip() or text != text.strip() or any(letter in text for letter in "\t\n\r"):
        raise WriteError(f"{shown(text)} cannot be written in a line of triples; leave out tabs and ends of lines")
    return text


def from_triples(facts: Sequence[Any], name: str = "", header: bool | None = None) -> Structure:
    """The knowledge graph of (subject, relation, object) texts; see :func:`structpe.formats.triples.triples`.

    Args:
        facts: lists or tuples of three texts.
        name: where they come from, for error messages.
        header: whether the first names the columns, and is left out; None: it is a fact, but an error if it has the
            usual names, such as ``head relation tail``.

    Raises:
        ConversionError: something in the list is not three texts, or the first looks like a header.
        StructureError: there is no fact, or a text is empty.
    """
    if len(facts) == 3 and all(isinstance(part, str) for part in facts):
        one = f"[{tuple(facts)!r}]"
        raise ConversionError(
            f"a list is taken as triples (subject, relation, object) of texts, but this is one triple; give "
            f'{one[:200]}, or as an item {{"facts": {one[:200]}}}'
        )
    for place, fact in enumerate(facts):
        if not isinstance(fact, (list, tuple)) or len(fact) != 3 or not all(isinstance(part, str) for part in fact):
            given = f"{type(fact).__module__}.{type(fact).__qualname__}".removeprefix("builtins.")
            remedy = "for words structpe.path(words), or structpe.tree(words, heads)" if isinstance(fact, str) else ""
            raise ConversionError(
                f"a list is taken as triples (subject, relation, object) of texts, but number {place} is {given} "
                f"{repr(fact)[:80]}; {remedy or 'convert several objects one by one'}"
            )
    try:
        return triples(without_header(facts, header), name)
    except ReadError as error:
        raise ConversionError(error.message) from None


add_converter("triples", "builtins.list builtins.tuple", "lists of (subject, relation, object)", from_triples)
