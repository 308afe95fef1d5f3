"""``structpe positions``: the position models as Table 1 of the survey, with filters; and the encodings."""

from __future__ import annotations

import difflib
import json
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from structpe.cli.base import Command, UsageError, print_table, refuse_idle
from structpe.errors import StructPEError

if TYPE_CHECKING:
    from structpe.cli.rows import ModelRow

__all__ = ["PositionsCommand"]


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


def _add_filters(parser: ArgumentParser) -> None:
    """Declare a search word and a filter for each cell of Table 1."""
    parser.add_argument("words", metavar="WORD", nargs="*", help="only rows that have each word in name, title or key")
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
    return sorted(kept, key=lambda row: (row.place, row.name))


def _refuse_filters(given: Namespace) -> None:
    """Check that no filter of position models is given.

    Raises:
        UsageError: a filter is given.
    """
    names = (*CHOICES, *FLAGS)
    if filters := sorted(word for word in given.named if word.removeprefix("--").removeprefix("no-") in names):
        raise UsageError(f"{filters[0]} is a filter of position models; leave it out with --encodings, or give a word")


def _found(words: Sequence[str], *texts: str) -> bool:
    """Whether each word is in one of the texts, ignoring case."""
    return all(any(word.lower() in text.lower() for text in texts) for word in words)


def _passes(row: ModelRow, given: Namespace) -> bool:
    """Whether a model passes the filters; without claims it passes only those of decoding."""
    had: dict[str, Any] = dict.fromkeys((*CHOICES, *FLAGS)) | {"decodes": row.decodes}
    if row.spec is not None:
        had |= {name: getattr(row.spec.cells, name) for name in ("reference", "injection", *CLAIMS)}
        had |= {"structure": row.spec.structure, "injection": had["injection"].replace("-", "none")}
    several = all(not getattr(given, name) or had[name] in getattr(given, name) for name in CHOICES)
    return several and all(getattr(given, name) in (None, had[name]) for name in FLAGS)


def _has_words(row: ModelRow, words: Sequence[str]) -> bool:
    claims = [] if row.spec is None else [row.spec.cite, row.spec.structure]
    return _found(words, row.name, row.about, *claims)


def _nothing(given: Namespace, names: Sequence[str]) -> str:
    flags = [f"--{'' if getattr(given, n) else 'no-'}{n}" for n in FLAGS if getattr(given, n) is not None]
    choices = [f"--{name} {each}" for name in CHOICES for each in getattr(given, name)]
    wanted = " ".join([*map(repr, given.words), *choices, *flags])
    near = difflib.get_close_matches(given.words[0], names, n=1) if given.words else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"no position model has {wanted}.{hint} Leave out a word or a filter; 'structpe positions' lists all"


class PositionsCommand(Command, name="positions"):
    """List position models as in Table 1 of the survey, or encodings.

    Cells are claims about the models of structpe, and tests measure each of them. If the survey's Table 1 has another
    cell, it is in brackets. Ref: reference point, A absolute, R relative, B both. Inj: added to the input (APE), to
    attention (MAM), both, or neither (-). L: learnable. Rec: recurring at each layer. U: unbound. #Param: our formula
    in d width, h heads, l layers, dh = d/h and the model's own sizes, then the number of parameters at the given sizes,
    then the survey's formula in its letters and its value, with t = 512 units, n = 30,000 words, D_max = 8, K = 5, d_r
    = 64, d1 = d/2 and t1 = 16.
    """

    example = (
        "structpe positions --width 64 --heads 4 --layers 2\n"
        "structpe positions --structure tree --structure graph --injection APE --unbound\n"
        "structpe positions rotary --decodes --json\n"
        "structpe positions --encodings walk"
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--width", metavar="D", type=int, default=512, help="hidden size, d (default 512)")
        parser.add_argument("--heads", metavar="H", type=int, default=8, help="heads, h (default 8)")
        parser.add_argument("--layers", metavar="L", type=int, default=6, help="layers, l (default 6)")
        parser.add_argument("--notes", action="store_true", help="say why cells differ from the survey's")
        parser.add_argument("--encodings", action="store_true", help="list encodings instead")
        parser.add_argument("--json", action="store_true", help="print everything as JSON")
        _add_filters(parser)

    def run(self, given: Namespace) -> None:
        if given.encodings:
            _refuse_filters(given)
            refuse_idle(given, "on encodings", "--width", "--heads", "--layers", "--notes")
            _show_encodings(given.words, given.json)
            return
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
    header = ["structure", "model", "Ref", "Inj", "L", "Rec", "U", "#Param", count, "survey's #Param"]
    print_table(header, [row.cells() for row in rows], numeric=[count], long=["#Param", "survey's #Param"])
    print("\nIn brackets: the cell of the survey's Table 1, if it differs.")
    for row in rows:
        if row.problem:
            print(f"{row.name}: {row.problem}")
        elif row.spec is None:
            print(f"{row.name}: its class has no Spec, so it has no row of Table 1")
        elif notes and row.spec.note:
            print(f"{row.name}: {row.spec.note}")


def _show_encodings(words: Sequence[str], as_json: bool) -> None:
    from structpe.cli.rows import EncodingRow, encodings

    rows = [row for row in encodings() if _found(words, row.encoding, row.about, row.formula)]
    if not rows and not as_json:
        raise StructPEError(f"no encoding has {' and '.join(map(repr, words))} in its name or text; leave out a word")
    if as_json:
        print(json.dumps([row._asdict() for row in rows], indent=2, ensure_ascii=False))
    else:
        short = [[row.encoding, row.per, ", ".join(row.options), row.about] for row in rows]
        print_table(EncodingRow._fields[:4], short, long=EncodingRow._fields[2:4])
