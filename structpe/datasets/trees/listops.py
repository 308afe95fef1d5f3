"""ListOps: nested operations on lists of digits, drawn by the published grammar (Nangia and Bowman 2018).

An expression is a digit, or one of MIN, MAX, MED and SM with 2 to 5 arguments that are expressions. It is an operation
with probability 1/4 down to a depth, and a digit below it. MED is the median rounded down, SM the sum modulo 10.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from structpe.datasets.fetching.download import Tell, writing
from structpe.errors import ConfigError
from structpe.files import atomic_write
from structpe.readers.listops import OPERATORS, value

__all__ = ["MAKERS", "Grammar", "bracketed", "expressions", "line", "make_listops", "make_listops_long", "shares"]

NAMES = tuple(OPERATORS)
SEED = 20


@dataclass(frozen=True)
class Grammar:
    """Which expressions there are, and how often.

    Args:
        deepest: nodes on the longest way from the root down.
        most_arguments: of an operation; the fewest are two.
        share: probability of an operation where one may be.
        shortest: symbols of an expression, each operation counted with its closing bracket.
        longest: likewise; None is no bound.

    Raises:
        ConfigError: no expression can be drawn, or not one that is as long as it must be.
    """

    deepest: int = 20
    most_arguments: int = 5
    share: float = 0.25
    shortest: int = 1
    longest: int | None = None

    def __post_init__(self) -> None:
        """Check that drawing comes to an end."""
        if self.deepest < 1 or self.most_arguments < 2 or not 0 <= self.share <= 1:
            raise ConfigError(
                f"deepest {self.deepest}, most_arguments {self.most_arguments}, share {self.share}: give at least 1, "
                "at least 2, and a probability"
            )
        if self.longest is not None and self.longest < self.shortest:
            raise ConfigError(
                f"longest is {self.longest}, and shortest {self.shortest}; no expression is of such length"
            )


def expressions(grammar: Grammar, draw: random.Random) -> Iterator[tuple[str, ...]]:
    """Different expressions without end, each as its symbols: ``("[MAX", "2", "9", "]")``.

    Only ``draw.random()`` is called, whose numbers are the same for a seed in every version of Python.

    Args:
        grammar: of them.
        draw: where the choices come from.

    Raises:
        ConfigError: 100,000 draws in a row gave nothing new of the right length.
    """
    seen: set[tuple[str, ...]] = set()
    vain = 0
    while True:
        symbols = _drawn(grammar, draw)
        if symbols is None or len(symbols) < grammar.shortest or symbols in seen:
            vain += 1
            if vain > VAIN:
                raise ConfigError(
                    f"{VAIN} draws in a row gave nothing new by {grammar}; allow more or other expressions"
                )
            continue
        vain = 0
        seen.add(symbols)
        yield symbols


VAIN = 100_000


def _drawn(grammar: Grammar, draw: random.Random) -> tuple[str, ...] | None:
    """One expression; None if it grows too long, which is found out before it is whole."""
    symbols: list[str] = []
    waiting = [1]  # depths of what is still to be written, the next one last; 0 closes an operation
    most = grammar.longest
    while waiting:
        depth = waiting.pop()
        if not depth:
            symbols.append("]")
        elif depth >= grammar.deepest or draw.random() >= grammar.share:
            symbols.append(str(int(draw.random() * 10)))
        else:
            symbols.append(f"[{NAMES[int(draw.random() * len(NAMES))]}")
            count = 2 + int(draw.random() * (grammar.most_arguments - 1))
            waiting += [0, *([depth + 1] * count)]
        if most is not None and len(symbols) + len(waiting) > most:
            return None
    return tuple(symbols)


def bracketed(symbols: Sequence[str]) -> str:
    """The expression as the published files write it: a pair of parentheses around each step of its binary tree.

    ``("[MAX", "2", "9", "]")`` is ``( ( ( [MAX 2 ) 9 ) ] )``.
    """
    written: list[list[str]] = [[]]
    for symbol in symbols:
        if symbol.startswith("["):
            written.append([symbol])
        elif symbol == "]":
            parts = [*written.pop(), "]"]
            closed = " ".join([parts[0], *(f"{part} )" for part in parts[1:])])
            written[-1].append(f"{'( ' * (len(parts) - 1)}{closed}")
        else:
            written[-1].append(symbol)
    return " ".join(written[0])


def line(symbols: Sequence[str]) -> str:
    """A line of a file: the value, a tab, the expression."""
    return f"{value(symbols)}\t{bracketed(symbols)}\n"


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
