"""``structpe train``: train a graph-to-text model as a configuration says."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from structpe.cli.base import Command

__all__ = ["Train"]


class Train(Command, name="train"):
    """Train a graph-to-text model.

    The configuration is a YAML file; any of its values can be given on the command line too, and then wins:
    --KEY VALUE, with dots between the levels. A run that was interrupted goes on where it stopped.
    """

    example = (
        "structpe train examples/amr.yaml\n"
        "structpe train examples/amr.yaml --model.width 128 --training.seed 2 --run runs/wide"
    )
    overrides = True

    def arguments(self, parser: ArgumentParser) -> None:
        parser.usage = "%(prog)s CONFIG [--KEY VALUE ...] [--fresh]"
        parser.add_argument("config", metavar="CONFIG", help="a YAML file")
        parser.add_argument("--fresh", action="store_true", help="start anew, even if the run was begun before")

    def run(self, given: Namespace) -> None:
        from structpe.tasks.graph_to_text.config import load_config
        from structpe.tasks.graph_to_text.train import train

        print(train(load_config(given.config, given.overrides), fresh=given.fresh))
