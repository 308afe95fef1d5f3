"""``structpe samples``: the files that the pages of the documentation read."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from structpe.cli.base import Command, path_of

__all__ = ["Samples"]


class Samples(Command, name="samples"):
    """Write the samples and the example configurations into a folder.

    The pages of the documentation read files in 'datasets' and 'examples'. These folders are written, so that what the
    pages show runs where the current folder is FOLDER.
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
