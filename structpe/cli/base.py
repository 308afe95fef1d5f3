"""The base class of commands, and functions that they share.

Help must be fast: the module of a command imports little but the standard library, and the rest when it runs.
"""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
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
    "print_table",
    "refuse_idle",
    "seed_of",
    "with_imports",
]


_NARROWEST = 18
"""The smallest width of a folded column."""


def print_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[str] = (), long: Sequence[str] = ()
) -> None:
    """Print a table; in a pipe no line is broken, on a terminal columns are folded to its width.

    Args:
        header: the names of the columns.
        rows: cells of each row.
        numeric: names of the columns that are aligned to the right.
        long: names of the columns that are folded if the terminal is too narrow.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    lines = _folded(header, rows, numeric, long) if sys.stdout.isatty() else _plain(header, rows, numeric)
    print("\n".join(line.rstrip() for line in lines), file=unescaped(sys.stdout))


def _plain(header: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[str]) -> Iterator[str]:
    """The lines of a table whose columns are as wide as they need."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, cells)) for cells in zip(header, *rows, strict=True)]
    for number, cells in enumerate((header, *rows)):
        padded = []
        for name, cell, width in zip(header, cells, widths, strict=True):
            room = " " * (width - cell_len(cell))
            padded.append(room + cell if name in numeric else cell + room)
        yield "  ".join(padded)
        if not number:
            yield "─" * (sum(widths) + 2 * (len(widths) - 1))


def _folded(
    header: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[str], long: Sequence[str]
) -> list[str]:
    """The lines of a table on a terminal."""
    from rich import box
    from rich.console import Console, JustifyMethod
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
    widths = []
    for name, cells in zip(header, zip(*rows, strict=True), strict=True):
        widths.append(_NARROWEST if name in long else max(map(len, (name, *cells))))
        justify: JustifyMethod = "right" if name in numeric else "left"
        table.add_column(name, justify=justify, overflow="fold", min_width=widths[-1])
    for row in rows:
        table.add_row(*row)
    console = Console(markup=False, highlight=False, emoji=False)
    # A terminal that is still too narrow breaks the lines itself; rich would cut cells.
    console.width = max(console.width, sum(widths) + 2 * len(widths))
    with console.capture() as captured:  # Python prints it: a broken pipe then raises the usual error
        console.print(table)
    return captured.get().rstrip("\n").split("\n")


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


COMMANDS: Registry[type[Command]] = Registry("structpe.cli", "command", UsageError)
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
