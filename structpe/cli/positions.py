"""``structpe positions``: the position models as Table 1 of the survey, with filters."""

from __future__ import annotations

import difflib
import json
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from structpe.cli.base import Command, print_left_out, print_table, print_text, refuse_idle, room
from structpe.errors import StructPEError

if TYPE_CHECKING:
    from structpe.cli.rows import ModelRow

__all__ = ["PositionsCommand"]


WIDE = 170
"""The width of a terminal from which on the table has the survey's cells."""

ALSO = {"text": "sequence", "image": "grid"}
"""Other words for structures."""
STRUCTURES = ("sequence", "text", "tree", "graph", "grid", "image")
CHOICES = {
    "structure": (STRUCTURES, "made for these structures; a text is a sequence, an image a grid"),
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


def _add_filters(parser: ArgumentParser) -> None:
    """Declare a search word and a filter for each cell of Table 1."""
    parser.add_argument(
        "words",
        metavar="WORD",
        nargs="*",
        help="only rows with each word in name, title or BibTeX key, or whose name fits a pattern, such as '*rope*'",
    )
    group = parser.add_argument_group("filters", "a row must pass all that are given; --no-... negates one")
    for name, (choices, about) in CHOICES.items():
        group.add_argument(
            f"--{name}", choices=choices, action="append", default=[], help=f"{about}; given twice, either"
        )
    for name, about in FLAGS.items():
        group.add_argument(f"--{name}", action=BooleanOptionalAction, help=about)


def _chosen(given: Namespace, rows: Sequence[ModelRow]) -> list[ModelRow]:
    """The rows that pass the filters.

    Args:
        given: the arguments.
        rows: of all models.

    Raises:
        StructPEError: no row passes; with ``--json`` the list is empty instead.
    """
    kept = [row for row in rows if _passes(row, given) and _has_words(row, given.words)]
    if not kept and not given.json:
        raise StructPEError(_nothing(given, [row.name for row in rows]))
    return sorted(kept, key=lambda row: (*SORTS[given.sort](row), row.name))


def _last(number: int | None) -> tuple[bool, int]:
    """The place of a number in a list; rows that have none come last."""
    return number is None, number or 0


SORTS: dict[str, Callable[[ModelRow], tuple[Any, ...]]] = {
    "structure": lambda row: (row.place,),
    "name": lambda row: (),
    "year": lambda row: _last(row.year),
    "cost": lambda row: _last(row.parameters),
}
"""What rows are sorted by, before their names."""


def _passes(row: ModelRow, given: Namespace) -> bool:
    """Whether a model passes the filters; without claims it passes only those of decoding."""
    had: dict[str, Any] = dict.fromkeys((*CHOICES, *FLAGS)) | {"decodes": row.decodes}
    if row.spec is not None:
        had |= {name: getattr(row.spec.cells, name) for name in ("reference", "injection", *CLAIMS)}
        had |= {"structure": row.spec.structure, "injection": had["injection"].replace("-", "none")}
    several = all(
        not (any_of := getattr(given, n)) or had[n] in (ALSO.get(each, each) for each in any_of) for n in CHOICES
    )
    return several and all(getattr(given, name) in (None, had[name]) for name in FLAGS)


def _has_words(row: ModelRow, words: Sequence[str]) -> bool:
    from structpe.cli.rows import found

    claims = [] if row.spec is None else [row.spec.cite, row.spec.structure]
    return found(words, row.name, row.about, *claims)


def _nothing(given: Namespace, names: Sequence[str]) -> str:
    flags = [f"--{'' if getattr(given, n) else 'no-'}{n}" for n in FLAGS if getattr(given, n) is not None]
    choices = [f"--{name} {each}" for name in CHOICES for each in getattr(given, name)]
    wanted = " ".join([*map(repr, given.words), *choices, *flags])
    near = difflib.get_close_matches(given.words[0], names, n=1) if given.words else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"no position model has {wanted}.{hint} Leave out a word or a filter; 'structpe positions' lists all"


class PositionsCommand(Command, name="positions"):
    """List position models, as in Table 1 of the survey.

    Cells are claims about the models of structpe, and tests measure each of them. Ref: reference point, A absolute, R
    relative, B both. Inj: added to the input (APE), to attention (MAM), both, or neither (-). L: learnable. Rec:
    recurring at each layer. U: unbound. Then the year of the source, and the number of parameters at the given sizes.
    A pipe, a wide terminal and --json also have the formula of this number, in d width, h heads, l layers, dh = d/h and
    the model's own sizes; in brackets the cell of the survey's Table 1, if it differs; and the survey's formula in its
    letters, with its value for t = 512 units, n = 30,000 words, D_max = 8, K = 5, d_r = 64, d1 = d/2 and t1 = 16.
    """

    example = (
        "structpe positions '*rope*' --sort year\n"
        "structpe positions --structure tree --structure graph --injection APE --unbound\n"
        "structpe positions --structure text --decodes --sort cost --width 64 --heads 4 --layers 2\n"
        "structpe positions rotary --json"
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--width", metavar="D", type=int, default=512, help="hidden size, d (default 512)")
        parser.add_argument("--heads", metavar="H", type=int, default=8, help="heads, h (default 8)")
        parser.add_argument("--layers", metavar="L", type=int, default=6, help="layers, l (default 6)")
        parser.add_argument("--notes", action="store_true", help="say why cells differ from the survey's")
        parser.add_argument(
            "--sort",
            choices=list(SORTS),
            default="structure",
            help="rows by structure (default) and name, by name, by year, or by cost: fewest parameters first",
        )
        parser.add_argument("--json", action="store_true", help="print everything as JSON")
        _add_filters(parser)

    def run(self, given: Namespace) -> None:
        if given.json:
            refuse_idle(given, "with --json, which has the notes", "--notes")
        from structpe.cli.rows import models

        rows = models(given.width, given.heads, given.layers)
        kept = _chosen(given, rows)
        if given.json:
            print(json.dumps([row.plain() for row in kept], indent=2, ensure_ascii=False))
            return
        _show_models(kept, f"d={given.width} h={given.heads} l={given.layers}", given.notes)
        if len(kept) < len(rows):
            print(f"{len(kept)} of {len(rows)} position models.")


def _show_models(rows: list[ModelRow], count: str, notes: bool) -> None:
    header = ["structure", "model", "Ref", "Inj", "L", "Rec", "U", "year", count, "#Param", "survey's #Param"]
    cells, wide = [row.cells() for row in rows], room() is None or (room() or 0) >= WIDE
    if not wide:
        header, cells = header[:-1], [[cell.partition(" (")[0] for cell in each[:9]] + each[9:10] for each in cells]
    left_out = print_table(header, cells, [count, "year"], ["#Param", "survey's #Param"], optional=ORDER)
    print()
    print_left_out([*left_out, *(["the survey's cells"] * (not wide))])
    if wide:
        print_text("In brackets: the cell of the survey's Table 1, if it differs.")
    for row in rows:
        if row.problem:
            print_text(f"{row.name}: {row.problem}")
        elif row.spec is None:
            print_text(f"{row.name}: its class has no Spec, so it has no row of Table 1")
        elif notes and row.spec.note:
            print_text(f"{row.name}: {row.spec.note}")


ORDER = ("survey's #Param", "#Param", "Rec", "U", "L", "Ref", "structure", "year", "Inj")
"""The columns that a narrow terminal does without, the first of them first."""
