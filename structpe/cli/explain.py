"""``structpe explain``: which kernel each layer uses, and why not the others."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from structpe.cli.base import Command, add_only, as_overrides
from structpe.system.printing import printable

__all__ = ["ExplainCommand"]


class ExplainCommand(Command, name="explain"):
    """Show which attention kernel each layer uses, and why not the others.

    CONFIG is the YAML file of a training or of a study. The untrained model processes a batch of its training data.
    --KEY VALUE overrides a value of CONFIG, with dots between the levels; a VALUE is YAML.
    """

    example = (
        "structpe explain examples/amr.yaml\n"
        "structpe explain examples/amr.yaml --model.kernel dense\n"
        "structpe explain examples/study.yaml --only 'diameters/transformer/*'"
    )
    overrides = True

    def arguments(self, parser: ArgumentParser) -> None:
        parser.usage = "structpe explain CONFIG [--only PATTERN ...] [--KEY VALUE ...]"
        parser.add_argument("config", metavar="CONFIG", help="a YAML file")
        add_only(parser)

    def run(self, given: Namespace) -> None:
        from structpe.tasks.explaining import explain, summary

        found = explain(given.config, as_overrides(given.overrides), given.only)
        for name, layers in found.items():
            print(printable("\n".join([name, *summary(layers)])))
