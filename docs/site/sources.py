"""Sources as a person reads them: authors, title and a link, from their BibTeX entries."""

from __future__ import annotations

import re
import unicodedata

from structpe.errors import PositionError
from structpe.positions.citing import reference

__all__ = ["field", "named", "source"]

ACCENTS = {'"': "\u0308", "'": "\u0301", "`": "\u0300", "^": "\u0302", "~": "\u0303", "c": "\u0327", "v": "\u030c",
           "u": "\u0306", "H": "\u030b", "k": "\u0328", "=": "\u0304", ".": "\u0307"}  # fmt: skip
LETTERS = {"L": "Ł", "l": "ł", "o": "ø", "O": "Ø", "ss": "ß", "i": "ı", "aa": "å", "AA": "Å", "ae": "æ"}
ACCENT = re.compile(r"""\\(["'`^~=.]|[cvuHk](?=[{ ]))\s*\{?\\?([A-Za-z])\}?""")
LETTER = re.compile(r"\\(L|l|o|O|ss|i|aa|AA|ae)(?![A-Za-z])")


NAMED = re.compile(r"([A-Z][a-z]+)(?: (?:[A-Z]\.|et al\.|& [A-Z][a-z]+|and [A-Z][a-z]+))* (\d{4})")


def named(text: str) -> list[str]:
    """The keys of the sources that a docstring names by author and year and that have an entry; "survey" is one."""
    keys = [f"{name.lower()}{year}" for name, year in NAMED.findall(text)]
    return [key for key in dict.fromkeys([*keys, *(["dufter2022"] * ("survey" in text))]) if known(key)]


def known(key: str) -> bool:
    """Whether there is an entry."""
    try:
        reference(key)
    except PositionError:
        return False
    return True


def field(entry: str, name: str) -> str:
    """A field of a BibTeX entry as plain text; nothing if the entry lacks it."""
    found = re.search(rf"^\s*{name}\s*=\s*(\{{.*?\}}|\d+),?\s*$", entry, re.MULTILINE | re.DOTALL)
    return plain(found[1]) if found else ""


def plain(text: str) -> str:
    """A text without the markup of LaTeX."""
    text = ACCENT.sub(lambda accent: unicodedata.normalize("NFC", accent[2] + ACCENTS[accent[1]]), text)
    text = LETTER.sub(lambda letter: LETTERS[letter[1]], text)
    return " ".join(re.sub(r"[{}$\\]", "", text).replace("--", "–").split())


def source(cite: str) -> str:
    """Authors, title, where it was published and the year, with a link if the entry has one: a line of Markdown."""
    entry = reference(cite)
    authors = field(entry, "author").replace(" and others", " et al.").replace(" and ", ", ")
    where = field(entry, "booktitle") or field(entry, "journal").replace("CoRR", "arXiv")
    doi = field(entry, "doi")
    link = f"https://doi.org/{doi}" if doi else field(entry, "url")
    title = field(entry, "title")
    titled = f"[{title}]({link})" if link else f"*{title}*"
    return f"{authors.rstrip(chr(46))}. {titled}. {where}, {field(entry, 'year')}."
