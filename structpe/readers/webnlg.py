"""WebNLG XML: sets of triples with sentences that express them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from structpe.errors import ReadError
from structpe.readers._text import shown
from structpe.readers._xml import Element, elements
from structpe.readers.base import Item, Yielded, attempt, reader
from structpe.readers.triples import triples

__all__ = ["webnlg"]

FACTS = ("mtriple", "otriple")
LANGUAGE = "en"
"""The language of a text without one: versions 1 and 2 and the English part of 3 are in English."""


@reader("webnlg", ".xml")
def webnlg(path: Path, comment: str | None = None, lang: str | None = None) -> Iterator[Yielded]:
    """WebNLG entries, of the challenge of 2017 or versions 1 to 3: the modified triples, and all their texts.

    Labels are as in the file; :func:`structpe.transforms.labels.with_readable_labels` makes them into words.

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
