"""Terms of RDF, and lines of N-Triples and N-Quads (W3C, RDF 1.1)."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple
from urllib.parse import unquote

from structpe.errors import ReadError
from structpe.readers._text import shown

__all__ = ["Names", "Term", "statement", "term"]

Names = Literal["local", "full", "terms"]

_IRI = r"<((?:[^\x00-\x20<>\"{}|^`\\]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*)>"
_BLANK = r"_:([^\W.-](?:[\w.·-]*[\w·-])?)"
_TEXT = r'"((?:[^"\\\n\r]|\\[tbnrf"\'\\]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*)"'
_TERM = re.compile(rf"{_IRI}|{_BLANK}|{_TEXT}(?:@([a-zA-Z]+(?:-[a-zA-Z0-9]+)*)|\^\^{_IRI})?")
_GAP = re.compile(r"[ \t]*")
_END = re.compile(r"[ \t]*\.[ \t]*(?:#.*)?\Z")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_LETTERS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_QUOTED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
STRING = "http://www.w3.org/2001/XMLSchema#string"


class Term(NamedTuple):
    """A term of a triple.

    Attributes:
        kind: ``iri``, ``blank`` or ``literal``.
        text: the IRI, the name of the blank node, or the text of the literal.
        language: language of a literal, such as ``cs``; empty without a language.
        datatype: IRI of the type of a literal; empty for plain strings and texts with a language.
    """

    kind: Literal["iri", "blank", "literal"]
    text: str
    language: str = ""
    datatype: str = ""

    def label(self, names: Names) -> str:
        """The label of a node or edge of this term.

        ``terms`` is its notation in N-Triples, which is lossless; ``full`` leaves out brackets and quotes; ``local`` is
        the part after the last ``#``, ``/`` or ``:`` of an IRI, if it is not empty.
        """
        if names == "terms":
            return self.notation()
        if self.kind == "blank":
            return f"_:{self.text}"
        if self.kind == "literal" or names == "full":
            return self.text
        last = re.split(r"[#/:]", self.text.rstrip("#/"))[-1]
        return unquote(last) or self.text

    def notation(self) -> str:
        """The notation in N-Triples."""
        if self.kind == "blank":
            return f"_:{self.text}"
        if self.kind == "iri":
            return f"<{_escaped_iri(self.text)}>"
        text = "".join(_QUOTED.get(letter) or _written(letter) for letter in self.text)
        kind = f"@{self.language}" if self.language else f"^^<{_escaped_iri(self.datatype)}>" if self.datatype else ""
        return f'"{text}"{kind}'


def term(text: str) -> Term | None:
    """The term with this notation; None if it is not one."""
    found = _TERM.fullmatch(text)
    return None if found is None else _made(found)


def statement(line: str) -> tuple[Term, ...] | None:
    """Subject, predicate and object of a line, and the name of a graph, if any; None for a comment or a blank line.

    Raises:
        ReadError: the line is not a statement.
    """
    at = _skip(line, 0)
    if at == len(line) or line[at] == "#":
        return None
    terms: list[Term] = []
    while len(terms) < 4 and (found := _TERM.match(line, at)):
        terms.append(_made(found))
        at = _skip(line, found.end())
    if len(terms) < 3 or not _END.match(line, at):
        raise ReadError(
            f"{shown(line)} is not a statement of N-Triples at column {at + 1}; write <subject> <predicate> <object> . "
            'with IRIs in full, _:names and "texts"'
        )
    for found_term, (place, kinds) in zip(terms, PLACES.items(), strict=False):
        if found_term.kind not in kinds:
            raise ReadError(f"the {place} {shown(found_term.notation())} is a {found_term.kind}; RDF forbids it there")
    return tuple(terms)


PLACES = {
    "subject": ("iri", "blank"),
    "predicate": ("iri",),
    "object": ("iri", "blank", "literal"),
    "graph": ("iri", "blank"),
}
"""The kinds of terms that are allowed in each place of a statement."""


def _made(found: re.Match[str]) -> Term:
    iri, blank, text, language, datatype = found.groups()
    if iri is not None:
        return Term("iri", _unescaped(iri))
    if blank is not None:
        return Term("blank", blank)
    kind = _unescaped(datatype or "")
    return Term("literal", _unescaped(text), (language or "").lower(), "" if kind == STRING else kind)


def _skip(line: str, at: int) -> int:
    found = _GAP.match(line, at)
    return at if found is None else found.end()


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_letter, text) if "\\" in text else text


def _letter(found: re.Match[str]) -> str:
    short, long, letter = found.groups()
    if letter is not None:
        return _LETTERS.get(letter, letter)
    code = int(short or long, 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise ReadError(f"{found[0]} is not a character; correct it")
    return chr(code)


def _written(letter: str) -> str:
    return f"\\u{ord(letter):04X}" if letter < " " or letter in "\x7f\x85\u2028\u2029" else letter


def _escaped_iri(text: str) -> str:
    return re.sub(r"[\x00-\x20<>\"{}|^`\\]", lambda found: f"\\u{ord(found[0]):04X}", text)
