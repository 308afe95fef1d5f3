"""``structpe show``: a structure and its positions, as a picture or a page."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from structpe.cli._inputs import (
    WITH_RUN,
    add_encodings,
    add_reading,
    encodings_of,
    item_of,
    parse_position,
    picture_input,
)
from structpe.cli.base import Command, UsageError, check_picture, path_of, refuse_idle, seed_of
from structpe.system.printing import printable

__all__ = ["ShowCommand"]


class ShowCommand(Command, name="show"):
    """Draw a structure and its positions.

    The picture shows the structure (a parse as arcs, a molecule, a grid, a graph), each encoding as a heat map, and the
    heads of a position model, which is trained with --checkpoint and untrained otherwise; then the mean of each head
    over all pairs of each distance. A page (.html) shows the row of the node under the pointer.

    --position takes a name, or YAML as in configurations; --encoding takes the same values as in 'structpe encode'. An
    encoding that needs a vocabulary, such as labels, learns it from this file.

    --quantity: bias, which is added to scores; scores, minus the mean of each row; attention. By default the bias if
    the model has one, otherwise the scores. All units have the same content, and pairs differ only by positions; with
    --content own, for a trained graph-to-text model, units have their own content.
    """

    example = (
        "structpe show datasets/trees_sample/sample.conllu --index 2 --position graformer --out tree.png\n"
        "structpe show datasets/molecules_sample/molecules.csv --index 30 --encoding random-walk:steps=8 \\\n"
        "    --position '{name: t5, encoding: distance}' --out molecule.html\n"
        "structpe show trees.txt --reader ptb --option traces=drop --encoding depth --out tree.svg\n"
        "structpe show datasets/amr_sample/test.txt --checkpoint runs/amr --quantity attention --content own \\\n"
        "    --out learned.svg"
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", type=path_of, help="file or folder with structures")
        parser.add_argument("--index", metavar="I", type=int, default=0, help="which structure, from 0 (default 0)")
        add_encodings(parser)
        parser.add_argument("--position", metavar="NAME", help="a position model; 'structpe positions' lists them")
        parser.add_argument("--checkpoint", metavar="RUN", type=path_of, help="folder of a trained model, in its place")
        parser.add_argument("--out", metavar="PICTURE", type=path_of, default=Path("picture.png"),
                            help="ends in .png, .svg or .html (default picture.png)")  # fmt: skip
        add_reading(parser, WITH_RUN)
        shown = parser.add_argument_group("what is shown")
        shown.add_argument("--quantity", choices=("bias", "scores", "attention"), help="of heads")
        shown.add_argument("--content", choices=("same", "own"), default="same", help="of units (default same)")
        shown.add_argument("--slice", metavar="K", type=int, default=0, help="which number of vectors per pair, from 0")
        shown.add_argument("--width", metavar="D", type=int, default=64, help="hidden size before training (64)")
        shown.add_argument("--heads", metavar="H", type=int, default=4, help="heads before training (4)")
        shown.add_argument("--layers", metavar="L", type=int, default=1, help="layers before training (1)")
        shown.add_argument("--seed", metavar="S", type=seed_of, default=0, help="of a model before training (0)")

    def run(self, given: Namespace) -> None:
        _check(given)
        from structpe.pictures import page, save, save_page, show

        item, structures = item_of(picture_input(given, given.file), given.index)
        shown: tuple[Any, ...] = (item.structure, _what(given, item, structures))
        named = {"quantity": given.quantity, "slice": given.slice, "seed": given.seed}
        if given.out.suffix.lower() == ".html":
            save_page(page(*shown, **named), given.out)
        else:
            save(show(*shown, **named), given.out)
        print(printable(f"{given.out}: {item.structure.name or item.id}"))


def _check(given: Namespace) -> None:
    """Check the combination of options, before anything is read."""
    check_picture(given.out, ".png, .svg or .html")
    if given.position is not None and given.checkpoint is not None:
        raise UsageError("--position and --checkpoint both name a position model; give one of them")
    if given.position is None:
        refuse_idle(given, "without --position", "--width", "--heads", "--layers", "--seed")
    if given.checkpoint is None and given.position is None:
        refuse_idle(given, "without a position model", "--content")
    if not given.encodings:
        refuse_idle(given, "without --encoding", "--slice")
    if given.content == "own" and given.checkpoint is None:
        raise UsageError("--content own needs a trained model, whose units have vectors; give --checkpoint RUN too")
    if given.quantity is not None and given.position is None and given.checkpoint is None:
        raise UsageError(f"--quantity {given.quantity} needs a position model; give --position or --checkpoint")


def _what(given: Namespace, item: Any, structures: Any) -> list[Any]:
    """The encodings and the model to show."""
    from structpe.encodings import Encoding
    from structpe.pictures import begin, load
    from structpe.positions import Dims

    what: list[Any] = [
        each.fit(structures()) if type(each).fit is not Encoding.fit else each for each in encodings_of(given)
    ]
    if given.checkpoint is not None:
        what.append(load(given.checkpoint, item, given.content))
    if given.position is not None:
        dims = Dims(given.width, given.heads, given.layers)
        what.append(begin(parse_position(given.position), dims, structures, given.seed))
    return what
