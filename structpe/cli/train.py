"""``structpe train``: train a graph-to-text model as a configuration says."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from structpe.cli._overrides import as_overrides
from structpe.cli.base import Command

__all__ = ["Train"]


class Train(Command, name="train"):
    """Train a graph-to-text model.

    CONFIG is a YAML file. Any of its values can be given here too, and then wins: --KEY VALUE, with dots between the
    levels; a VALUE is YAML. A run that was interrupted goes on where it stopped when it is started again.
    """

    example = (
        "structpe train examples/amr.yaml\n"
        "structpe train examples/amr.yaml --model.width 128 --training.seed 2 --out runs/wide"
    )
    overrides = True

    def arguments(self, parser: ArgumentParser) -> None:
        parser.usage = "structpe train CONFIG [--KEY VALUE ...] [--fresh]"
        parser.add_argument("config", metavar="CONFIG", help="a YAML file")
        parser.add_argument("--fresh", action="store_true", help="remove an earlier run in the same folder first")

    def run(self, given: Namespace) -> None:
        from structpe.tasks.graph_to_text.config import load_config
        from structpe.tasks.graph_to_text.train import train

        train(load_config(given.config, as_overrides(given.overrides)), fresh=given.fresh)
