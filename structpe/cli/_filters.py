"""Filters for the rows of Table 1; a row must pass all of them."""

from __future__ import annotations

import difflib
import inspect
import re
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from structpe.cli.base import UsageError
from structpe.errors import StructPEError

if TYPE_CHECKING:
    from structpe.positions import Spec

__all__ = ["STRUCTURES", "about", "add_filters", "chosen", "formula", "found", "refuse_filters"]

ROLE = re.compile(r":\w+:`~?([^`]*)`")
"""A cross-reference of the docs, :class:`Name`; a terminal shows the name."""


class Shown(Protocol):
    """The part of a row that filters and sorting use."""

    @property
    def name(self) -> str:
        """Name of the model."""

    @property
    def decodes(self) -> bool | None:
        """Whether a decoder can use it."""

    @property
    def place(self) -> int:
        """Index of its structure among all kinds."""


T = TypeVar("T", bound=Shown)

STRUCTURES = ("sequence", "grid", "tree", "graph")
CHOICES = {
    "structure": (STRUCTURES, "made for these structures"),
    "injection": (("APE", "MAM", "both", "none"), "information that enters here"),
    "reference": (("A", "R", "B"), "positions that are absolute, relative or both"),
}
CLAIMS = ("learnable", "recurring", "unbound")
FLAGS = {
    "learnable": "numbers that are learned",
    "recurring": "information that enters at each layer",
    "unbound": "any length of input",
    "decodes": "use in a decoder, which generates unit by unit",
}


def add_filters(parser: ArgumentParser) -> None:
    """Declare a search word and a filter for each cell of Table 1."""
    parser.add_argument("words", metavar="WORD", nargs="*", help="only rows that have each word in name, title or key")
    group = parser.add_argument_group("filters", "a row must pass all that are given; --no-... negates one")
    for name, (choices, about) in CHOICES.items():
        group.add_argument(
            f"--{name}", choices=choices, action="append", default=[], help=f"{about}; given twice, either"
        )
    for name, about in FLAGS.items():
        group.add_argument(f"--{name}", action=BooleanOptionalAction, help=about)


def chosen(given: Namespace, measured: Callable[[str], T]) -> list[T]:
    """The rows that pass the filters. Models are built only if they pass the filters of their class.

    Args:
        given: the arguments.
        measured: name -> row.

    Raises:
        StructPEError: no row passes; with ``--json``, the list is empty instead.
    """
    from structpe.positions import MODELS

    claimed = [name for name in MODELS if _passes(_spec(name), given) and _has_words(name, given.words)]
    rows = [measured(name) for name in claimed]
    kept = [row for row in rows if given.decodes in (None, row.decodes)]
    if not kept and not given.json:
        raise StructPEError(_nothing(given, list(MODELS)))
    return sorted(kept, key=lambda row: (row.place, row.name))


def refuse_filters(given: Namespace) -> None:
    """Check that no filter is given, since filters are for position models.

    Raises:
        UsageError: a filter is given.
    """
    names = (*CHOICES, *FLAGS)
    if filters := sorted(word for word in given.named if word.removeprefix("--").removeprefix("no-") in names):
        raise UsageError(f"{filters[0]} is a filter of position models; leave it out with --encodings, or give a word")


def found(words: Sequence[str], *texts: str) -> bool:
    """Whether each word is in one of the texts, ignoring case."""
    return all(any(word.lower() in text.lower() for text in texts) for word in words)


def about(cls: type) -> str:
    """The title of a position model or an encoding: the first paragraph of its docstring, on one line."""
    return _paragraph(cls, 0).rstrip(".")


def formula(cls: type) -> str:
    """The formula of a position model or an encoding: the second paragraph of its docstring, on one line."""
    return _paragraph(cls, 1)


def _paragraph(cls: type, number: int) -> str:
    paragraphs = (inspect.getdoc(cls) or "").split("\n\n")
    return ROLE.sub(r"\1", paragraphs[number].replace("\n", " ")) if number < len(paragraphs) else ""


def _passes(spec: Spec | None, given: Namespace) -> bool:
    """Whether the claims of a model pass the filters; a model without claims passes if there are no filters."""
    had: dict[str, Any] = dict.fromkeys((*CHOICES, *CLAIMS))
    if spec is not None:
        had = {name: getattr(spec.cells, name) for name in ("reference", "injection", *CLAIMS)}
        had |= {"structure": spec.structure, "injection": had["injection"].replace("-", "none")}
    several = all(not getattr(given, name) or had[name] in getattr(given, name) for name in CHOICES)
    return several and all(getattr(given, name) in (None, had[name]) for name in CLAIMS)


def _spec(name: str) -> Spec | None:
    from structpe.positions import MODELS
    from structpe.positions.base import spec_of

    return spec_of(MODELS[name])


def _has_words(name: str, words: Sequence[str]) -> bool:
    from structpe.positions import MODELS

    spec = _spec(name)
    claims = [] if spec is None else [spec.cite, spec.structure]
    return found(words, name, about(MODELS[name]), *claims)


def _nothing(given: Namespace, names: Sequence[str]) -> str:
    flags = [f"--{'' if getattr(given, n) else 'no-'}{n}" for n in FLAGS if getattr(given, n) is not None]
    choices = [f"--{name} {each}" for name in CHOICES for each in getattr(given, name)]
    wanted = " ".join([*map(repr, given.words), *choices, *flags])
    near = difflib.get_close_matches(given.words[0], names, n=1) if given.words else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"no position model has {wanted}.{hint} Leave out a word or a filter; 'structpe positions' lists all"
