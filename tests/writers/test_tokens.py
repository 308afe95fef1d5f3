"""Tokens: lines come back, and only a path is a line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import structpe
from structpe import Structure
from structpe.formats import as_text, read, tree, write
from structpe.formats.writing import WriteError


def test_what_was_read_comes_back_with_its_blanks(tmp_path: Path) -> None:
    (tmp_path / "a.tokens").write_bytes("the  dog\tbarks \n\u00e9t\u00e9 !\n".encode())
    write(read(tmp_path / "a.tokens"), tmp_path / "b.tokens")
    assert (tmp_path / "b.tokens").read_bytes() == (tmp_path / "a.tokens").read_bytes()


@given(st.lists(st.text(min_size=1, max_size=5).filter(lambda word: word.split() == [word]), min_size=1, max_size=6))
def test_every_path_comes_back_or_is_refused(words: list[str]) -> None:
    try:
        text = as_text(structpe.path(words), "tokens")
    except WriteError as error:
        assert "lone surrogate" in error.message  # noqa: PT017
    else:
        assert text.count("\n") == 1
        assert text.split() == words


def test_what_is_no_path_of_tokens_is_named() -> None:
    for thing, message in [
        (
            tree(["a", "b", "c"], [2, 0, 2]),
            "the structure is not a path along its order, as a line of tokens needs",
        ),
        (Structure(("a", "b"), np.zeros((0, 2), int)), "the structure is not a path along its order"),
        (structpe.path(["a b"]), "the token 'a b' is empty or has white space; tokens are separated by spaces"),
        (structpe.path([""]), "the token '' is empty or has white space"),
    ]:
        with pytest.raises(WriteError) as caught:
            as_text(thing, "tokens")
        assert message in str(caught.value)
