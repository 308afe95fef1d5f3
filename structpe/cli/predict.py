"""``structpe predict``: predict the graphs of a file with a trained model."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from itertools import islice
from typing import TYPE_CHECKING, Any

from structpe.cli._paths import path_of
from structpe.cli._progress import progress_bar
from structpe.cli._reading import Report, add_reading, parse_options
from structpe.cli.base import Command, UsageError

if TYPE_CHECKING:
    from structpe.tasks.prediction.signature import Signature

__all__ = ["Predict"]

WINDOW = 4096
"""Graphs that are in memory at once."""


class Predict(Command, name="predict"):
    """Predict the graphs of a file, or each of their nodes, with a trained model of graphs.

    The output is a table with a row per graph, in the order of the file: its id, and what is predicted of it. A
    regression gives numbers, labels have their probabilities, classes the likeliest class and all probabilities. A
    model of nodes gives a row per node.
    """

    example = (
        "structpe predict runs/solubility new.csv --out predicted.csv\n"
        "structpe predict runs/solubility new.smi --on-error skip --out predicted.parquet"
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", metavar="RUN", type=path_of, help="folder of a trained model of graphs")
        parser.add_argument("file", metavar="FILE", type=path_of, help="file or folder with graphs")
        parser.add_argument(
            "--out", metavar="FILE", type=path_of, help="a .csv or .parquet file; CSV on standard output by default"
        )
        parser.add_argument("--device", choices=("cpu", "cuda"), help="by default a GPU, if there is one")
        add_reading(parser, "by default that of the training data, with its options")

    def run(self, given: Namespace) -> None:
        from structpe.readers import stream
        from structpe.tasks.prediction.predictor import Predictor
        from structpe.tasks.prediction.tables import SUFFIXES, table_writer
        from structpe.tasks.runs import load

        if given.out is not None and given.out.suffix not in SUFFIXES:
            raise UsageError(f"--out {given.out} is not a table; give a name that ends in {' or '.join(SUFFIXES)}")
        predictor = load(given.run, given.device)
        if not isinstance(predictor, Predictor):
            raise UsageError(f"{given.run} holds a model that writes texts; use 'structpe generate'")
        reader, options = _reading(given, predictor.signature)
        skipped, count = Report(), 0
        skip = skipped.add if given.on_error == "skip" else None
        with progress_bar("predicting") as progress, table_writer(given.out) as write:
            items = stream(given.file, reader, skip, progress, **options)
            while window := list(islice(items, WINDOW)):
                predicted = predictor.predict([item.structure for item in window])
                write(predicted.table([item.id for item in window]))
                count += len(window)
        if skipped.count:
            print(skipped.text(count), file=sys.stderr)


def _reading(given: Namespace, signature: Signature) -> tuple[str | None, dict[str, Any]]:
    """The reader and its options: those of the training data, unless arguments say otherwise."""
    own = given.reader in (None, signature.reader)
    reader = (signature.reader or None) if own else given.reader
    return reader, {**(signature.options if own else {}), **parse_options(given.options)}
