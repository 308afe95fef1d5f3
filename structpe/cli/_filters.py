"""Which rows of Table 1 are shown: filters that 142 rows need, all of which a row must pass."""

from __future__ import annotations

import difflib
import inspect
import sys
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from structpe.cli.base import UsageError
from structpe.errors import StructPEError

if TYPE_CHECKING:
    from structpe.cli.positions import Row

__all__ = ["STRUCTURES", "about", "add_filters", "chosen", "found", "refuse_filters"]

STRUCTURES = ("sequence", "grid", "tree", "graph")
CHOICES = {
    "structure": (STRUCTURES, "made for these structures"),
    "injection": (("APE", "MAM", "both", "none"), "information that enters here"),
    "reference": (("A", "R", "B"), "positions that are absolute, relative or both"),
}
FLAGS = {
    "learnable": "numbers that are learned",
    "recurring": "information that enters at each layer",
    "unbound": "any length of input",
    "decodes": "use in a decoder, which writes unit by unit",
}


def add_filters(parser: ArgumentParser) -> None:
    """Declare a search word and a filter for each cell of Table 1."""
    parser.add_argument("words", metavar="WORD", nargs="*", help="only rows that have each word in name, title or key")
    group = parser.add_argument_group("filters", "a row must pass all that are given; --no-... turns one round")
    for name, (choices, about) in CHOICES.items():
        group.add_argument(
            f"--{name}", choices=choices, action="append", default=[], help=f"{about}; given twice, either"
        )
    for name, about in FLAGS.items():
        group.add_argument(f"--{name}", action=BooleanOptionalAction, help=about)


def chosen(rows: Sequence[Row], given: Namespace) -> list[Row]:
    """The rows that pass the filters.

    Raises:
        StructPEError: none does, and a table is asked for; an empty list is an answer in JSON.
    """
    kept = [row for row in rows if all(_passes(row, given)) and found(given.words, row.name, *_texts(row))]
    if not kept and not given.json:
        raise StructPEError(_nothing("position model", given, [row.name for row in rows]))
    return kept


def refuse_filters(given: Namespace) -> None:
    """Say that filters are of position models.

    Raises:
        UsageError: one is given.
    """
    if said := [name for name in (*CHOICES, *FLAGS) if getattr(given, name) not in (None, [])]:
        raise UsageError(f"--{said[0]} is a filter of position models; leave it out with --encodings, or give a word")


def found(words: Sequence[str], *texts: str) -> bool:
    """Whether each word is in one of the texts, in whatever case."""
    return all(any(word.lower() in text.lower() for text in texts) for word in words)


def about(module: str) -> str:
    """The first line of the file that a model is written in."""
    return (inspect.getdoc(sys.modules[module]) or "").partition("\n")[0].rstrip(".")


def _passes(row: Row, given: Namespace) -> list[bool]:
    cells = row.spec.cells if row.spec is not None else None
    had: dict[str, Any] = {"structure": row.spec.structure if row.spec is not None else None, "decodes": row.decodes}
    had |= {name: getattr(cells, name, None) for name in ("reference", "learnable", "recurring", "unbound")}
    had["injection"] = "none" if cells is not None and cells.injection == "-" else getattr(cells, "injection", None)
    several = [not getattr(given, name) or had[name] in getattr(given, name) for name in CHOICES]
    return several + [getattr(given, name) in (None, had[name]) for name in FLAGS]


def _texts(row: Row) -> list[str]:
    return [row.about, *([] if row.spec is None else [row.spec.cite, row.spec.structure])]


def _nothing(what: str, given: Namespace, names: Sequence[str]) -> str:
    flags = [f"--{'' if getattr(given, n) else 'no-'}{n}" for n in FLAGS if getattr(given, n) is not None]
    choices = [f"--{name} {each}" for name in CHOICES for each in getattr(given, name)]
    asked = " ".join([*map(repr, given.words), *choices, *flags])
    near = difflib.get_close_matches(given.words[0], names, n=1) if given.words else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"no {what} has {asked}.{hint} Leave out a word or a filter; 'structpe positions' lists all"
