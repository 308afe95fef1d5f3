"""Elements of an XML file, one by one, with bounds on size and depth; declarations raise an error.

This uses expat, because ElementTree cannot refuse declarations and has line numbers in its errors only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from structpe.errors import ReadError
from structpe.formats import text as text_module
from structpe.formats.text import HEAD, check_text

__all__ = ["Element", "elements", "feed"]

CHUNK = 1 << 16
DEEPEST = 100


@dataclass(eq=False)
class Element:
    """An element and its contents.

    Attributes:
        tag: its name.
        attributes: its attributes, in the order of the file.
        line: the line where it ends; for the outermost element, where it begins.
        text: its own text, without white space at both ends.
        parts: its child elements.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    text: str = ""
    parts: list[Element] = field(default_factory=list)

    def descendants(self, tag: str) -> Iterator[Element]:
        """The descendants with this name, in the order of the file."""
        for part in self.parts:
            if part.tag == tag:
                yield part
            yield from part.descendants(tag)

    def children(self, tag: str) -> list[Element]:
        """The children with this name."""
        return [part for part in self.parts if part.tag == tag]


def elements(path: Path, tag: str) -> Iterator[Element]:
    """The elements with this name, while the file is read.

    Raises:
        ReadError: the file is not well-formed, declares a document type or entities, is nested too deeply, or has an
            element or a tag of more than 64 MiB.
    """
    builder = _Builder(tag)
    with path.open("rb") as file:
        check_text(file.peek(HEAD)[:HEAD], xml=True)
        last = False
        while not last:
            last = not (chunk := file.read(CHUNK))
            try:
                builder.feed(chunk, last)
            finally:
                yield from builder.take()


def feed(parser: expat.XMLParserType, chunk: bytes, last: bool = True) -> None:
    """Let a parser read a part of a file.

    Raises:
        ReadError: the XML is not well-formed, or its encoding is unknown.
    """
    try:
        parser.Parse(chunk, last)
    except expat.ExpatError as error:
        wrong = f"not well-formed XML: {expat.ErrorString(error.code)}; correct or restore the file"
        raise ReadError(wrong).at(f"line {error.lineno}") from None
    except (LookupError, ValueError) as error:
        raise ReadError(f"the XML declares an encoding that cannot be read: {error}; save it as UTF-8") from None


class _Builder:
    """Builds elements from the events of the parser."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self.refuse
        self.parser.EntityDeclHandler = self.refuse
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.above: list[tuple[Element, list[str]]] = []
        """The open elements, from the requested one, and the pieces of their texts."""
        self.done: list[Element] = []
        self.depth = self.size = self.fed = 0

    def feed(self, chunk: bytes, last: bool) -> None:
        """Parse a piece of the file; ``last`` for the last piece."""
        self.fed += len(chunk)
        feed(self.parser, chunk, last)
        # The parser keeps incomplete input, such as a tag that does not end.
        if self.fed - self.parser.CurrentByteIndex > text_module.LIMIT:
            raise text_module.too_long("a piece of the XML").at(f"line {self.parser.CurrentLineNumber}")

    def take(self) -> list[Element]:
        """The elements that have been completed since the last call."""
        done, self.done = self.done, []
        return done

    def refuse(self, name: str, *_: object) -> None:
        wrong = f"the XML declares a document type or entity ({name!r}), which is refused; remove the declaration"
        raise ReadError(wrong).at(f"line {self.parser.CurrentLineNumber}")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            wrong = f"elements are nested more than {DEEPEST} deep; check that the reader fits the file"
            raise ReadError(wrong).at(f"line {self.parser.CurrentLineNumber}")
        if self.above or tag == self.tag:
            self.count(len(tag) + sum(len(key) + len(value) for key, value in attributes.items()))
            self.above.append((Element(tag, attributes, self.parser.CurrentLineNumber), []))

    def characters(self, text: str) -> None:
        if self.above:
            self.count(len(text))
            self.above[-1][1].append(text)

    def count(self, letters: int) -> None:
        """Check that an element does not fill the memory."""
        self.size += letters
        if self.size > text_module.LIMIT:
            raise text_module.too_long(f"the <{self.tag}>").at(f"line {self.above[0][0].line if self.above else 0}")

    def end(self, tag: str) -> None:
        self.depth -= 1
        if not self.above:
            return
        element, pieces = self.above.pop()
        element.text = "".join(pieces).strip()
        if self.above:
            element.line = self.parser.CurrentLineNumber
            self.above[-1][0].parts.append(element)
        else:
            self.done.append(element)
            self.size = 0
