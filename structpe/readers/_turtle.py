"""Detect truncated files in Turtle, TriG and N3, for which rdflib only says that an index is out of range."""

from __future__ import annotations

import re
from collections import deque

from structpe.errors import ReadError
from structpe.readers._text import not_utf8, shown

__all__ = ["check_whole"]

TOKEN = re.compile(
    r"""
    \"{3} (?: [^"\\] | \\. | "(?!"") )* \"{3} | '{3} (?: [^'\\] | \\. | '(?!'') )* '{3}   # long strings
    | " (?: [^"\\\n] | \\. )* " | ' (?: [^'\\\n] | \\. )* '
    | < [^<>\s]* > | \# [^\n]* | (?: \\. | [^\s<"'\#\\] )+ | \S
    """,
    re.DOTALL | re.VERBOSE,
)
"""Tokens for finding the end; full stops in strings, IRIs and comments do not count."""
DIRECTIVE = re.compile(r"(?i)(?:prefix \S*:|base) <[^<>\s]*>")
"""A directive in the notation of SPARQL, without a full stop."""


def check_whole(content: bytes) -> None:
    """Check that the last statement is complete.

    Raises:
        ReadError: it is not, or the text is not UTF-8.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start = content.rfind(b"\n", 0, error.start) + 1
        line = content.count(b"\n", 0, start) + 1
        raise not_utf8(content[start:], error.start - start).at(f"line {line}") from None
    last = deque((found[0] for found in TOKEN.finditer(text) if not found[0].startswith("#")), maxlen=3)
    if last and not last[-1].endswith((".", "}")) and not DIRECTIVE.search(" ".join(last)):
        wrong = f"the last statement ends in {shown(last[-1])}, not in a full stop; the file is truncated, restore it"
        raise ReadError(wrong).at(f"line {text.rstrip().count(chr(10)) + 1}")
