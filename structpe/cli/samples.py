"""``structpe samples``: write the files that the documentation reads."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from structpe.cli.base import Command, path_of

__all__ = ["SamplesCommand"]


class SamplesCommand(Command, name="samples"):
    """Write the samples and the example configurations into a folder.

    The documentation reads files in 'datasets' and 'examples'. This command writes these folders into FOLDER, from
    which the examples of the documentation can then be run.
    """

    example = "structpe samples first-steps"

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "folder", metavar="FOLDER", nargs="?", type=path_of, default=path_of("."), help="default: ."
        )

    def run(self, given: Namespace) -> None:
        from structpe.datasets.samples import write_samples

        for file in write_samples(given.folder):
            print(file)
