"""``structpe encode``: encode a data set once, and store the result."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any

from structpe.cli._encodings import parse_encoding
from structpe.cli._paths import path_of
from structpe.cli._progress import progress_bar
from structpe.cli._reading import add_reading, wanted
from structpe.cli.base import Command
from structpe.printing import printable

__all__ = ["Encode", "parse_encoding"]


class Encode(Command, name="encode"):
    """Encode the structures of a file once, and store the result for training.

    An encoding is a name, a name with options (NAME:key=value,key=value), or a JSON object with "name" and options. An
    encoding that needs a vocabulary, such as labels, learns it from this file. After an interruption, the same command
    resumes; if another process encodes into the same folder, it waits.
    """

    example = (
        "structpe encode datasets/amr_sample/train.txt --reader amr --graph levi \\\n"
        "    --encoding distance:limit=8 --encoding random-walk:steps=4 --out runs/encoded\n"
        'structpe encode train.conllu --encoding \'{"name": "distance", "limit": 8}\' --out encoded\n'
        "structpe encode train.conllu --option graph=enhanced --encoding distance --out encoded"
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", type=path_of, help="file or folder with structures")
        parser.add_argument(
            "--encoding",
            metavar="NAME",
            dest="encodings",
            action="append",
            required=True,
            help="may be given several times; 'structpe positions --encodings' lists them",
        )
        parser.add_argument("--out", metavar="FOLDER", type=path_of, required=True, help="folder of the new store")
        parser.add_argument(
            "--graph",
            choices=("plain", "levi", "linear"),
            default="plain",
            help="as read, with relations as nodes, or as the token sequence of a depth-first walk",
        )
        add_reading(parser)

    def run(self, given: Namespace) -> None:
        from structpe.data.store import write
        from structpe.positions.build import build_encoding

        encodings = [build_encoding(parse_encoding(each)) for each in given.encodings]
        reading = wanted(given.file, given).read()
        form = _form(given.graph)
        structures = [form(structure) for structure in reading.structures]
        fitted = [encoding.fit(structures) for encoding in encodings]
        with progress_bar("encoding") as report:
            store = write(given.out, structures, fitted, lambda done: report(done, len(structures)), _say)
        names = ", ".join(each.name for each in store.encodings)
        print(printable(f"{given.out}: {len(store)} structures, encoded by {names}"))


def _say(line: str) -> None:
    print(f"structpe: {line}", file=sys.stderr, flush=True)


def _form(graph: str) -> Callable[[Any], Any]:
    from structpe.transforms.levi import levi
    from structpe.transforms.linearise import linearise

    return {"plain": lambda structure: structure, "levi": levi, "linear": linearise}[graph]
