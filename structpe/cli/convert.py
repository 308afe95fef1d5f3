"""``structpe convert``: from one file format to another."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structpe.cli._progress import progress_bar
from structpe.cli.base import Command, UsageError
from structpe.errors import ConfigError
from structpe.printing import printable

if TYPE_CHECKING:
    from structpe.readers import Skipped

__all__ = ["Convert"]


class Convert(Command, name="convert"):
    """Bring the structures of a file into another format.

    Items are read and written one by one, so that files may be larger than the memory. OUT gets its name when it is
    whole; where nothing can be written, a file of that name stays as it was. What the other format cannot say is an
    error; --on-error skip leaves such items out, and bad items of the file too, and reports them.
    """

    example = (
        "structpe convert datasets/kg_sample/test.xml facts.amr\n"
        "structpe convert train.conllu train.amr --on-error skip\n"
        "structpe convert trees.txt trees.ptb --reader ptb --option traces=drop\n"
        "structpe convert treebank/ treebank.conllu --reader conllu --option graph=enhanced"
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("source", metavar="FILE", type=Path, help="file or folder with structures")
        parser.add_argument("target", metavar="OUT", type=Path, help="file to be written")
        parser.add_argument("--reader", metavar="NAME", help="format of the file; by default its suffix tells")
        parser.add_argument("--writer", metavar="NAME", help="format of OUT; by default its suffix tells")
        parser.add_argument("--on-error", choices=("raise", "skip"), default="raise", help="what to do with a bad item")
        parser.add_argument(
            "--option",
            metavar="KEY=VALUE",
            dest="options",
            action="append",
            default=[],
            help="option of the reader or writer, whichever has it, or of both; may be given several times",
        )

    def run(self, given: Namespace) -> None:
        from structpe.readers.base import choose, stream
        from structpe.writers.base import choose as choose_writer
        from structpe.writers.base import write

        reader, writer = choose(given.source, given.reader), choose_writer(given.target, given.writer)
        options = _options(given.options)
        reading = {name: value for name, value in options.items() if name in reader.options}
        writing = {name: value for name, value in options.items() if name in writer.options}
        if unknown := [name for name in options if name not in reading and name not in writing]:
            raise _unknown(unknown[0], reader, writer)
        skipped = _Report()
        skip = skipped.add if given.on_error == "skip" else None
        count = 0
        try:
            with progress_bar("converting") as tell:
                items = stream(given.source, given.reader, skip, tell, **reading)
                count = write(items, given.target, given.writer, skip, **writing)
        finally:
            if skipped.count:
                print(skipped.text(count), file=sys.stderr)
        print(printable(f"{given.target}: {count} items, written by {writer.name!r}"))


class _Report:
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

    def text(self, written: int) -> str:
        """The report, where so many others were written."""
        from structpe.readers.base import skip_report

        return skip_report(self.first, self.count, self.count + written)


def _options(given: Sequence[str]) -> dict[str, Any]:
    from structpe.plain import from_yaml

    options: dict[str, Any] = {}
    for option in given:
        name, equals, value = option.partition("=")
        if not name or not equals:
            raise UsageError(f"--option {option!r} is not of the form KEY=VALUE")
        try:
            options[name.replace("-", "_")] = from_yaml(value, "the value")
        except ConfigError as error:
            raise UsageError(f"--option {option!r} cannot be read: {error}") from None
    return options


def _unknown(name: str, reader: Any, writer: Any) -> UsageError:
    has = "; ".join(
        f"{what} {known.name!r} has {', '.join(known.options) or 'none'}"
        for what, known in (("reader", reader), ("writer", writer))
    )
    return UsageError(f"there is no option {name!r} of the reader or the writer: {has}")
