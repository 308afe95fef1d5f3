"""``structpe demo``: positions, a prediction and texts from the samples of structpe, in less than a minute."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from structpe.cli.base import Command, UsageError, path_of, print_table
from structpe.errors import MissingExtra

__all__ = ["DemoCommand"]


class DemoCommand(Command, name="demo"):
    """Show what structpe does, on its own samples.

    The demo prints the positions of the words of a parsed sentence. Then two small models learn the distance of two
    marked nodes of a tree, one without positions and one with distances. Finally, if 'structpe[train]' is installed, a
    model learns to write sentences for sets of facts, and writes some for new facts. This takes less than a minute on
    one core.
    """

    example = "structpe demo --steps 50\nstructpe demo --out runs/demo  # keeps the model that writes"

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--steps", metavar="N", type=int, default=150, help="of each training (default 150)")
        parser.add_argument("--out", metavar="FOLDER", type=path_of, help="keep the model that writes in this folder")

    def run(self, given: Namespace) -> None:
        from tempfile import TemporaryDirectory

        if given.steps < 1:
            raise UsageError(f"--steps is {given.steps}; give 1 or more")
        _positions()
        _prediction(given.steps)
        try:
            with TemporaryDirectory() as folder:
                _texts(given.steps, given.out or Path(folder) / "demo")
        except MissingExtra as error:
            lacks = error.message.partition(":")[0]
            print(f"\n3. A model that writes texts needs more: pip install 'structpe[train]' ({lacks})")


def _positions() -> None:
    """Print a sentence, its parse, and the positions of its words."""
    from structpe.tasks.demo import SENTENCE, positions

    print("1. Where the words of a sentence are in its parse\n")
    print_table(["word", "head", "order", "depth", *SENTENCE.nodes], positions(), numeric=list(SENTENCE.nodes))
    print("\nBelow each word: its distance in the tree, in edges.\n")


def _prediction(steps: int) -> None:
    """Print the errors of two models."""
    from structpe.tasks.demo import error_after

    print(f"2. How far apart are two marked nodes of a tree? Mean error after {steps} steps, new trees\n")
    models: dict[str, str | dict[str, str]] = {
        "none": "nope",
        "distances, as Shaw et al.": {"name": "shaw", "encoding": "undirected-distance"},
    }
    rows = [[name, f"{error_after(position, steps):.2f}"] for name, position in models.items()]
    print_table(["positions", "error in edges"], rows, numeric=["error in edges"])


def _texts(steps: int, out: Path) -> None:
    """Print texts and their references."""
    from textwrap import fill

    from structpe.tasks.demo import written

    texts, right = written(steps, out)
    print(f"\n3. Sentences for sets of facts, after {steps} steps on 240 sentences, from graphs that are new\n")
    for text in texts[:6]:
        for who, said in (("written:  ", text.text), ("a person: ", text.references[0])):
            print(fill(who + said, 80, subsequent_indent=" " * len(who)))
        print()
    print(f"{right} of {len(texts)} texts are exactly what a person wrote.")
