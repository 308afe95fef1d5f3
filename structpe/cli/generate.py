"""``structpe generate``: generate a text for each structure of a file."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from structpe.cli._inputs import add_generation, generation_inputs
from structpe.cli.base import Command, UsageError, path_of
from structpe.system.progress import progress_bar

__all__ = ["GenerateCommand"]


class GenerateCommand(Command, name="generate"):
    """Generate a text for each structure of a file with a trained model.

    The output has one text per line, in the order of the file; with --json, one object per line, with id and
    references.
    """

    example = (
        "structpe generate runs/amr datasets/amr_sample/test.txt --beam 10 --out texts.txt\n"
        "structpe generate runs/kg facts.xml --reader webnlg --option lang=en --out texts.txt"
    )

    def arguments(self, parser: ArgumentParser) -> None:
        add_generation(parser)
        parser.add_argument("--out", metavar="FILE", type=path_of, help="where to write; standard output by default")
        parser.add_argument("--json", action="store_true", help="one JSON object per line: id, text, references")

    def run(self, given: Namespace) -> None:
        from structpe.tasks.runs import load

        if given.out is not None and given.out.is_dir():
            raise UsageError(f"--out {given.out} is a folder; give a file")
        items, search = generation_inputs(given)
        with progress_bar("writing") as progress, _output(given.out) as out:
            generator = load(given.run, given.device)
            for each in generator.generate(items, search, progress=progress):
                whole = {"id": each.id, "text": each.text, "references": list(each.references)}
                print(json.dumps(whole, ensure_ascii=False) if given.json else " ".join(each.text.split()), file=out)


@contextmanager
def _output(path: Path | None) -> Iterator[TextIO]:
    """The output: a file that is written atomically, or standard output."""
    if path is None:
        yield sys.stdout
        return
    from structpe.system.files import replacing

    with replacing(path) as partial, partial.open("w", encoding="utf-8") as out:
        yield out
