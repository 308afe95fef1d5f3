"""``structpe convert``: convert a file to another format."""

from __future__ import annotations

import sys
from argparse import Action, ArgumentParser, Namespace
from typing import Any

from structpe.cli._inputs import SkipReport, add_reading, parse_options
from structpe.cli.base import Command, UsageError, path_of, print_table
from structpe.system.printing import printable
from structpe.system.progress import progress_bar

__all__ = ["ConvertCommand"]


class ConvertCommand(Command, name="convert"):
    """Convert the structures of a file to another format.

    Items are read and written one by one, so files may be larger than the memory. OUT is written atomically: if writing
    fails, an existing file is unchanged. An item that cannot be read, or cannot be written in the other format, raises
    an error; --on-error skip skips and reports such items.
    """

    example = (
        "structpe convert --formats\n"
        "structpe convert datasets/kg_sample/test.xml facts.amr\n"
        "structpe convert train.conllu train.amr --on-error skip\n"
        "structpe convert trees.txt trees.ptb --reader ptb --option traces=drop\n"
        "structpe convert treebank/ treebank.conllu --reader conllu --option graph=enhanced"
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--formats", action=_Formats, nargs=0, help="list all formats, and exit")
        parser.add_argument("source", metavar="FILE", type=path_of, help="file or folder with structures")
        parser.add_argument("target", metavar="OUT", type=path_of, help="file to be written")
        parser.add_argument("--writer", metavar="NAME", help="format of OUT; by default from its suffix")
        add_reading(parser, options="option of the reader, the writer or both")

    def run(self, given: Namespace) -> None:
        from structpe.formats.reading import choose, stream
        from structpe.formats.writing import choose as choose_writer
        from structpe.formats.writing import write

        if given.target.is_dir():
            raise UsageError(f"OUT {given.target} is a folder; give a file")
        reader, writer = choose(given.source, given.reader), choose_writer(given.target, given.writer)
        options = parse_options(given.options)
        reading = {name: value for name, value in options.items() if name in reader.options}
        writing = {name: value for name, value in options.items() if name in writer.options}
        if unknown := [name for name in options if name not in reading and name not in writing]:
            raise _unknown(unknown[0], reader, writer)
        skipped = SkipReport()
        skip = skipped.add if given.on_error == "skip" else None
        count = 0
        try:
            with progress_bar("converting") as report:
                items = stream(given.source, given.reader, skip, report, **reading)
                count = write(items, given.target, given.writer, skip, **writing)
        finally:
            if skipped.count:
                print(skipped.text(count), file=sys.stderr)
        print(printable(f"{given.target}: {count} items, written by {writer.name!r}"))


class _Formats(Action):
    """Print the formats of both registries, including those of users, and exit."""

    def __call__(self, parser: ArgumentParser, *_: Any) -> None:
        from structpe.formats import READERS, WRITERS

        rows = []
        for name in sorted({*READERS, *WRITERS}):
            known: list[Any] = [registry[name] for registry in (READERS, WRITERS) if name in registry]
            suffixes = " ".join(dict.fromkeys(suffix for each in known for suffix in each.suffixes))
            options = ", ".join(dict.fromkeys(option for each in known for option in each.options))
            reads, writes = ("yes" if name in registry else "" for registry in (READERS, WRITERS))
            rows.append((name, suffixes, reads, writes, options, known[0].doc))
        header = ("format", "suffixes", "read", "written", "options", "about")
        print_table(header, rows, long=("suffixes", "options", "about"))
        parser.exit()


def _unknown(name: str, reader: Any, writer: Any) -> UsageError:
    has = "; ".join(
        f"{what} {known.name!r} has {', '.join(known.options) or 'none'}"
        for what, known in (("reader", reader), ("writer", writer))
    )
    return UsageError(f"there is no option {name!r} of the reader or the writer: {has}")
