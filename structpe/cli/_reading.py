"""What the commands share that read structures from a file: its format, options of the reader, bad items."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from structpe.cli.base import UsageError
from structpe.errors import ConfigError

if TYPE_CHECKING:
    from structpe.readers import Reading, Skipped

__all__ = ["Report", "Wanted", "add_reading", "check_file", "parse_options", "wanted"]


def add_reading(
    parser: ArgumentParser, reader: str = "by default its suffix tells", options: str = "option of the reader"
) -> None:
    """Declare ``--reader``, ``--option`` and ``--on-error``, as every command that reads structures has them.

    Args:
        parser: of the command.
        reader: which format is taken where none is given.
        options: whose options are meant.
    """
    add = parser.add_argument_group("reading").add_argument
    add("--reader", metavar="NAME", help=f"format of the file; {reader}")
    add("--option", metavar="KEY=VALUE", dest="options", action="append", default=[],
        help=f"{options}, such as graph=enhanced; may be given several times")  # fmt: skip
    add("--on-error", choices=("raise", "skip"), help="what to do with a bad item (default: raise)")


@dataclass(frozen=True)
class Wanted:
    """How a file is to be read.

    Attributes:
        path: a file or folder.
        reader: name of the reader; None where the suffix tells.
        on_error: what to do with bad items.
        options: of the reader.
    """

    path: Path
    reader: str | None = None
    on_error: Literal["raise", "skip"] = "raise"
    options: dict[str, Any] = field(default_factory=dict)

    def read(self) -> Reading:
        """All items; what was skipped is reported on the error stream."""
        from structpe.readers import read

        reading = read(self.path, self.reader, self.on_error, **self.options)
        if reading.skipped:
            print(reading.report(), file=sys.stderr)
        return reading


def wanted(path: Path, given: Namespace) -> Wanted:
    """How the arguments say that a file is to be read.

    Raises:
        UsageError: an option is not KEY=VALUE.
        ReadError: there is no such file, reader or option.
    """
    from structpe.readers.base import choose

    options = parse_options(given.options)
    choose(path, given.reader).check(options)
    return Wanted(path, given.reader, given.on_error or "raise", options)


def check_file(given: Namespace) -> None:
    """The options of reading, where a command takes a file or none.

    Raises:
        UsageError: there are some, and there is no file.
        ReadError: there is no such file, reader or option.
    """
    if given.file is not None:
        wanted(given.file, given)
    elif said := [name for name in ("reader", "options", "on_error") if getattr(given, name)]:
        name = {"options": "--option", "on_error": "--on-error"}.get(said[0], f"--{said[0]}")
        raise UsageError(f"{name} says how a file is read, and no file is given; give one, or leave {name} out")


def parse_options(given: Sequence[str]) -> dict[str, Any]:
    """Options by name, from how they are written on the command line: KEY=VALUE, of which the value is YAML.

    Raises:
        UsageError: one is not of that form, is given twice, or is no YAML.
    """
    from structpe.plain import from_yaml

    options: dict[str, Any] = {}
    for option in given:
        name, equals, value = option.partition("=")
        if not name or not equals:
            raise UsageError(f"--option {option!r} is not of the form KEY=VALUE")
        if (key := name.replace("-", "_")) in options:
            raise UsageError(f"--option {name} is given twice; give it once")
        try:
            options[key] = from_yaml(value, "the value")
        except ConfigError as error:
            raise UsageError(f"--option {option!r} cannot be read: {error}") from None
    return options


class Report:
    """The first items that were skipped, and how many there were: a million bad ones shall not fill the memory."""

    def __init__(self) -> None:
        self.first: list[Skipped] = []
        self.count = 0

    def add(self, skipped: Skipped) -> None:
        """Tell of an item."""
        from structpe.readers.base import SHOWN

        self.count += 1
        if len(self.first) < SHOWN:
            self.first.append(skipped)

    def text(self, good: int) -> str:
        """The report, where so many others were good."""
        from structpe.readers.base import skip_report

        return skip_report(self.first, self.count, self.count + good)
