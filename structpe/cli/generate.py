"""``structpe generate``: write a text for each structure of a file."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from structpe.cli.base import Command

if TYPE_CHECKING:
    from structpe.nn.search import SearchConfig

__all__ = ["Generate", "chosen_search", "generation_arguments"]


class Generate(Command, name="generate"):
    """Write a text for each structure of a file with a trained model.

    Texts come one per line, in the order of the file; with --json, one object per line, with id and references.
    """

    example = "structpe generate runs/amr datasets/amr_sample/test.txt --reader amr --beam 10 --out texts.txt"

    def arguments(self, parser: ArgumentParser) -> None:
        generation_arguments(parser)
        parser.add_argument("--out", metavar="FILE", type=Path, help="where to write; standard output by default")
        parser.add_argument("--json", action="store_true", help="one JSON object per line: id, text, references")

    def run(self, given: Namespace) -> None:
        with _output(given.out) as out:
            for each in generated(given):
                line = " ".join(each.text.split())
                if given.json:
                    line = json.dumps(
                        {"id": each.id, "text": each.text, "references": list(each.references)}, ensure_ascii=False
                    )
                print(line, file=out)


def generation_arguments(parser: ArgumentParser) -> None:
    """What a command takes that generates: run, file, reader, and each field of the search."""
    parser.add_argument("run", metavar="RUN", type=Path, help="folder of a trained model")
    parser.add_argument("file", metavar="FILE", type=Path, help="file or folder with structures")
    parser.add_argument("--reader", metavar="NAME", help="format of the file; by default its suffix tells")
    parser.add_argument("--on-error", choices=("raise", "skip"), default="raise", help="what to do with a bad item")
    search = parser.add_argument_group("search", "by default as the run was configured")
    search.add_argument("--beam", metavar="N", type=int, help="texts kept at each step; 1 is greedy")
    search.add_argument("--length-penalty", metavar="A", type=float, help="0 prefers short texts, larger longer ones")
    search.add_argument("--longest", metavar="N", type=int, help="texts end here at the latest, in units")


def generated(given: Namespace) -> Iterator[Any]:
    """The texts that the arguments ask for."""
    from structpe.tasks.graph_to_text.generate import generate

    return generate(given.run, given.file, chosen_search(given), reader=given.reader, on_error=given.on_error)


def chosen_search(given: Namespace) -> SearchConfig | None:
    """The search that the arguments ask for; None where they say nothing."""
    chosen = {
        name: value for name in ("beam", "length_penalty", "longest") if (value := getattr(given, name)) is not None
    }
    if not chosen:
        return None
    from structpe.nn.search import SearchConfig

    return SearchConfig(**chosen)


@contextmanager
def _output(path: Path | None) -> Iterator[TextIO]:
    """A file that has its name only when it is complete, or standard output."""
    if path is None:
        yield sys.stdout
        return
    partial = path.with_name(path.name + ".tmp")
    with partial.open("w", encoding="utf-8") as out:
        yield out
    os.replace(partial, path)
