"""The base class of commands, and functions that they share.

Help must be fast: the module of a command imports little but the standard library, and the rest when it runs.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from abc import ABC, abstractmethod
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, ClassVar

from structpe.errors import StructPEError
from structpe.registry import Registered, Registry
from structpe.system.printing import printable, unescaped

__all__ = [
    "COMMANDS",
    "Command",
    "UsageError",
    "add_only",
    "as_overrides",
    "check_counts",
    "check_picture",
    "path_of",
    "print_left_out",
    "print_table",
    "print_text",
    "refuse_idle",
    "room",
    "seed_of",
    "with_imports",
]


_READABLE, _NARROWEST, _LEAST = 40, 18, 4
"""The width that a long column keeps before others are left out; its smallest one; the smallest one of any column."""


def room() -> int | None:
    """The width of the terminal; None if output goes to a pipe or a file."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    numeric: Sequence[str] = (),
    long: Sequence[str] = (),
    optional: Sequence[str] = (),
) -> list[str]:
    """Print a table; in a pipe each row is one line with all columns, on a terminal no line is wider than it.

    Args:
        header: the names of the columns.
        rows: cells of each row.
        numeric: names of the columns that are aligned to the right.
        long: names of the columns that are folded first if the terminal is too narrow.
        optional: names of the columns that are left out before, the first of them first.

    Returns:
        The names of the columns that were left out.
    """
    from rich.cells import cell_len

    columns = [[printable(cell) for cell in cells] for cells in zip(header, *rows, strict=True)]
    widths = {column: max(map(cell_len, cells)) for column, cells in enumerate(columns)}
    folding, given = [column for column in widths if header[column] in long], room()
    left_out = list[str]()
    if given is not None:
        readable = widths | {column: min(widths[column], _READABLE) for column in folding}
        for name in optional:
            if name in header and _total(readable) > given:
                left_out.append(name)
                del readable[header.index(name)]
        widths = {column: widths[column] for column in readable}
        _narrow(widths, [column for column in folding if column in widths], _NARROWEST, given)
        _narrow(widths, list(widths), _LEAST, given)
    right = [header[column] in numeric for column in widths]
    lines = [
        _lines(row, list(widths.values()), right) for row in zip(*(columns[column] for column in widths), strict=True)
    ]
    if given is not None and os.environ.get("TERM") != "dumb":
        lines[0] = [f"\x1b[1m{line}\x1b[0m" for line in lines[0]]
    lines.insert(1, ["─" * _total(widths)])
    print("\n".join(chain.from_iterable(lines)), file=unescaped(sys.stdout))
    return left_out


def print_text(text: str) -> None:
    """Print a line of text, broken between words where a terminal is too narrow."""
    print("\n".join(_folded(text, room() or len(text))))


def print_left_out(names: Sequence[str]) -> None:
    """Say which columns of a table a terminal was too narrow for."""
    if names:
        print_text(f"Not shown: {', '.join(names)}. A wider terminal, a pipe and --json have all columns.")


def _total(widths: Mapping[int, int]) -> int:
    """The width of a line of columns with two spaces between them."""
    return sum(widths.values()) + 2 * (len(widths) - 1)


def _narrow(widths: dict[int, int], columns: Sequence[int], least: int, given: int) -> None:
    """Make the widest of some columns narrower, one place at a time, until a line is no wider than what is given."""
    while columns and _total(widths) > given and widths[widest := max(columns, key=widths.__getitem__)] > least:
        widths[widest] -= 1


def _lines(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> list[str]:
    """The lines of a row, each cell folded to the width of its column, and aligned to the right or left."""
    from rich.cells import cell_len

    lines = []
    for parts in zip_longest(*map(_folded, row, widths), fillvalue=""):
        spaces = [" " * (width - cell_len(part)) for part, width in zip(parts, widths, strict=True)]
        placed = [space + part if r else part + space for part, space, r in zip(parts, spaces, right, strict=True)]
        lines.append("  ".join(placed).rstrip())
    return lines


def _folded(cell: str, width: int) -> list[str]:
    """The lines of a cell, broken at spaces, and within words that are wider than the column."""
    from rich.cells import cell_len

    if cell_len(cell) <= width:
        return [cell]
    lines = [""]
    for word in cell.split(" "):
        if cell_len(joined := f"{lines[-1]} {word}" if lines[-1] else word) <= width:
            lines[-1] = joined
            continue
        lines += [""] * bool(lines[-1])
        for letter in word:
            lines += [""] * (cell_len(lines[-1] + letter) > width)
            lines[-1] += letter
    return lines


class UsageError(StructPEError):
    """A command line that cannot be understood."""


def with_imports(config: Any, imports: Sequence[str]) -> Any:
    """The configuration of a training or a study, with the code that ``--import`` has named."""
    more = [each for each in imports if each not in config.imports]
    return replace(config, imports=[*config.imports, *more]) if more else config


def check_counts(**counts: int | None) -> None:
    """Check numbers of processes or threads, by argument; None if not given.

    Raises:
        UsageError: a number is less than 1, or there are too many.
    """
    from structpe.plain.options import PROCESSES

    for name, number in counts.items():
        if number is not None and number < 1:
            raise UsageError(f"--{name} is {number}; give 1 or more")
        if number is not None and number > PROCESSES:
            raise UsageError(f"--{name} is {number}; at most {PROCESSES} is allowed, give a smaller number")


def refuse_idle(given: Namespace, why: str, *options: str) -> None:
    """Check that options without effect are not given.

    Args:
        given: the arguments; ``given.named`` holds the options on the command line.
        why: when the options have no effect, for the error, such as ``with --table``.
        options: such as ``--jobs``.

    Raises:
        UsageError: an option is given.
    """
    if idle := [option for option in options if option in given.named]:
        raise UsageError(f"{idle[0]} has no effect {why}; leave it out")


COMMANDS: Registry[type[Command]] = Registry("structpe.cli", "command", UsageError, own=False)
"""Every command by its name."""


class Command(Registered, ABC):
    """Base class of commands. The docstring is the help; its first line is also shown in the list of commands."""

    registry = COMMANDS
    example: ClassVar[str]
    """Examples of command lines."""
    overrides: ClassVar[bool] = False
    """Whether it accepts undeclared options, as ``given.overrides``."""

    @abstractmethod
    def arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""

    @abstractmethod
    def run(self, given: Namespace) -> None:
        """Run the command.

        Raises:
            StructPEError: any error that the user can correct.
        """


def add_only(parser: ArgumentParser) -> None:
    """Declare ``--only``."""
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN",
                        help="runs of a study, such as 'zinc/*/rwse/seed-0'; repeatable")  # fmt: skip


def as_overrides(words: Sequence[str]) -> list[str]:
    """Convert ``--key value`` and ``--key=value`` to ``key=value``.

    Raises:
        UsageError: a word is neither key nor value, or a key is given twice.
    """
    overrides: dict[str, str] = {}
    rest = list(words)
    while rest:
        key, equals, value = rest.pop(0).partition("=")
        if not key.startswith("--"):
            raise UsageError(
                f"{key + equals + value!r} is not an option; write --key value, such as --training.steps 100"
            )
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise UsageError(f"option {key!r} has no value; write {key} VALUE")
            value = rest.pop(0)
        if key in overrides:
            raise UsageError(f"option {key!r} is given twice; give it once")
        overrides[key] = f"{key.removeprefix('--')}={value}"
    return list(overrides.values())


def path_of(text: str) -> Path:
    """Parse a path, for ``type=`` of an argument.

    Raises:
        ArgumentTypeError: it is empty, which Python takes for the current folder, or ``-``, which is not supported.
    """
    if not text.strip():
        raise ArgumentTypeError("the path is empty; give a file or folder, '.' for the current one")
    if text == "-":
        raise ArgumentTypeError("'-' is not a file, and pipes are not supported; give a file")
    return Path(text)


def seed_of(text: str) -> int:
    """Parse a seed, for ``type=`` of an argument.

    Raises:
        ArgumentTypeError: it is not an integer that PyTorch accepts.
    """
    try:
        seed = int(text)
    except ValueError:
        raise ArgumentTypeError(f"a seed is a whole number; given is {text!r}") from None
    if not 0 <= seed < 1 << 63:
        raise ArgumentTypeError(f"a seed is 0 or more and has at most 63 bits; given is {seed}")
    return seed


def check_picture(out: Path, suffixes: str) -> None:
    """Check the output file of a picture.

    Raises:
        UsageError: it has none of the suffixes, or is a folder.
    """
    if out.suffix.lower() not in re.findall(r"\.\w+", suffixes):
        raise UsageError(f"--out {out} has no known suffix; give a name that ends in {suffixes}")
    if out.is_dir():
        raise UsageError(f"--out {out} is a folder; give a file")
