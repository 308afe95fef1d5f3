"""The docstring of a class with what its bases say of arguments and errors, which a family writes once."""

from __future__ import annotations

import inspect
import re

__all__ = ["inherited"]

ENTRY = re.compile(r" {4}(\S[^:]*):")
Entries = dict[str, list[str]]
"""The lines of a section by the name of the argument, or of the error."""


def inherited(cls: type) -> list[str]:
    """The lines of the docstring of a class; ``Args`` and ``Raises`` have what is said only in its bases, too."""
    taken = list(inspect.signature(cls.__init__).parameters)
    docs = [inspect.cleandoc(base.__doc__).split("\n") for base in cls.__mro__ if vars(base).get("__doc__")]
    args = {name: lines for doc in reversed(docs) for name, lines in entries(doc, "Args").items()}
    args = {name: args[name] for name in taken if name in args}
    raised = {"\n".join(lines): lines for doc in docs for lines in entries(doc, "Raises").values()}
    return with_section(with_section(docs[0], "Args", args), "Raises", raised)


def entries(lines: list[str], section: str) -> Entries:
    """The entries of a section, those of several names under each."""
    found: Entries = {}
    first, last = extent(lines, section)
    for line in lines[first + 1 : last]:
        if name := ENTRY.match(line):
            found[name[1]] = [line]
        elif line:
            found[next(reversed(found))].append(line)
    return found


def extent(lines: list[str], section: str) -> tuple[int, int]:
    """Return where a section begins and ends; if it is missing, both are the place where it belongs."""
    if f"{section}:" not in lines:
        place = lines.index("Raises:") if "Raises:" in lines else len(lines)
        return place, place
    first = lines.index(f"{section}:")
    rest = (place for place in range(first + 1, len(lines)) if lines[place] and not lines[place].startswith(" "))
    return first, next(rest, len(lines))


def with_section(lines: list[str], section: str, found: Entries) -> list[str]:
    """The lines, with these entries as the section."""
    if not found:
        return lines
    first, last = extent(lines, section)
    body = [f"{section}:", *(line for entry in found.values() for line in entry)]
    return [*"\n".join(lines[:first]).rstrip("\n").split("\n"), "", *body, "", *lines[last:]]
