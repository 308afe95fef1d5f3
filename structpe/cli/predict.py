"""``structpe predict``: predict the graphs of a file with a trained model."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from itertools import islice

from structpe.cli._inputs import BY_RUN, InputFile, SkipReport, add_reading
from structpe.cli.base import Command, UsageError, path_of
from structpe.system.progress import progress_bar

__all__ = ["PredictCommand"]

WINDOW = 4096
"""Number of graphs in memory at once."""


class PredictCommand(Command, name="predict"):
    """Predict the graphs of a file, or each of their nodes, with a trained model of graphs.

    The output is a table with one row per graph, in the order of the file: its id and its predictions. A regression has
    numbers, labels have probabilities, classes have the most likely class and all probabilities. A model of nodes has
    one row per node.
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
        add_reading(parser, BY_RUN)

    def run(self, given: Namespace) -> None:
        from structpe.formats import stream
        from structpe.tasks.prediction.predictor import Predictor
        from structpe.tasks.prediction.report import SUFFIXES, table_writer
        from structpe.tasks.runs import load, load_run

        if given.out is not None and given.out.suffix not in SUFFIXES:
            raise UsageError(f"--out {given.out} is not a table; give a name that ends in {' or '.join(SUFFIXES)}")
        predictor = load(given.run, given.device)
        if not isinstance(predictor, Predictor):
            raise UsageError(f"{given.run} holds a model that writes texts; use 'structpe generate'")
        source = InputFile.of(given.file, given, load_run(given.run))
        skipped, count = SkipReport(), 0
        skip = skipped.add if source.on_error == "skip" else None
        with progress_bar("predicting") as progress, table_writer(given.out) as write:
            items = stream(source.path, source.reader, skip, progress, **source.options)
            while window := list(islice(items, WINDOW)):
                predicted = predictor.predict([item.structure for item in window])
                write(predicted.table([item.id for item in window]))
                count += len(window)
        if skipped.count:
            print(skipped.text(count), file=sys.stderr)
