"""``structpe figure``: figures of a study of position information, for any position model."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from structpe.cli._inputs import WITH_RUN, add_reading, check_file, item_of, parse_position, picture_input
from structpe.cli.base import Command, UsageError, check_picture, path_of, refuse_idle, seed_of
from structpe.system.printing import printable

__all__ = ["FigureCommand"]

FIGURES = ("rank", "pattern", "segments", "similarity")


class FigureCommand(Command, name="figure"):
    """Draw figures of Chen et al. 2021 for any position model.

    rank (figures 2 and 8): singular values of the scores of a head, from positions only or, with --content, of all
    scores. pattern (figure 4): attention of each head from positions only. segments (figure 6): the same for a sequence
    of two segments, the second of which begins in the middle. similarity (figure 5): the cosines of the vectors added
    to the input.

    Models have random parameters, which show what they can express, and read a sequence or a structure of --file. A
    trained model of --checkpoint needs --file. --position may be given several times for rank and similarity; in YAML,
    a list is a sum.
    """

    example = (
        "structpe figure rank --position learned --position diet-abs --position t5 --out rank.svg\n"
        "structpe figure segments --position '[diet-rel, segment-bias]' --length 32 --out segments.png\n"
        "structpe figure similarity --position sinusoidal --position learned --out cosines.png\n"
        "structpe figure pattern --position graformer --file datasets/trees_sample/sample.conllu --index 3"
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("figure", choices=FIGURES, help="which figure")
        parser.add_argument("--position", metavar="NAME", dest="positions", action="append", default=[],
                            help="a position model; 'structpe positions' lists them")  # fmt: skip
        parser.add_argument("--checkpoint", metavar="RUN", type=path_of, help="folder of a trained model, in its place")
        parser.add_argument("--length", metavar="N", type=int, default=128, help="of the sequence (default 128)")
        parser.add_argument("--file", metavar="FILE", type=path_of, help="file or folder, for one of its structures")
        parser.add_argument("--index", metavar="I", type=int, default=0, help="which one, from 0 (default 0)")
        parser.add_argument("--content", action="store_true", help="rank of all scores, not from positions only")
        parser.add_argument("--width", metavar="D", type=int, default=192, help="hidden size (default 192)")
        parser.add_argument("--heads", metavar="H", type=int, default=6, help="heads (default 6)")
        parser.add_argument("--seed", metavar="S", type=seed_of, default=0, help="of everything random (default 0)")
        parser.add_argument("--out", metavar="PICTURE", type=path_of, default=Path("figure.png"),
                            help="ends in .png or .svg (default figure.png)")  # fmt: skip
        add_reading(parser, WITH_RUN)

    def run(self, given: Namespace) -> None:
        _check(given)
        from structpe.pictures import save

        if given.checkpoint is not None:
            save(_trained(given), given.out)
        else:
            save(_DRAWN[given.figure](given, _setting(given)), given.out)
        print(printable(f"{given.out}: {given.figure} of {given.checkpoint or ', '.join(given.positions)}"))


def _check(given: Namespace) -> None:
    check_picture(given.out, ".png or .svg")
    if bool(given.positions) == (given.checkpoint is not None):
        raise UsageError("give a model: either --position, once or more, or --checkpoint")
    if given.checkpoint is not None and (given.file is None or given.figure == "segments"):
        raise UsageError("a trained model reads a structure: give --file, and one of rank, pattern and similarity")
    if given.checkpoint is not None:
        refuse_idle(given, "on a trained model", "--length", "--width", "--heads", "--seed")
    refuse_idle(given, *("without --file", "--index") if given.file is None else ("with --file", "--length"))
    if (given.checkpoint is None and given.figure != "rank") or given.figure == "similarity":
        refuse_idle(given, f"on the figure {given.figure!r}, which is of positions only", "--content")
    if not 2 <= given.length <= 1000:
        raise UsageError(f"--length is {given.length}; give 2 to 1000")
    if given.figure in ("pattern", "segments") and len(given.positions) > 1:
        raise UsageError(f"the figure {given.figure!r} is of one position model; give --position once, a sum as a list")
    if given.figure == "segments" and given.file is not None:
        raise UsageError("the figure 'segments' is of a sequence of two segments; leave out --file")
    if given.checkpoint is None:
        check_file(given)


def _setting(given: Namespace) -> Any:
    from structpe.pictures.setting import Setting
    from structpe.positions import Dims

    structure = None if given.file is None else item_of(picture_input(given, given.file), given.index)[0].structure
    return Setting(Dims(given.width, given.heads, 1), given.length, float(given.content), given.seed, structure)


def _rank(given: Namespace, setting: Any) -> Any:
    from structpe.pictures import rank

    values = {name: rank.singular_values(rank.scores(parse_position(name), setting))[0] for name in given.positions}
    head = setting.dims.head
    what = "all scores" if given.content else "scores from positions only"
    return rank.draw(values, {"d_h": head, "2 d_h": 2 * head}, f"Rank of a head: {what}")


def _pattern(given: Namespace, setting: Any) -> Any:
    from structpe.pictures import pattern

    (name,) = given.positions
    return pattern.draw(pattern.pattern(parse_position(name), setting), f"{name}: attention from positions only")


def _segments(given: Namespace, setting: Any) -> Any:
    from dataclasses import replace

    from structpe.pictures import pattern

    (name,) = given.positions
    start = given.length // 2
    two = replace(setting, structure=pattern.segmented(given.length, start))
    return pattern.draw(
        pattern.pattern(parse_position(name), two), f"{name}: attention, the second segment from {start} on", [start]
    )


def _similarity(given: Namespace, setting: Any) -> Any:
    from structpe.pictures import similarity
    from structpe.pictures.setting import model_of

    found = {}
    for name in given.positions:
        model = model_of(parse_position(name), setting)
        found[name] = similarity.cosines(similarity.vectors(model, setting.read))
    return similarity.draw(found, "Cosines of the vectors added to the input")


def _trained(given: Namespace) -> Any:
    """Figures of a trained model: rank of the first head of each layer; all heads; the vectors added to the input."""
    from structpe.pictures import load, pattern, rank, similarity
    from structpe.pictures.head_patterns import refuse_own_attention

    item, _ = item_of(picture_input(given, given.file), given.index)
    run = load(given.checkpoint, item, "own" if given.content else "same")
    title = f"{run.name}: {run.content}"
    if given.figure == "similarity":
        found = similarity.cosines(similarity.vectors(run.position, run.structure))
        return similarity.draw({run.name: found}, "Cosines of the vectors added to the input")
    refuse_own_attention(run.position)
    assert run.patterns is not None
    if given.figure == "pattern":
        return pattern.draw(run.patterns.attention.flatten(0, 1), f"{title}; attention, layer by layer")
    values = rank.singular_values(run.patterns.complete_scores()[:, 0])
    return rank.draw({f"layer {n}": each for n, each in enumerate(values, 1)}, {}, f"Rank of scores of head 1, {title}")


_DRAWN = {"rank": _rank, "pattern": _pattern, "segments": _segments, "similarity": _similarity}
