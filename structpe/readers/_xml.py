"""Elements of an XML file, piece by piece, without declarations, and without end in no direction.

Expat and not ElementTree, whose errors alone have line numbers, and whose C parser cannot be told to refuse
declarations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from structpe.errors import ReadError
from structpe.readers import _text
from structpe.readers._kinds import HEAD, check_text

__all__ = ["Element", "elements"]

CHUNK = 1 << 16
DEEPEST = 100


@dataclass(eq=False)
class Element:
    """An element with all that is in it.

    Attributes:
        tag: its name.
        attributes: its attributes, in the order of the file.
        line: where it ends; that of the outermost where it begins.
        text: the text right in it, without white space around.
        parts: the elements in it.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    text: str = ""
    parts: list[Element] = field(default_factory=list)

    def all(self, tag: str) -> Iterator[Element]:
        """The parts of this name, at any depth, in the order of the file."""
        for part in self.parts:
            if part.tag == tag:
                yield part
            yield from part.all(tag)

    def own(self, tag: str) -> list[Element]:
        """The parts of this name right in it."""
        return [part for part in self.parts if part.tag == tag]


def elements(path: Path, tag: str) -> Iterator[Element]:
    """The elements of a name as the file is read.

    Raises:
        ReadError: the file is not well-formed, declares a document type or entities, nests too deeply, or has an
            element, or a tag, of more than 64 MiB.
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
        """The elements that are open, from the one asked for, and the pieces of their texts."""
        self.done: list[Element] = []
        self.depth = self.size = self.fed = 0

    def feed(self, chunk: bytes, last: bool) -> None:
        """Parse a piece of the file; ``last`` says that it ends here."""
        self.fed += len(chunk)
        try:
            self.parser.Parse(chunk, last)
        except expat.ExpatError as error:
            wrong = f"not well-formed XML: {expat.ErrorString(error.code)}; mend or restore the file"
            raise ReadError(wrong).at(f"line {error.lineno}") from None
        except (LookupError, ValueError) as error:
            raise ReadError(f"the XML declares an encoding that cannot be read: {error}; save it as UTF-8") from None
        # The parser keeps what it has not understood yet, such as a tag that does not end.
        if self.fed - self.parser.CurrentByteIndex > _text.LIMIT:
            raise _text.too_long("a piece of the XML").at(f"line {self.parser.CurrentLineNumber}")

    def take(self) -> list[Element]:
        """The elements that are complete since the last call."""
        done, self.done = self.done, []
        return done

    def refuse(self, name: str, *_: object) -> None:
        wrong = f"the XML declares a document type or entity ({name!r}), which is refused; remove the declaration"
        raise ReadError(wrong).at(f"line {self.parser.CurrentLineNumber}")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            wrong = f"elements are nested more than {DEEPEST} deep; check that the file is what the reader reads"
            raise ReadError(wrong).at(f"line {self.parser.CurrentLineNumber}")
        if self.above or tag == self.tag:
            self.count(len(tag) + sum(len(key) + len(value) for key, value in attributes.items()))
            self.above.append((Element(tag, attributes, self.parser.CurrentLineNumber), []))

    def characters(self, text: str) -> None:
        if self.above:
            self.count(len(text))
            self.above[-1][1].append(text)

    def count(self, letters: int) -> None:
        """Keep an element that does not end from filling the memory."""
        self.size += letters
        if self.size > _text.LIMIT:
            raise _text.too_long(f"the <{self.tag}>").at(f"line {self.above[0][0].line if self.above else 0}")

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
