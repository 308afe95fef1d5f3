"""Data sets that are made and not fetched."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from structpe.corpora.download import Tell, writing
from structpe.corpora.listops import Grammar, expressions, line
from structpe.files import atomic_write

__all__ = ["MAKERS", "make_listops", "make_listops_long", "shares"]

SEED = 20


def make_listops(folder: Path, tell: Tell, sizes: tuple[int, int, int] = (90_000, 5_000, 10_000)) -> None:
    """ListOps by the grammar of Nangia and Bowman (2018): ``train.tsv``, ``dev.tsv`` and ``test.tsv``.

    Args:
        folder: where to.
        tell: told how many expressions there are, and how many there will be.
        sizes: how many of each.
    """
    _parts(folder, Grammar(), sizes, tell)


def make_listops_long(folder: Path, tell: Tell, sizes: tuple[int, int, int] = (96_000, 2_000, 2_000)) -> None:
    """Long ListOps, as in the Long Range Arena (Tay et al. 2021): up to ten arguments, up to ten deep.

    Expressions have more than 500 and less than 2,000 symbols.

    Args:
        folder: where to.
        tell: told how many expressions there are, and how many there will be.
        sizes: how many of each.
    """
    _parts(folder, Grammar(deepest=10, most_arguments=10, shortest=501, longest=1_999), sizes, tell)


Maker = Callable[[Path, Tell], None]
MAKERS: dict[str, Maker] = {"listops": make_listops, "listops-long": make_listops_long}
"""By the name that a card gives."""


def _parts(folder: Path, grammar: Grammar, sizes: tuple[int, int, int], tell: Tell) -> None:
    """All parts at once from one stream of different expressions, so that none is in two of them.

    Each goes to a part at random, by how many are still wanted there: the later ones are longer, as the short ones are
    used up first, and a part of the end of the stream would be another distribution.
    """
    train, dev, test = (folder / f"{name}.tsv" for name in ("train", "dev", "test"))
    drawn = expressions(grammar, random.Random(SEED))

    def fill(*hidden: Path) -> None:
        with ExitStack() as stack:
            files = [stack.enter_context(each.open("w", encoding="utf-8", newline="\n")) for each in hidden]
            wanted = shares(sizes, random.Random(SEED + 1))
            for number, (part, symbols) in enumerate(zip(wanted, drawn, strict=False), 1):
                files[part].write(line(symbols))
                if number % 1_000 == 0:
                    tell(number, sum(sizes))

    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        atomic_write(train, lambda a: atomic_write(dev, lambda b: atomic_write(test, lambda c: fill(a, b, c))))


def shares(sizes: Sequence[int], draw: random.Random) -> Iterator[int]:
    """Numbers of parts in random order, each as often as its size says.

    Args:
        sizes: of the parts.
        draw: where the choices come from; only ``random()`` is called.
    """
    left = list(sizes)
    for waiting in range(sum(left), 0, -1):
        place, part = int(draw.random() * waiting), 0
        while place >= left[part]:
            place, part = place - left[part], part + 1
        left[part] -= 1
        yield part
