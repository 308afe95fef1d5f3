"""WebNLG XML: sets of triples with sentences that express them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from structpe.errors import ReadError
from structpe.formats.reading import Item, Yielded, attempt, reader
from structpe.formats.text import shown
from structpe.formats.triples import triples
from structpe.formats.writing import WriteError, facts, writer
from structpe.formats.xml import Element, elements
from structpe.structure import Structure

__all__ = ["webnlg", "webnlg_text"]

FACTS = ("mtriple", "otriple")
LANGUAGE = "en"
"""The language of a text without one: versions 1 and 2 and the English part of 3 are in English."""


@reader("webnlg", ".xml")
def webnlg(path: Path, comment: str | None = None, lang: str | None = None) -> Iterator[Yielded]:
    """WebNLG entries, of the challenge of 2017 or versions 1 to 3: the modified triples, and all their texts.

    Labels are as in the file; :func:`structpe.transforms.texts.with_readable_labels` makes them into words.

    ``metadata`` has the attributes of the entry (``category``, ``eid``, ``size``, in version 3 ``shape`` and
    ``shape_type``) and, if the entry has them,

    - ``lexes``: for each text its attributes (``comment``, ``lid``, ``lang``) and ``text``; in the enriched corpus of
      Castro Ferreira et al. (2018) also ``template``, ``lexicalization``, ``sentences`` (the triples of each sentence,
      in their order) and ``references`` (attributes and ``text`` of each);
    - ``original``: the sets of original triples, as texts;
    - ``dbpedialinks`` and ``links``, in the Russian part of version 3: (direction, triple) of each;
    - ``entities``, in the enriched corpus: (tag, entity) of each.

    Args:
        path: an XML file.
        comment: keep only texts whose comment is this, such as ``good``; None keeps all, as the published counts do.
        lang: keep only texts in this language, such as ``ru``; None keeps all. A text without a language is in English.

    A declaration of a document type or entity raises an error: WebNLG has none, and they can fill the memory or open
    files.
    """
    for entry in elements(path, "entry"):
        eid = entry.attributes.get("eid", "")
        yield attempt(partial(_item, entry, path.name, comment, lang), eid, entry.line)


def _item(entry: Element, file: str, comment: str | None, lang: str | None) -> Item:
    # The enriched corpus calls triples of its test part original even if they are modified.
    found = [each for part in entry.children("modifiedtripleset") for each in part.parts if each.tag in FACTS]
    facts = [_fact(each) for each in found]
    if not facts:
        raise ReadError("the entry has no <mtriple> in a <modifiedtripleset>; give it one, or remove it")
    eid, size = entry.attributes.get("eid", ""), entry.attributes.get("size")
    if size is not None and size.strip() != str(len(facts)):
        raise ReadError(f"the entry has {len(facts)} triples, but its size is {shown(size)}; correct or restore it")
    lexes = tuple(
        _lex(lex)
        for lex in entry.children("lex")
        if comment in (None, lex.attributes.get("comment", "")) and lang in (None, lex.attributes.get("lang", LANGUAGE))
    )
    texts = tuple(lex["text"] for lex in lexes if lex["text"])
    return Item(triples(facts, f"{file}:{eid}"), texts, eid, {**entry.attributes, "lexes": lexes, **_beside(entry)})


def _fact(triple: Element) -> list[str]:
    fact = [part.strip() for part in triple.text.split(" | ")]
    if len(fact) != 3 or not all(fact):
        wrong = f"the triple {shown(triple.text)} is not 'subject | relation | object'"
        raise ReadError(f"{wrong}; give three texts that are not empty").at(f"line {triple.line}")
    return fact


def _lex(lex: Element) -> dict[str, Any]:
    """A text with its attributes; its words are in the element, or in a <text> in it."""
    inner = {part.tag: part.text for part in lex.parts if part.tag in ("text", "template", "lexicalization")}
    said: dict[str, Any] = {**lex.attributes, "text": lex.text, **inner}
    if sentences := list(lex.descendants("sentence")):
        said["sentences"] = tuple(tuple(each.text for each in sentence.children("striple")) for sentence in sentences)
    if references := list(lex.descendants("reference")):
        said["references"] = tuple({**each.attributes, "text": each.text} for each in references)
    return said


def _beside(entry: Element) -> dict[str, Any]:
    """Other parts of an entry, as metadata."""
    found: dict[str, tuple[Any, ...]] = {
        "original": tuple(
            tuple(each.text for each in part.parts if each.tag in FACTS) for part in entry.children("originaltripleset")
        ),
        "dbpedialinks": tuple(
            (each.attributes.get("direction", ""), each.text) for each in entry.descendants("dbpedialink")
        ),
        "links": tuple((each.attributes.get("direction", ""), each.text) for each in entry.descendants("link")),
        "entities": tuple(
            (tag.strip(), entity.strip())
            for each in entry.descendants("entity")
            for tag, _, entity in [each.text.partition(" | ")]
        ),
    }
    return {name: value for name, value in found.items() if value}


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
def webnlg_text(item: Item) -> str:
    """An entry with its triples, a fact per edge, and the item's texts.

    The metadata from the reader ``webnlg`` is written again: attributes, original triples, links, and attributes of
    texts, if the texts are unchanged. Otherwise ``eid`` is the item's id, ``size`` the number of facts, and texts are
    numbered. The reader identifies entities by their labels.

    Raises:
        WriteError: the edges are undirected, two nodes have the same label, a node has no edge, a part of a fact is
            empty, has white space at an end or contains ``|`` between spaces, or XML forbids a character.
    """
    structure = item.structure
    said = {name: str(item.metadata[name]) for name in NAMES if isinstance(item.metadata.get(name), str)}
    attributes = {"eid": item.id, **said, "size": str(len(structure.edges))}
    attributes = {name: attributes[name] for name in NAMES if name in attributes}
    return "".join(f"{'  ' * depth}{line}\n" for depth, line in _entry(item, attributes))


Lines = Iterator[tuple[int, str]]


def _entry(item: Item, attributes: Mapping[str, str]) -> Lines:
    yield 2, _tag("entry", attributes)
    for given in _sequence(item, "original"):
        yield from _set("originaltripleset", "otriple", given)
    yield from _set("modifiedtripleset", "mtriple", _facts(item.structure))
    for number, lex in enumerate(_lexes(item), 1):
        yield from _lex_lines(lex, number)
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


def _lex_lines(lex: Mapping[str, Any], number: int) -> Lines:
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
    from xml.sax.saxutils import escape  # which imports a client of HTTP

    return f"{_tag(tag, attributes or {})}{escape(_allowed(text), RETURN)}</{tag}>"


def _tag(tag: str, attributes: Mapping[str, str]) -> str:
    if wrong := [name for name in attributes if not NAME.fullmatch(name)]:
        raise WriteError(f"{wrong[0]!r} cannot be the name of an XML attribute; give letters, digits and _")
    from xml.sax.saxutils import quoteattr

    return f"<{tag}{''.join(f' {name}={quoteattr(_allowed(value), SPACES)}' for name, value in attributes.items())}>"


def _allowed(text: str) -> str:
    if found := FORBIDDEN.search(text):
        raise WriteError(f"{shown(text)} has {found[0]!a}, which XML forbids; remove the character")
    return text
