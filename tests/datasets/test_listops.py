"""ListOps that is made here: by its grammar, the same every time, and like what was published."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from structpe.datasets import card
from structpe.datasets.trees import Grammar, expressions, make_listops, make_listops_long, shares
from structpe.errors import ConfigError
from structpe.formats import read
from structpe.formats.listops import OPERATORS, expression
from structpe.structure import Structure
from tests.datasets import corpus


def drawn(grammar: Grammar, count: int, seed: int = 0) -> list[tuple[str, ...]]:
    return list(islice(expressions(grammar, random.Random(seed)), count))


def quiet(done: int, total: int | None) -> None:
    pass


def test_expressions_keep_to_the_grammar() -> None:
    found = drawn(Grammar(deepest=4, most_arguments=3), 2_000)
    assert len(set(found)) == len(found)
    arguments: Counter[int] = Counter()
    operators: Counter[str] = Counter()
    for symbols in found:
        tree = expression(" ".join(symbols))
        depths = np.ones(tree.size, dtype=int)
        for parent, child in tree.edges.tolist():
            depths[child] = depths[parent] + 1
        assert depths.max() <= 4
        arguments.update(np.bincount(tree.edges[:, 0]).tolist() if len(tree.edges) else [])
        operators.update(node for node in tree.nodes if node in OPERATORS)
    assert set(arguments) - {0} == {2, 3}
    assert set(operators) == set(OPERATORS)
    assert max(operators.values()) < 1.1 * min(operators.values())


def test_lengths_are_bounded() -> None:
    lengths = [len(symbols) for symbols in drawn(Grammar(deepest=10, most_arguments=10, shortest=50, longest=90), 200)]
    assert min(lengths) >= 50
    assert max(lengths) <= 90


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"deepest": 0}, "deepest 0, most_arguments 5, share 0.25: give at least 1, at least 2, and a probability"),
        ({"most_arguments": 1}, "give at least 1"),
        ({"share": 1.5}, "give at least 1"),
        ({"shortest": 9, "longest": 8}, "longest is 8, which is less than shortest, 9"),
    ],
)
def test_a_grammar_that_draws_nothing_is_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Grammar(**options)


def test_a_grammar_with_few_expressions_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("structpe.datasets.trees.VAIN", 1_000)
    with pytest.raises(ConfigError, match=r"1000 draws in a row gave no new expression of Grammar\(deepest=1"):
        drawn(Grammar(deepest=1), 11)
    assert len(drawn(Grammar(deepest=1), 10)) == 10


def test_parts_are_drawn_as_often_as_they_are_wanted() -> None:
    found = list(shares([5, 0, 3], random.Random(0)))
    assert Counter(found) == {0: 5, 2: 3}
    first = Counter(next(shares([1, 3], random.Random(seed))) for seed in range(2_000))
    assert abs(first[0] - 500) < 80


def test_the_same_files_are_made_every_time(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        make_listops(tmp_path / folder, quiet, (300, 20, 40))
    read_back = {name: read(tmp_path / "a" / f"{name}.tsv", "listops") for name in ("train", "dev", "test")}
    assert {name: len(items) for name, items in read_back.items()} == {"train": 300, "dev": 20, "test": 40}
    contents = {name: (tmp_path / "a" / f"{name}.tsv").read_bytes() for name in read_back}
    assert contents == {name: (tmp_path / "b" / f"{name}.tsv").read_bytes() for name in read_back}
    lines = [line for content in contents.values() for line in content.splitlines()]
    assert len(set(lines)) == len(lines)
    assert hashlib.sha256(contents["test"]).hexdigest() == GOLDEN


GOLDEN = "2fef246ff70759a10f10db1cbca0e5cc9ca116d3495f0637ce3bafccf534ca78"
"""Of 40 lines: who changes what is drawn changes the data set, and must change the checksums of its card too."""


def test_long_expressions(tmp_path: Path) -> None:
    make_listops_long(tmp_path, quiet, (6, 2, 2))
    lines = (tmp_path / "train.tsv").read_text().splitlines()
    sizes = [len(line.replace("(", " ").replace(")", " ").split()) - 1 for line in lines]
    assert all(500 < size < 2_000 for size in sizes)


@pytest.mark.slow
def test_what_is_made_is_like_what_was_published() -> None:
    """Among expressions so long that hardly one is drawn twice; how many short ones there are depends on the draws.

    Of the files that the card means, 10,000 have 42.8 symbols on average, as many as the published ones have, with a
    standard error of 0.75.
    """
    published = lengths(read(corpus("listops/test_d20s.tsv"), "listops").structures)
    published = published[published >= LONG]
    made = np.array([len(symbols) for symbols in drawn(Grammar(shortest=LONG), 3_000)])
    error = np.hypot(made.std() / len(made) ** 0.5, published.std() / len(published) ** 0.5)
    assert abs(made.mean() - published.mean()) < 3 * error
    for share in (5, 25, 50, 75, 95):
        assert np.percentile(made, share) == pytest.approx(np.percentile(published, share), rel=0.1)


LONG = 14


def lengths(trees: Sequence[Structure]) -> NDArray[np.int64]:
    return np.array([tree.size + sum(node in OPERATORS for node in tree.nodes) for tree in trees])


def test_the_cards_say_that_they_are_made() -> None:
    for name in ("listops", "listops-long"):
        assert card(name).maker == name
        assert all(file.url is None and file.sha256 for file in card(name).files)
