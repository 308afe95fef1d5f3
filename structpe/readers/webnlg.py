"""WebNLG XML: sets of triples with the sentences that say them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from structpe.errors import ReadError
from structpe.readers._text import shown
from structpe.readers._xml import Element, elements
from structpe.readers.base import Item, Outcome, attempt, reader
from structpe.readers.triples import triples

__all__ = ["webnlg"]

FACTS = ("mtriple", "otriple")
LANGUAGE = "en"
"""Of a text that names none: versions 1 and 2 and the English part of 3 are in English."""


@reader("webnlg", ".xml")
def webnlg(path: Path, comment: str | None = None, lang: str | None = None) -> Iterator[Outcome]:
    """WebNLG entries, of the challenge of 2017 or versions 1 to 3: the modified triples, and all their texts.

    Labels are as the file has them; :func:`structpe.transforms.labels.with_readable_labels` makes words of them.

    ``metadata`` has the attributes of the entry (``category``, ``eid``, ``size``, in version 3 ``shape`` and
    ``shape_type``) and, where the entry has them,

    - ``lexes``: of each text its attributes (``comment``, ``lid``, ``lang``) and ``text``; in the enriched corpus of
      Castro Ferreira et al. (2018) also ``template``, ``lexicalization``, ``sentences`` (the triples of each sentence,
      in the order in which they are said) and ``references`` (attributes and ``text`` of each);
    - ``original``: the sets of original triples, each a text;
    - ``dbpedialinks`` and ``links``, of the Russian part of version 3: (direction, triple) of each;
    - ``entities``, of the enriched corpus: (tag, entity) of each.

    Args:
        path: an XML file.
        comment: keep only texts whose comment is this, such as ``good``; None keeps all, as the published counts do.
        lang: keep only texts in this language, such as ``ru``; None keeps all. A text that names none is in English.

    A document type or entity declaration is refused: WebNLG has none, and they can fill the memory or open files.
    """
    for entry in elements(path, "entry"):
        eid = entry.attributes.get("eid", "")
        yield attempt(partial(_item, entry, path.name, comment, lang), eid, entry.line)


def _item(entry: Element, file: str, comment: str | None, lang: str | None) -> Item:
    # The enriched corpus calls triples of its test part original even where they are modified.
    found = [each for part in entry.own("modifiedtripleset") for each in part.parts if each.tag in FACTS]
    facts = [_fact(each) for each in found]
    if not facts:
        raise ReadError("the entry has no <mtriple> in a <modifiedtripleset>; give it one, or remove it")
    eid, size = entry.attributes.get("eid", ""), entry.attributes.get("size")
    if size is not None and size.strip() != str(len(facts)):
        raise ReadError(f"the entry has {len(facts)} triples, but its size is {shown(size)}; mend or restore it")
    lexes = tuple(
        _lex(lex)
        for lex in entry.own("lex")
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
    """A text with what is said of it; its words stand in the element, or in a <text> in it."""
    inner = {part.tag: part.text for part in lex.parts if part.tag in ("text", "template", "lexicalization")}
    said: dict[str, Any] = {**lex.attributes, "text": lex.text, **inner}
    if sentences := list(lex.all("sentence")):
        said["sentences"] = tuple(tuple(each.text for each in sentence.own("striple")) for sentence in sentences)
    if references := list(lex.all("reference")):
        said["references"] = tuple({**each.attributes, "text": each.text} for each in references)
    return said


def _beside(entry: Element) -> dict[str, Any]:
    """What else an entry may have."""
    found: dict[str, tuple[Any, ...]] = {
        "original": tuple(
            tuple(each.text for each in part.parts if each.tag in FACTS) for part in entry.own("originaltripleset")
        ),
        "dbpedialinks": tuple((each.attributes.get("direction", ""), each.text) for each in entry.all("dbpedialink")),
        "links": tuple((each.attributes.get("direction", ""), each.text) for each in entry.all("link")),
        "entities": tuple(
            (tag.strip(), entity.strip())
            for each in entry.all("entity")
            for tag, _, entity in [each.text.partition(" | ")]
        ),
    }
    return {name: value for name, value in found.items() if value}
