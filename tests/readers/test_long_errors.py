"""No error quotes a whole file, whatever the reader."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

from structpe.errors import LONGEST_TEXT, ReadError, StructPEError, bounded, explained
from structpe.formats import READERS, read
from tests.modules import ROOT

SEEDS = sorted(
    (each.name.rpartition("-")[0], each)
    for each in (ROOT / "experiments" / "fuzz" / "seeds").iterdir()
    if each.suffix not in (".parquet", ".parts")
)
LONG = "x" * 70_000
WORD = re.compile(r"[^\s<>()\[\]{}\"',;:=|/]+")


def long_ones(text: str) -> list[str]:
    """The text with each of some words, or each of some lines, as long as no word is."""
    words = list(WORD.finditer(text))
    some = words[:: max(1, len(words) // 12)]
    return [LONG, *(text[: word.start()] + LONG + text[word.end() :] for word in some), text[: len(text) // 2] + LONG]


@pytest.mark.parametrize(("reader", "seed"), SEEDS, ids=[seed.name for _, seed in SEEDS])
def test_the_error_for_a_long_piece_is_short(reader: str, seed: Path, tmp_path: Path) -> None:
    errors = 0
    for text in long_ones(seed.read_text(encoding="utf-8")):
        file = tmp_path / f"long{seed.suffix}"
        file.write_text(text, encoding="utf-8")
        try:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                read(file, reader)
            assert all(len(str(each.message)) <= LONGEST_TEXT for each in told)
        except StructPEError as error:
            errors += 1
            said = explained(error, "")
            assert len(said) <= LONGEST_TEXT + 2000, said[:300]
            assert said.startswith(str(file)), "the place is not left out"
    assert errors or reader == "tokens", "one at least is an error"


def test_readers_have_seeds() -> None:
    assert {reader for reader, _ in SEEDS} | {"parquet", "tu"} >= {name for name in READERS if name != "tree"}


def test_of_a_long_message_the_beginning_and_the_end_are_kept() -> None:
    error = ReadError(f"what is wrong: {LONG}; what to do").at("p" * 5000, "item 3")
    assert error.message.startswith("what is wrong: x")
    assert error.message.endswith("x; what to do")
    assert len(error.message) <= LONGEST_TEXT
    assert len(str(error)) < LONGEST_TEXT + 1100
    assert bounded("short") == "short"
    assert len(bounded("a" * 4001)) <= 4000
    assert len(explained(ValueError(LONG), "add --debug")) < LONGEST_TEXT + 200
