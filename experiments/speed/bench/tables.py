"""The tables: which rows they have, and how a row is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

__all__ = ["MISSING", "Row", "Table", "line", "number"]

MISSING = "-"
"""What stands in a cell for which there is no number."""


@dataclass(frozen=True)
class Row:
    """A row, or several that are measured together.

    Args:
        name: of the encoding or position model.
        of: on which graphs, where that is a matter of the row.
        measure: from a number of rounds to the cells of each line.
    """

    name: str
    of: str
    measure: Callable[[int], Iterator[Sequence[str]]]


@dataclass(frozen=True)
class Table:
    """A table of Markdown.

    Args:
        name: of the file that keeps it.
        title: its heading.
        columns: what stands over the cells.
        rows: what can be measured.
        rounds: how often each is, unless one says otherwise.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Row]
    rounds: int

    def head(self) -> str:
        """The lines above the rows; columns of numbers, which name their unit or divide, are on the right."""
        sides = "".join("|--:" if ", " in each or "/" in each else "|---" for each in self.columns)
        return f"{line(self.columns)}\n{sides}|"


def line(cells: Sequence[str]) -> str:
    """A line of a table; a bar within a cell would end it."""
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def number(value: float) -> str:
    """Three digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
