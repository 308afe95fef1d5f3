"""A writer turns an item into the text of a file format, including the text before, between and after items.

Items are written one by one, so a corpus can be larger than memory. The file is written atomically.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from structpe.errors import StructPEError
from structpe.formats.reading import Item, Skipped
from structpe.plain.options import Builder, options_of
from structpe.registry import Registry
from structpe.structure import Structure
from structpe.system.files import atomic_write

__all__ = ["WRITERS", "WriteError", "Writer", "as_text", "choose", "facts", "write", "writer"]


Text = Callable[..., str]
T = TypeVar("T", bound=Text)


class WriteError(StructPEError):
    """A structure that cannot be written in a format, or a file that cannot be written."""


@dataclass(frozen=True)
class Writer:
    """A file format that can be written.

    Attributes:
        name: its name in the registry; the reader of the same name reads what it writes.
        suffixes: the suffixes of its files, such as ``.conllu``.
        doc: a description, in one line.
        text: ``(item, **options)`` -> its text, which ends with the end of a line.
        before: text before the first item.
        between: text between two items.
        after: text after the last item.
    """

    name: str
    suffixes: tuple[str, ...]
    doc: str
    text: Text
    before: str = ""
    between: str = ""
    after: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options that ``text`` takes after the item."""
        return tuple(options_of(self.text))

    def check(self, options: Mapping[str, Any]) -> None:
        """Check options before anything is written.

        Raises:
            WriteError: an option is unknown or missing, or a value has the wrong type.
        """
        Builder(WriteError).arguments(self.text, options, f"writer {self.name!r}")


WRITERS: Registry[Writer] = Registry("structpe.formats", "writer", WriteError)
"""Every writer by its name."""


def writer(name: str, suffixes: str, before: str = "", between: str = "", after: str = "") -> Callable[[T], T]:
    """Register a function as a writer. ``suffixes`` are separated by spaces; its docstring is the description."""

    def enter(text: T) -> T:
        doc = (inspect.getdoc(text) or "").partition("\n")[0]
        WRITERS.add(name, Writer(name, tuple(suffixes.split()), doc, text, before, between, after))
        return text

    return enter


def as_text(item: Item | Structure, to: str, **options: Any) -> str:
    """The text of one item in a format.

    Args:
        item: an item or a structure.
        to: name of the writer.
        options: options of the writer.

    Raises:
        WriteError: the writer or option does not exist, or the structure cannot be written in the format.
    """
    chosen = WRITERS[to]
    chosen.check(options)
    return _text(chosen, item, options)


def write(
    items: Iterable[Item | Structure],
    path: str | Path,
    to: str | None = None,
    skip: Callable[[Skipped], object] | None = None,
    **options: Any,
) -> int:
    """Write items to a file atomically; an existing file is replaced at the end.

    Args:
        items: items or structures; they are written one by one.
        path: the file.
        to: name of the writer; None chooses by the suffix of the file.
        skip: called with each item that cannot be written, which is then skipped; None raises the first error.
        options: options of the writer.

    Returns:
        The number of written items.

    Raises:
        WriteError: the writer or option does not exist, there is no item, or an item cannot be written, for example
            because of a lone surrogate. The error has its number from 1, and no file is written.
    """
    path = Path(path)
    given: Any = items
    chosen = choose(path, to)
    chosen.check(options)
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise WriteError(f"write takes a list of items or structures, not {type(given).__name__}; write [it]")
    if path.is_dir() or not path.parent.is_dir():
        wrong = "is a folder; give a file" if path.is_dir() else f"cannot be made, as there is no folder {path.parent}"
        raise WriteError(f"the file {wrong}").at(path)
    count = 0

    def fill(hidden: Path) -> None:
        nonlocal count
        with hidden.open("w", encoding="utf-8", newline="\n") as file:
            file.write(chosen.before)
            for number, item in enumerate(items, 1):
                try:
                    text = _text(chosen, item, options)
                    if "\0" in text:
                        raise WriteError("a text has the character 0, by which readers tell other files; leave it out")
                except WriteError as error:
                    if skip is None:
                        raise error.at(f"item {number}") from None
                    skip(Skipped(_place(item, number), error.message))
                    continue
                file.write(chosen.between + text if count else text)
                count += 1
            file.write(chosen.after)
        if not count:
            raise WriteError(f"there is no item to write to {path}; give at least one")

    atomic_write(path, fill)
    return count


def _place(item: Item | Structure, number: int) -> str:
    named: Any = item.structure if isinstance(item, Item) else item
    name = named.name if isinstance(named, Structure) else ""  # anything else is refused when it is written
    return f"item {number} ({name})" if name else f"item {number}"


def _text(chosen: Writer, item: Item | Structure, options: dict[str, Any]) -> str:
    given: Any = item
    if not isinstance(given, Item | Structure):
        wrong = f"{type(given).__name__} is neither an item nor a structure"
        raise WriteError(f"{wrong}; structpe.as_structure makes structures of objects of other libraries")
    text = chosen.text(item if isinstance(item, Item) else Item(item), **options)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        wrong = f"a text has a lone surrogate ({text[error.start]!a}), which cannot be written in UTF-8; correct it"
        raise WriteError(wrong) from None
    return text


def choose(path: str | Path, name: str | None = None) -> Writer:
    """The writer of a file, by name or by suffix.

    Raises:
        WriteError: the writer does not exist, or several writers claim the suffix.
    """
    path = Path(path)
    if name is not None:
        return WRITERS[name]
    claims = [known for known in WRITERS.values() if path.suffix in known.suffixes]
    if len(claims) == 1:
        return claims[0]
    names = ", ".join(repr(known.name) for known in claims or WRITERS.values())
    problem = f"several writers write {path.suffix!r} files" if claims else f"no writer claims {path.suffix!r} files"
    raise WriteError(f"{problem}; say which with to= or --writer, one of {names}").at(path)


def facts(structure: Structure, rule: str) -> list[tuple[str, str, str]]:
    """(subject, relation, object) of each edge.

    Args:
        structure: the graph.
        rule: how the format identifies nodes, for errors.

    Raises:
        WriteError: the edges are undirected, two nodes have the same label, or a node has no edge.
    """
    if not structure.directed:
        raise WriteError(
            "the edges are undirected, but a fact leads from its subject to its object; give Structure(directed=True)"
        )
    if len(set(structure.nodes)) < structure.size:
        seen: set[str] = set()
        twice = next(label for label in structure.nodes if label in seen or seen.add(label))  # type: ignore[func-returns-value]
        raise WriteError(f"two nodes are labelled {twice!r}; {rule}, make them differ")
    if alone := set(range(structure.size)) - set(np.unique(structure.edges).tolist()):
        raise WriteError(f"node {min(alone)} ({structure.nodes[min(alone)]!r}) is in no edge; triples are edges only")
    return [
        (structure.nodes[source], structure.relation(edge), structure.nodes[target])
        for edge, (source, target) in enumerate(structure.edges.tolist())
    ]
