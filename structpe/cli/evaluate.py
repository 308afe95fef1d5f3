"""``structpe evaluate``: scores of a trained model."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from structpe.cli._inputs import add_generation, generation_inputs
from structpe.cli.base import Command
from structpe.system.progress import progress_bar

__all__ = ["EvaluateCommand"]


class EvaluateCommand(Command, name="evaluate"):
    """Score the texts that a trained model generates for the structures of a file.

    The texts are compared with those in the file. Metrics are printed with their sacrebleu signatures; compare only
    scores with the same signature.
    """

    example = (
        "structpe evaluate runs/amr datasets/amr_sample/test.txt\n"
        "structpe evaluate runs/kg datasets/kg_sample/test.xml --option comment=good --on-error skip"
    )

    def arguments(self, parser: ArgumentParser) -> None:
        add_generation(parser)
        parser.add_argument("--json", action="store_true", help="print the metrics as one JSON object")

    def run(self, given: Namespace) -> None:
        from structpe.tasks.runs import load

        items, search = generation_inputs(given)
        with progress_bar("writing") as progress:
            scores, texts = load(given.run, given.device).evaluate(items, search, progress=progress)
        print(json.dumps({"items": len(texts), **asdict(scores)}, indent=2) if given.json else scores)
