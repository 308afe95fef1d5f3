"""ListOps: nested operations on lists of digits, and their values (Nangia and Bowman 2018)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from structpe.errors import ReadError
from structpe.formats.reading import Item, Yielded, attempt, reader
from structpe.formats.text import lines, shown
from structpe.structure import Structure

__all__ = ["OPERATORS", "expression", "listops", "value"]

OPERATORS: dict[str, Callable[[Sequence[int]], int]] = {
    "MIN": min,
    "MAX": max,
    "MED": lambda digits: (sorted(digits)[(len(digits) - 1) // 2] + sorted(digits)[len(digits) // 2]) // 2,
    "SM": lambda digits: sum(digits) % 10,
}
"""The function of each operation on its arguments, digits."""

DIGITS = tuple("0123456789")
HEADER = ("Source", "Target")
"""First line of the files of the Long Range Arena, whose second column is the value."""


@reader("listops", ".listops", also=".tsv")
def listops(path: Path) -> Iterator[Yielded]:
    """ListOps, a value and an expression per line: trees from an operation to its arguments.

    Nodes are operations and digits in the order of the text, the root is the outermost operation. ``texts`` and
    ``metadata["value"]`` are the value, a digit, which is checked. Expressions are written ``[MAX 2 9 [MIN 4 7 ] ]``,
    with or without the parentheses of the published files. In files of the Long Range Arena, which begin with the line
    ``Source``, ``Target``, the value comes after the expression.
    """
    swapped = False
    for number, line in lines(path):
        if number == 1 and tuple(line.split("\t")) == HEADER:
            swapped = True
        elif line.strip():
            yield attempt(partial(_item, line, number, path.name, swapped), line=number)


def _item(line: str, number: int, file: str, swapped: bool) -> Item:
    columns = line.split("\t")
    if len(columns) != 2:
        raise ReadError(f"the line is {shown(line)}; a value, a tab and an expression are needed")
    given, text = columns[::-1] if swapped else columns
    structure, digit = _parsed(text, f"{file}:{number}")
    if given.strip() != str(digit):
        raise ReadError(f"the value is {shown(given)}, and the expression has the value {digit}; correct one of them")
    return Item(structure, (str(digit),), str(number), {"value": digit})


def expression(text: str, name: str = "") -> Structure:
    """The tree of an expression.

    Args:
        text: such as ``[MAX 2 9 [MIN 4 7 ] ]``; parentheses are ignored.
        name: where it comes from, for error messages.

    Raises:
        ReadError: it is not an expression.
    """
    return _parsed(text, name)[0]


def value(symbols: Sequence[str]) -> int:
    """The value of an expression.

    Args:
        symbols: its symbols, such as ``("[MAX", "2", "9", "]")``.

    Raises:
        ReadError: they are not an expression.
    """
    return _evaluated(symbols)[2]


def _parsed(text: str, name: str) -> tuple[Structure, int]:
    nodes, edges, digit = _evaluated(text.replace("(", " ").replace(")", " ").split())
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return Structure(tuple(nodes), ends, order=np.arange(len(nodes)), root=0, name=name), digit


def _evaluated(symbols: Sequence[str]) -> tuple[list[str], list[tuple[int, int]], int]:
    """Nodes, edges and the value of an expression, without recursion, since some are deeper than Python's stack."""
    nodes: list[str] = []
    edges: list[tuple[int, int]] = []
    arguments: list[list[int]] = [[]]
    above: list[int] = []
    for symbol in symbols:
        if nodes and not above:
            raise ReadError(f"{shown(symbol)} is after the end of the expression; give one expression per line")
        if symbol == "]":
            _close(nodes, arguments, above)
            continue
        if above:
            edges.append((above[-1], len(nodes)))
        if symbol in DIGITS:
            arguments[-1].append(int(symbol))
            nodes.append(symbol)
            continue
        if not symbol.startswith("[") or symbol[1:] not in OPERATORS:
            known = ", ".join(f"[{name}" for name in OPERATORS)
            raise ReadError(f"{shown(symbol)} is not a symbol of ListOps; known: {known}, ], 0 to 9")
        above.append(len(nodes))
        arguments.append([])
        nodes.append(symbol[1:])
    if above or not nodes:
        raise ReadError(f"{len(above)} operations lack their ]; add it" if above else "there is no expression")
    return nodes, edges, arguments[0][0]


def _close(nodes: Sequence[str], arguments: list[list[int]], above: list[int]) -> None:
    if not above:
        raise ReadError("']' closes no operation; remove it")
    operator, digits = nodes[above.pop()], arguments.pop()
    if not digits:
        raise ReadError(f"the operation {operator} has no argument; give it one")
    arguments[-1].append(OPERATORS[operator](digits))
