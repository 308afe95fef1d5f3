"""WebNLG XML: an entry per graph, its triples and its texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from structpe.readers._text import shown
from structpe.readers.base import Item
from structpe.structure import Structure
from structpe.writers._facts import facts
from structpe.writers.base import WriteError, writer

__all__ = ["webnlg"]

NAMES = ("category", "eid", "shape", "shape_type", "size")
LINKS = {"dbpedialinks": "dbpedialink", "links": "link"}
INNER = ("template", "lexicalization")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
RETURN = {"\r": "&#13;"}
SPACES = {"\n": "&#10;", "\t": "&#9;", **RETURN}
FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
BEFORE = '<?xml version="1.0" encoding="utf-8"?>\n<benchmark>\n  <entries>\n'
AFTER = "  </entries>\n</benchmark>\n"


@writer("webnlg", ".xml", before=BEFORE, after=AFTER)
def webnlg(item: Item) -> str:
    """An entry with its triples, a fact per edge, and the item's texts.

    The metadata from the reader ``webnlg`` is written again: attributes, original triples, links, and attributes of
    texts, if the texts are unchanged. Otherwise ``eid`` is the item's id, ``size`` the number of facts, and texts are
    numbered. The reader identifies entities by their labels.

    Raises:
        WriteError: two nodes have the same label, a node has no edge, a part of a fact is empty, has white space at an
            end or contains ``|`` between spaces, or XML forbids a character.
    """
    structure = item.structure
    said = {name: str(item.metadata[name]) for name in NAMES if isinstance(item.metadata.get(name), str)}
    attributes = {"eid": item.id, **said, "size": str(len(structure.edges))}
    attributes = {name: attributes[name] for name in NAMES if name in attributes}
    return "".join(f"{'  ' * depth}{line}\n" for depth, line in _entry(item, attributes))


Lines = Iterator[tuple[int, str]]


def _entry(item: Item, attributes: Mapping[str, str]) -> Lines:
    yield 2, _tag("entry", attributes)
    for triples in _sequence(item, "original"):
        yield from _set("originaltripleset", "otriple", triples)
    yield from _set("modifiedtripleset", "mtriple", _facts(item.structure))
    for number, lex in enumerate(_lexes(item), 1):
        yield from _lex(lex, number)
    for name, inner in LINKS.items():
        if pairs := _sequence(item, name):
            yield 3, f"<{name}>"
            for direction, text in pairs:
                yield 4, _element(inner, text, {"direction": direction})
            yield 3, f"</{name}>"
    if entities := _sequence(item, "entities"):
        yield 3, "<entitymap>"
        for tag, entity in entities:
            yield 4, _element("entity", f"{tag} | {entity}")
        yield 3, "</entitymap>"
    yield 2, "</entry>"


def _facts(structure: Structure) -> list[str]:
    rows = facts(structure, "WebNLG knows entities by their labels")
    for part in (part for row in rows for part in row):
        if not part.strip() or part != part.strip() or " | " in f" {part} ":
            raise WriteError(f"{part!r} cannot be written in WebNLG; give a text without ' | ' and outer spaces")
    return [" | ".join(row) for row in rows]


def _lexes(item: Item) -> Sequence[Mapping[str, Any]]:
    kept = _sequence(item, "lexes")
    if tuple(lex.get("text", "") for lex in kept if lex.get("text")) == item.texts:
        return kept
    return [{"comment": "", "lid": f"Id{number}", "text": text} for number, text in enumerate(item.texts, 1)]


def _lex(lex: Mapping[str, Any], number: int) -> Lines:
    attributes = {name: value for name, value in lex.items() if isinstance(value, str) and name not in ("text", *INNER)}
    attributes = attributes if "lid" in attributes else {**attributes, "lid": f"Id{number}"}
    rich = [name for name in (*INNER, "sentences", "references") if name in lex]
    if not rich:
        yield 3, _element("lex", str(lex.get("text", "")), attributes)
        return
    yield 3, _tag("lex", attributes)
    if "sentences" in rich:
        yield 4, "<sortedtripleset>"
        for place, sentence in enumerate(lex["sentences"], 1):
            yield from ((depth + 2, line) for depth, line in _set("sentence", "striple", sentence, {"ID": str(place)}))
        yield 4, "</sortedtripleset>"
    if "references" in rich:
        yield 4, "<references>"
        for reference in lex["references"]:
            own = {name: value for name, value in reference.items() if name != "text"}
            yield 5, _element("reference", reference["text"], own)
        yield 4, "</references>"
    for name in ("text", *INNER):
        if name in lex:
            yield 4, _element(name, lex[name])
    yield 3, "</lex>"


def _set(tag: str, inner: str, texts: Sequence[str], attributes: Mapping[str, str] | None = None) -> Lines:
    yield 3, _tag(tag, attributes or {})
    for text in texts:
        yield 4, _element(inner, text)
    yield 3, f"</{tag}>"


def _sequence(item: Item, name: str) -> Sequence[Any]:
    value = item.metadata.get(name)
    return value if isinstance(value, (tuple, list)) else ()


def _element(tag: str, text: str, attributes: Mapping[str, str] | None = None) -> str:
    return f"{_tag(tag, attributes or {})}{escape(_allowed(text), RETURN)}</{tag}>"


def _tag(tag: str, attributes: Mapping[str, str]) -> str:
    if wrong := [name for name in attributes if not NAME.fullmatch(name)]:
        raise WriteError(f"{wrong[0]!r} cannot be the name of an XML attribute; give letters, digits and _")
    return f"<{tag}{''.join(f' {name}={quoteattr(_allowed(value), SPACES)}' for name, value in attributes.items())}>"


def _allowed(text: str) -> str:
    if found := FORBIDDEN.search(text):
        raise WriteError(f"{shown(text)} has {found[0]!a}, which XML forbids; remove the character")
    return text
