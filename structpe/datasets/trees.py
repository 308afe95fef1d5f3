"""Data sets of trees: ListOps and the Stanford Sentiment Treebank.

ListOps is made here. An expression is a digit, or one of MIN, MAX, MED and SM with 2 to 5 expressions as arguments. It
is an operation with probability 1/4, and a digit at the largest depth. MED is the median rounded down, SM the sum
modulo 10.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from structpe.data.features import Categories
from structpe.datasets.arrays import lines
from structpe.datasets.base import Benchmark, Split, benchmark
from structpe.datasets.downloads import Tell, writing
from structpe.errors import ConfigError, ReadError, located
from structpe.formats.brackets import parse, unescaped
from structpe.formats.listops import OPERATORS, value
from structpe.formats.text import shown
from structpe.objectives.classification import Multiclass
from structpe.structure import Structure
from structpe.system.files import atomic_write

__all__ = [
    "MAKERS",
    "Grammar",
    "bracketed",
    "expressions",
    "line",
    "make_listops",
    "make_listops_long",
    "shares",
    "sst",
]

NAMES = tuple(OPERATORS)
SEED = 20


@dataclass(frozen=True)
class Grammar:
    """The distribution of expressions.

    Args:
        deepest: largest number of nodes on a path down from the root.
        most_arguments: largest number of arguments of an operation; the smallest is two.
        share: probability of an operation, above the largest depth.
        shortest: smallest number of symbols of an expression; an operation and its closing bracket are two.
        longest: largest number of symbols; None for no limit.

    Raises:
        ConfigError: there are no such expressions.
    """

    deepest: int = 20
    most_arguments: int = 5
    share: float = 0.25
    shortest: int = 1
    longest: int | None = None

    def __post_init__(self) -> None:
        """Check that expressions can be drawn."""
        if self.deepest < 1 or self.most_arguments < 2 or not 0 <= self.share <= 1:
            given = f"deepest {self.deepest}, most_arguments {self.most_arguments}, share {self.share}"
            raise ConfigError(f"{given}: give at least 1, at least 2, and a probability")
        if self.longest is not None and self.longest < self.shortest:
            raise ConfigError(f"longest is {self.longest}, which is less than shortest, {self.shortest}")


def expressions(grammar: Grammar, draw: random.Random) -> Iterator[tuple[str, ...]]:
    """Generate distinct expressions without end, as tuples of symbols: ``("[MAX", "2", "9", "]")``.

    Only ``draw.random()`` is called, which gives the same numbers for a seed in every version of Python.

    Args:
        grammar: distribution of the expressions.
        draw: random generator.

    Raises:
        ConfigError: 100,000 consecutive draws gave no new expression of the right length.
    """
    seen: set[tuple[str, ...]] = set()
    vain = 0
    while True:
        symbols = _drawn(grammar, draw)
        if symbols is None or len(symbols) < grammar.shortest or symbols in seen:
            vain += 1
            if vain > VAIN:
                raise ConfigError(f"{VAIN} draws in a row gave no new expression of {grammar}; allow more expressions")
            continue
        vain = 0
        seen.add(symbols)
        yield symbols


VAIN = 100_000


def _drawn(grammar: Grammar, draw: random.Random) -> tuple[str, ...] | None:
    """Draw one expression; None as soon as it is too long."""
    symbols: list[str] = []
    waiting = [1]  # depths of the expressions still to be written, the next one last; 0 closes an operation
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
    """Format an expression as in the published files, with parentheses around each step of its binary tree.

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
    """Format a line of a file: the value, a tab, the expression."""
    return f"{value(symbols)}\t{bracketed(symbols)}\n"


def make_listops(folder: Path, tell: Tell, sizes: tuple[int, int, int] = (90_000, 5_000, 10_000)) -> None:
    """Make ListOps by the grammar of Nangia and Bowman (2018): ``train.tsv``, ``dev.tsv`` and ``test.tsv``.

    Args:
        folder: folder to write to.
        tell: progress callback.
        sizes: numbers of expressions of the three parts.
    """
    _parts(folder, Grammar(), sizes, tell)


def make_listops_long(folder: Path, tell: Tell, sizes: tuple[int, int, int] = (96_000, 2_000, 2_000)) -> None:
    """Make long ListOps, as in the Long Range Arena (Tay et al. 2021): up to ten arguments and ten levels.

    Expressions have more than 500 and less than 2,000 symbols.

    Args:
        folder: folder to write to.
        tell: progress callback.
        sizes: numbers of expressions of the three parts.
    """
    _parts(folder, Grammar(deepest=10, most_arguments=10, shortest=501, longest=1_999), sizes, tell)


Maker = Callable[[Path, Tell], None]
MAKERS: dict[str, Maker] = {"listops": make_listops, "listops-long": make_listops_long}
"""Makers by their names in cards."""


def _parts(folder: Path, grammar: Grammar, sizes: tuple[int, int, int], tell: Tell) -> None:
    """Write all parts from one stream of distinct expressions; no expression is in two parts.

    Each goes to a random part, in proportion to the number still missing there. Later expressions are longer, since the
    short ones run out, so consecutive parts would have different distributions.
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
    """Generate numbers of parts in random order, each as often as its size.

    Args:
        sizes: sizes of the parts.
        draw: random generator; only ``random()`` is called.
    """
    left = list(sizes)
    for waiting in range(sum(left), 0, -1):
        place, part = int(draw.random() * waiting), 0
        while place >= left[part]:
            place, part = place - left[part], part + 1
        left[part] -= 1
        yield part


LABELS, NEUTRAL = "01234", 2
UNKNOWN, PHRASE = 0, 1


class _Tree(NamedTuple):
    """Nodes of a tree, in the order of the text: their words (empty for a phrase), classes and parents."""

    words: list[str]
    classes: list[int]
    parents: list[int]


@benchmark("sst")
def sst(folder: Path, binary: bool = False) -> Benchmark:
    """SST: sentiment of a sentence from its constituency tree; the standard split of 8,544, 1,101 and 2,210.

    Nodes are in the order of the text, edges lead from phrases to their parts, and the root is the sentence. ``x`` is
    the number of a node's word: 0 for a word that is not in a training sentence, 1 for a phrase. The feature
    ``sentiment`` (n, 1) is the class of every node; that of the root is the target, so models must not read it.

    Files: ``train.txt``, ``dev.txt``, ``test.txt`` with one tree per line, ``(3 (2 It) (4 (2 's) (3 good)))``.

    Args:
        folder: folder with the files.
        binary: whether to leave out neutral sentences (6,920, 872 and 1,821 remain) and predict negative or positive
            instead of five classes.
    """
    parts = [_trees(folder / f"{name}.txt") for name in ("train", "dev", "test")]
    if binary:
        parts = [[tree for tree in trees if tree.classes[0] != NEUTRAL] for trees in parts]
    words = {word for tree in parts[0] for word in tree.words} - {""}
    numbers = {"": PHRASE, **{word: number for number, word in enumerate(sorted(words), PHRASE + 1)}}
    trees = [tree for part in parts for tree in part]
    roots = np.array([tree.classes[0] for tree in trees])
    ends = np.cumsum([len(part) for part in parts])
    return Benchmark(
        name="SST-2 (trees)" if binary else "SST-5 (trees)",
        graphs=[_structure(tree, numbers, f"sentence {number}") for number, tree in enumerate(trees)],
        targets=(roots > NEUTRAL).astype(np.int64) if binary else roots,
        splits=(Split(*np.split(np.arange(len(trees)), ends[:-1])),),
        nodes=Categories((len(numbers) + 1,)),
        objective=Multiclass("graph", 2 if binary else len(LABELS), "accuracy"),
        note="trained on whole sentences only, without the classes of phrases; vocabulary of the training part",
    )


def _structure(tree: _Tree, numbers: dict[str, int], name: str) -> Structure:
    size = len(tree.words)
    return Structure(
        tuple(tree.words),
        np.stack([tree.parents[1:], range(1, size)], axis=1) if size > 1 else np.zeros((0, 2), dtype=np.int64),
        order=np.arange(size),
        root=0,
        features={
            "x": np.array([[numbers.get(word, UNKNOWN)] for word in tree.words]),
            "sentiment": np.array(tree.classes)[:, None],
        },
        name=name,
    )


def _trees(file: Path) -> list[_Tree]:
    trees = []
    for number, line in lines(file):
        if line.strip():
            with located(file, f"line {number}"):
                trees.append(_tree(line))
    if not trees:
        raise ReadError("there is no tree in the file; bring back the original").at(file)
    return trees


def _tree(line: str) -> _Tree:
    found = parse(line, "each line is one tree in parentheses")
    for category in found.categories:
        if category is not None and (len(category) != 1 or category not in LABELS):
            raise ReadError(f"a node has the class {category!r}; classes are the digits {LABELS[0]} to {LABELS[-1]}")
    if None in found.categories:
        alone = [word for category, word in zip(found.categories, found.words, strict=True) if category is None]
        wrong = f"the word {shown(str(alone[-1]))} is among other parts of its node"
        raise ReadError(f"{wrong}; a node is a word or has parts")
    return _Tree(
        ["" if word is None else unescaped(word) for word in found.words],
        [int(str(category)) for category in found.categories],
        found.parents,
    )
