"""Which rows of Table 1 are shown: filters that 142 rows need, all of which a row must pass."""

from __future__ import annotations

import difflib
import inspect
import sys
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from structpe.cli.base import UsageError
from structpe.errors import StructPEError

if TYPE_CHECKING:
    from structpe.positions import Spec

__all__ = ["STRUCTURES", "about", "add_filters", "chosen", "found", "refuse_filters"]


class Shown(Protocol):
    """A row, as far as it is filtered and sorted."""

    @property
    def name(self) -> str:
        """Of the model."""

    @property
    def decodes(self) -> bool | None:
        """Whether a decoder may use it."""

    @property
    def place(self) -> int:
        """Of its structure among all."""


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


def chosen(given: Namespace, measured: Callable[[str], T]) -> list[T]:
    """The rows that pass the filters; only models that pass those of their class are built.

    Args:
        given: the arguments.
        measured: name -> row.

    Raises:
        StructPEError: none does, and a table is asked for; an empty list is an answer in JSON.
    """
    from structpe.positions import MODELS

    claimed = [name for name in MODELS if _passes(_spec(name), given) and _has_words(name, given.words)]
    rows = [measured(name) for name in claimed]
    kept = [row for row in rows if given.decodes in (None, row.decodes)]
    if not kept and not given.json:
        raise StructPEError(_nothing(given, list(MODELS)))
    return sorted(kept, key=lambda row: (row.place, row.name))


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


def _passes(spec: Spec | None, given: Namespace) -> bool:
    """Whether what a model claims is what is asked for; one that claims nothing passes where nothing is asked."""
    had: dict[str, Any] = dict.fromkeys((*CHOICES, *CLAIMS))
    if spec is not None:
        had = {name: getattr(spec.cells, name) for name in ("reference", "injection", *CLAIMS)}
        had |= {"structure": spec.structure, "injection": had["injection"].replace("-", "none")}
    several = all(not getattr(given, name) or had[name] in getattr(given, name) for name in CHOICES)
    return several and all(getattr(given, name) in (None, had[name]) for name in CLAIMS)


def _spec(name: str) -> Spec | None:
    from structpe.positions import MODELS
    from structpe.positions._spec import spec_of

    return spec_of(MODELS[name])


def _has_words(name: str, words: Sequence[str]) -> bool:
    from structpe.positions import MODELS

    spec = _spec(name)
    claims = [] if spec is None else [spec.cite, spec.structure]
    return found(words, name, about(MODELS[name].__module__), *claims)


def _nothing(given: Namespace, names: Sequence[str]) -> str:
    flags = [f"--{'' if getattr(given, n) else 'no-'}{n}" for n in FLAGS if getattr(given, n) is not None]
    choices = [f"--{name} {each}" for name in CHOICES for each in getattr(given, name)]
    asked = " ".join([*map(repr, given.words), *choices, *flags])
    near = difflib.get_close_matches(given.words[0], names, n=1) if given.words else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"no position model has {asked}.{hint} Leave out a word or a filter; 'structpe positions' lists all"
