"""``structpe encode``: encode a data set once, and store the result."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from structpe.cli._inputs import Beginning, InputFile, add_encodings, add_reading, encodings_of
from structpe.cli.base import Command, check_counts, path_of, refuse_idle
from structpe.system.printing import printable
from structpe.system.progress import progress_bar

if TYPE_CHECKING:
    from structpe.encodings.base import Encoding
    from structpe.structure import Structure

__all__ = ["EncodeCommand"]


LONGEST_OPTION = 40
"""How long the text of an option may be that is told."""

SHORT = 5.0
"""Shorter work, in seconds, is not announced."""


class EncodeCommand(Command, name="encode"):
    """Encode the structures of a file once, and store the result for training.

    An encoding is a name, a name with options (NAME:key=value,key=value), or a JSON object with "name" and options. An
    encoding that needs a vocabulary, such as labels, learns it from this file, which then has to fit into memory; all
    other encodings read the file piece by piece. After an interruption, the same command resumes; if another process
    encodes into the same folder, it waits. Before long work, it estimates the time and the size of the output from the
    first part of the file. The result does not depend on the number of processes.
    """

    example = (
        "structpe encode datasets/amr_sample/train.txt --reader amr --graph levi \\\n"
        "    --encoding distance:max_distance=8 --encoding random-walk:steps=4 --out runs/encoded\n"
        'structpe encode train.conllu --encoding \'{"name": "distance", "max_distance": 8}\' --out encoded\n'
        "structpe encode train.conllu --option graph=enhanced --encoding distance --jobs 4 --out enhanced"
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", type=path_of, help="file or folder with structures")
        add_encodings(parser, required=True)
        parser.add_argument("--out", metavar="FOLDER", type=path_of, required=True, help="folder of the new store")
        parser.add_argument(
            "--graph",
            choices=("plain", "levi", "linear"),
            default="plain",
            help="as read, with relations as nodes, or as the token sequence of a depth-first walk",
        )
        parser.add_argument(
            "--jobs", type=int, default=1, metavar="N", help="processes that read and encode (default: 1)"
        )
        parser.add_argument(
            "--scheduler", metavar="ADDRESS", help="encode on the workers of this Dask cluster, such as tcp://host:8786"
        )
        add_reading(parser)

    def run(self, given: Namespace) -> None:
        from structpe.data.store import write
        from structpe.system.workers import workers

        check_counts(jobs=given.jobs)
        if given.scheduler is not None:
            refuse_idle(given, "with --scheduler, whose cluster has its own workers", "--jobs")
        encodings, source, form = encodings_of(given), InputFile.of(given.file, given), _form(given.graph)
        with workers(given.jobs, given.scheduler) as executor, progress_bar("encoding") as report:
            structures: Iterable[Structure] = map(form, source.structures(executor))
            beginning = Beginning()
            if any(encoding.learns for encoding in encodings):
                structures = list(structures)
                encodings = [encoding.fit(structures) for encoding in encodings]
                beginning = Beginning(structures, 1.0)
            elif not given.out.exists():
                beginning, again = source.begun(form)
                if executor is None:  # workers read from the start on: how fast one process reads, they do not say
                    structures = again
            total = 0 if given.out.exists() else _forecast(beginning, encodings, given.jobs)
            store = write(given.out, structures, encodings, lambda done: report(done, total), _say, executor)
        names = ", ".join(map(_named, store.encodings))
        print(printable(f"{given.out}: {len(store)} structures, encoded by {names}"))


def _named(encoding: Encoding) -> str:
    """The name of an encoding with its options that are not the default, without long ones, such as vocabularies."""
    usual = {field.name: field.default for field in fields(encoding)}
    given = {key: value for key, value in encoding.options().items() if value != usual[key]}
    told = ", ".join(f"{key}={value!r}" for key, value in given.items() if len(repr(value)) <= LONGEST_OPTION)
    return f"{encoding.name} ({told})" if told else encoding.name


def _forecast(beginning: Beginning, encodings: Sequence[Encoding], jobs: int) -> int:
    """Estimate the number of structures from the beginning of the file, and announce long work."""
    from structpe.data.forecast import forecast

    first, times, seconds = beginning
    if not first or not times:
        return 0
    expected = forecast(first, encodings, times, seconds)
    count = round(len(first) * times)
    if expected.seconds > SHORT:
        _say(f"{'' if times == 1 else 'about '}{count:,} structures: {expected.text(jobs)}")
    return count


def _say(line: str) -> None:
    print(f"structpe: {line}", file=sys.stderr, flush=True)


def _form(graph: str) -> Callable[[Any], Any]:
    from structpe.transforms.nodes import levi
    from structpe.transforms.texts import linearise

    return {"plain": lambda structure: structure, "levi": levi, "linear": linearise}[graph]
