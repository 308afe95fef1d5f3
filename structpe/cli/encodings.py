"""``structpe encodings``: the encodings, with what they have a value for and which structures they take."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from structpe.cli.base import Command, print_left_out, print_table
from structpe.errors import StructPEError

if TYPE_CHECKING:
    from structpe.cli.rows import EncodingRow

__all__ = ["EncodingsCommand"]


PER = ("unit", "listed pair", "pair")
ALSO = {"text": "sequence", "image": "grid"}
STRUCTURES = ("sequence", "text", "tree", "graph", "grid", "image")


class EncodingsCommand(Command, name="encodings"):
    """List encodings, what position models read.

    An encoding has a value for each unit, for each pair of units, or for some pairs that it lists. It takes a structure
    if it can encode a small one of this kind, with its default options, as it is: a text that is read in order, a tree
    with a root, a graph without either, an image. "structpe encode" and the option "encoding" of position models take
    its name, with options as NAME:key=value or as a mapping.
    """

    example = (
        "structpe encodings walk\n"
        "structpe encodings '*distance*' --sort cost\n"
        "structpe encodings --structure tree --per pair\n"
        "structpe encodings --structure graph --json"
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "words",
            metavar="WORD",
            nargs="*",
            help="only rows with each word in name, title or formula, or whose name fits a pattern, such as '*walk*'",
        )
        parser.add_argument(
            "--structure",
            choices=STRUCTURES,
            action="append",
            default=[],
            help="only what takes such a structure; a text is a sequence, an image a grid; given twice, both",
        )
        parser.add_argument("--per", choices=("unit", "pair"), help="only what has a value for units, or for pairs")
        parser.add_argument(
            "--sort",
            choices=("name", "cost"),
            default="name",
            help="rows by name (default), or by cost: a value per unit, per listed pair, per pair",
        )
        parser.add_argument("--json", action="store_true", help="print everything as JSON, formulas too")

    def run(self, given: Namespace) -> None:
        from structpe.cli.rows import encodings

        every = encodings()
        rows = [row for row in every if _passes(row, given)]
        if given.sort == "cost":
            rows.sort(key=lambda row: PER.index(row.per))
        if given.json:
            print(json.dumps([row._asdict() for row in rows], indent=2, ensure_ascii=False))
            return
        if not rows:
            raise StructPEError(_nothing(given))
        header = ["encoding", "per", "takes", "options", "about"]
        cells = [[row.encoding, row.per, ", ".join(row.takes), ", ".join(row.options), row.about] for row in rows]
        left_out = print_table(header, cells, long=["options", "about"], optional=["options", "takes", "per"])
        print()
        print_left_out(left_out)
        if len(rows) < len(every):
            print(f"{len(rows)} of {len(every)} encodings.")


def _passes(row: EncodingRow, given: Namespace) -> bool:
    from structpe.cli.rows import found

    taken = all(ALSO.get(each, each) in row.takes for each in given.structure)
    return (
        taken and given.per in (None, row.per.split()[-1]) and found(given.words, row.encoding, row.about, row.formula)
    )


def _nothing(given: Any) -> str:
    wanted = [*map(repr, given.words), *(f"--structure {each}" for each in given.structure)]
    wanted += [f"--per {given.per}"] if given.per else []
    return (
        f"no encoding has {' and '.join(wanted)} in its name or text; leave out a word or an option; 'structpe "
        f"encodings' lists all"
    )
