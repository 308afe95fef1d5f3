"""``structpe evaluate``: how well a trained model writes."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from structpe.cli.base import Command
from structpe.cli.generate import generated, generation_arguments

__all__ = ["Evaluate"]


class Evaluate(Command, name="evaluate"):
    """Write a text for each structure of a file, and compare the texts with those in the file.

    Metrics come with the signature of sacrebleu, which says all that must be known to compare them.
    """

    example = "structpe evaluate runs/amr datasets/amr_sample/test.txt --reader amr"

    def arguments(self, parser: ArgumentParser) -> None:
        generation_arguments(parser)
        parser.add_argument("--json", action="store_true", help="print the metrics as one JSON object")

    def run(self, given: Namespace) -> None:
        from structpe.tasks.graph_to_text.evaluate import score

        texts = list(generated(given))
        scores = score([each.text for each in texts], [list(each.references) for each in texts])
        print(json.dumps({"items": len(texts), **asdict(scores)}, indent=2) if given.json else scores)
