"""SCAN, COGS and ListOps: lines with what is given and what is due."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structpe.datasets.trees import Grammar, bracketed, expressions
from structpe.errors import ReadError
from structpe.formats import read
from structpe.formats.listops import expression, value
from tests.datasets import corpus
from tests.together import together


def written(folder: Path, text: str) -> Path:
    file = folder / "a.txt"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_command_of_scan(tmp_path: Path) -> None:
    (item,) = read(written(tmp_path, "IN: jump left twice OUT: I_TURN_LEFT I_JUMP I_TURN_LEFT I_JUMP\n"), "scan")
    assert item.structure.nodes == ("jump", "left", "twice")
    assert item.structure.edges.tolist() == [[0, 1], [1, 2]]
    assert item.texts == ("I_TURN_LEFT I_JUMP I_TURN_LEFT I_JUMP",)
    assert item.id == "1"


@pytest.mark.parametrize("line", ["jump OUT: I_JUMP", "IN: jump", "IN: OUT: I_JUMP", "IN: a OUT: b OUT: c", "IN:"])
def test_what_is_no_command_is_named(tmp_path: Path, line: str) -> None:
    file = written(tmp_path, f"IN: walk OUT: I_WALK\n{line}\n")
    message = f"{file}: item 2: line 2: the line is {line!r}; 'IN: words OUT: actions' is needed"
    with pytest.raises(ReadError, match=re.escape(message)):
        read(file, "scan")
    assert len(read(file, "scan", on_error="skip")) == 1


def test_a_sentence_of_cogs(tmp_path: Path) -> None:
    (item,) = read(written(tmp_path, "A cat ran .\tcat ( x _ 1 )\tprim_to_subj_proper\n"), "cogs")
    assert item.structure.nodes == ("A", "cat", "ran", ".")
    assert item.texts == ("cat ( x _ 1 )",)
    assert item.metadata["type"] == "prim_to_subj_proper"


@pytest.mark.parametrize("line", ["a\tb", "a\tb\tc\td", "\tb\tc", "a b c"])
def test_what_is_no_sentence_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(ReadError, match=r"item 1: line 1: the line is .* separated by tabs"):
        read(written(tmp_path, f"{line}\n"), "cogs")


@pytest.mark.parametrize(
    "line",
    ["6\t[MAX 2 [MED 6 1 9 ] 0 ]", "6\t( ( ( ( [MAX 2 ) ( ( ( ( [MED 6 ) 1 ) 9 ) ] ) ) 0 ) ] )"],
    ids=["plain", "bracketed"],
)
def test_an_expression_of_listops(tmp_path: Path, line: str) -> None:
    (item,) = read(written(tmp_path, f"{line}\n"), "listops")
    assert item.structure.nodes == ("MAX", "2", "MED", "6", "1", "9", "0")
    assert item.structure.edges.tolist() == [[0, 1], [0, 2], [2, 3], [2, 4], [2, 5], [0, 6]]
    assert item.structure.root == 0
    assert (item.texts, item.metadata["value"]) == (("6",), 6)


def test_files_of_the_long_range_arena(tmp_path: Path) -> None:
    (item,) = read(written(tmp_path, "Source\tTarget\n( ( ( [SM 7 ) 8 ) ] )\t5\n"), "listops")
    assert (item.structure.nodes, item.id) == (("SM", "7", "8"), "2")


@together(
    "symbols, expected",
    [
        ("7", 7),
        ("[MIN 3 1 2 ]", 1),
        ("[MAX 3 1 2 ]", 3),
        ("[MED 1 2 9 ]", 2),
        ("[MED 1 4 ]", 2),
        ("[MED 9 1 3 4 ]", 3),
        ("[SM 7 8 9 ]", 4),
        ("[MAX [MIN 5 4 ] [SM 9 9 ] ]", 8),
    ],
)
def test_what_an_expression_comes_to(symbols: str, expected: int) -> None:
    assert value(symbols.split()) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no expression"),
        ("[MAX 1", "1 operations lack their ]; add it"),
        ("[MAX ]", "the operation MAX has no argument; give it one"),
        ("]", "']' closes no operation; remove it"),
        ("1 2", "'2' is after the end of the expression; give one expression per line"),
        ("[SUM 1 2 ]", "'[SUM' is not a symbol of ListOps; known: [MIN, [MAX, [MED, [SM, ], 0 to 9"),
        ("[MAX 10 ]", "'10' is not a symbol of ListOps"),
    ],
)
def test_what_is_no_expression_is_refused(text: str, message: str) -> None:
    with pytest.raises(ReadError, match=re.escape(message)):
        expression(text)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("3\t[MAX 1 2 ]", "the value is '3', and the expression has the value 2; correct one of them"),
        ("[MAX 1 2 ]", "the line is '[MAX 1 2 ]'; a value, a tab and an expression are needed"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(ReadError, match=re.escape(f"item 1: line 1: {message}")):
        read(written(tmp_path, f"{line}\n"), "listops")


def test_an_expression_may_be_deeper_than_the_stack() -> None:
    deep = 20_000
    assert expression("[MAX " * deep + "3" + " ]" * deep).size == deep + 1


@given(st.integers(0, 10_000))
def test_the_published_writing_is_read_back(seed: int) -> None:
    symbols = next(expressions(Grammar(deepest=6), random.Random(seed)))
    tree = expression(bracketed(symbols))
    assert [node if node.isdigit() else f"[{node}" for node in tree.nodes] == [s for s in symbols if s != "]"]
    assert value(symbols) == evaluated(tree.nodes, tree.edges)


def evaluated(nodes: Sequence[str], edges: np.ndarray) -> int:
    """The value by another way: from the tree, leaves first."""
    arguments: list[list[int]] = [[] for _ in nodes]
    result = -1
    for node in reversed(range(len(nodes))):
        digits = sorted(arguments[node])
        half = len(digits) // 2
        result = {
            "MIN": lambda d: d[0],
            "MAX": lambda d: d[-1],
            "SM": lambda d: sum(d) % 10,
            "MED": lambda d, half=half: d[half] if len(d) % 2 else int((d[half - 1] + d[half]) / 2),
        }.get(nodes[node], lambda d, node=node: int(nodes[node]))(digits)
        for parent, child in edges.tolist():
            if child == node:
                arguments[parent].append(result)
    return result


@pytest.mark.slow
def test_the_published_test_set_is_read() -> None:
    items = read(corpus("listops/test_d20s.tsv"), "listops")
    assert len(items) == 10_000
    assert max(item.structure.size for item in items) > 500
