"""WebNLG XML: sets of triples with the sentences that say them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from xml.parsers import expat

from structpe.errors import ReadError
from structpe.readers._text import shown
from structpe.readers.base import Item, Outcome, attempt, reader
from structpe.readers.triples import triples

__all__ = ["webnlg"]

CHUNK = 1 << 16
TEXTS = ("mtriple", "lex")


@reader("webnlg", ".xml")
def webnlg(path: Path, comment: str | None = None) -> Iterator[Outcome]:
    """WebNLG entries, of the challenge of 2017 or version 3: the modified triples, and all their texts.

    Labels are as the file has them; :func:`structpe.transforms.labels.with_readable_labels` makes words of them.

    Args:
        path: an XML file.
        comment: keep only texts whose comment is this, such as ``good``; None keeps all, as the published counts do.

    A document type or entity declaration is refused: WebNLG has none, and they can fill the memory or open files.
    """
    for entry in _entries(path):
        eid = entry.attributes.get("eid", "")
        yield attempt(partial(_item, entry, path.name, comment), eid, entry.line)


class _Entry:
    """An ``<entry>`` in the making."""

    def __init__(self, attributes: dict[str, str], line: int) -> None:
        self.attributes, self.line = attributes, line
        self.triples: list[tuple[int, str]] = []
        self.texts: list[tuple[str, str]] = []


def _item(entry: _Entry, file: str, comment: str | None) -> Item:
    facts = []
    for line, text in entry.triples:
        fact = [part.strip() for part in text.split(" | ")]
        if len(fact) != 3 or not all(fact):
            wrong = (
                f"the triple {shown(text)} is not 'subject | relation | object'; give three texts that are not empty"
            )
            raise ReadError(wrong).at(f"line {line}")
        facts.append(fact)
    if not facts:
        raise ReadError("the entry has no <mtriple> in a <modifiedtripleset>; give it one, or remove it")
    eid = entry.attributes.get("eid", "")
    texts = tuple(text for kind, text in entry.texts if comment in (None, kind) and text)
    return Item(triples(facts, f"{file}:{eid}"), texts, eid, entry.attributes)


def _entries(path: Path) -> Iterator[_Entry]:
    """The entries as the file is read, piece by piece.

    Expat and not ElementTree, whose errors alone have line numbers, and whose C parser cannot be told to refuse
    declarations.
    """
    handler = _Handler()
    with path.open("rb") as file:
        last = False
        while not last:
            last = not (chunk := file.read(CHUNK))
            try:
                handler.feed(chunk, last)
            finally:
                yield from handler.take()


class _Handler:
    """Builds entries from the events of the parser."""

    def __init__(self) -> None:
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self.refuse
        self.parser.EntityDeclHandler = self.refuse
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.entry: _Entry | None = None
        self.done: list[_Entry] = []
        self.pieces: list[str] = []
        self.kind = ""

    def feed(self, chunk: bytes, last: bool) -> None:
        """Parse a piece of the file; ``last`` says that it ends here."""
        try:
            self.parser.Parse(chunk, last)
        except expat.ExpatError as error:
            wrong = f"not well-formed XML: {expat.ErrorString(error.code)}; mend or restore the file"
            raise ReadError(wrong).at(f"line {error.lineno}") from None
        except (LookupError, ValueError) as error:
            raise ReadError(f"the XML declares an encoding that cannot be read: {error}; save it as UTF-8") from None

    def take(self) -> list[_Entry]:
        """The entries that are complete since the last call."""
        done, self.done = self.done, []
        return done

    def refuse(self, name: str, *_: object) -> None:
        wrong = f"the XML declares a document type or entity ({name!r}), which is refused; remove the declaration"
        raise ReadError(wrong).at(f"line {self.parser.CurrentLineNumber}")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "entry":
            self.entry = _Entry(attributes, self.parser.CurrentLineNumber)
        elif tag in TEXTS:
            self.pieces, self.kind = [], attributes.get("comment", "")

    def characters(self, text: str) -> None:
        self.pieces.append(text)

    def end(self, tag: str) -> None:
        text, self.pieces = "".join(self.pieces).strip(), []
        if self.entry is None:
            return
        if tag == "mtriple":
            self.entry.triples.append((self.parser.CurrentLineNumber, text))
        elif tag == "lex":
            self.entry.texts.append((self.kind, text))
        elif tag == "entry":
            self.done.append(self.entry)
            self.entry = None
