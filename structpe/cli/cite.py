"""``structpe cite``: BibTeX entries of position models."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from structpe.cli.base import Command

__all__ = ["CiteCommand"]


class CiteCommand(Command, name="cite"):
    """Print the BibTeX entries of position models.

    Each entry is printed once, in the order of first use.
    """

    example = "structpe cite t5 graformer > models.bib"

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "names", metavar="NAME", nargs="+", help="a position model; 'structpe positions' lists them"
        )

    def run(self, given: Namespace) -> None:
        from structpe.positions.citing import cite

        print(cite(given.names), end="")
