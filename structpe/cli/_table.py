"""Aligned tables, for a terminal and for a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from structpe.printing import printable, unescaped

__all__ = ["print_table"]

_NARROWEST = 18
"""The smallest width of a folded column."""


def print_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[str] = (), long: Sequence[str] = ()
) -> None:
    """Print a table; in a pipe no line is broken, on a terminal columns are folded to its width.

    Args:
        header: the names of the columns.
        rows: cells of each row.
        numeric: names of the columns that are aligned to the right.
        long: names of the columns that are folded if the terminal is too narrow.
    """
    from rich import box
    from rich.console import Console, JustifyMethod
    from rich.table import Table

    rows = [[printable(cell) for cell in row] for row in rows]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
    widths = []
    for name, cells in zip(header, zip(*rows, strict=True), strict=True):
        widths.append(_NARROWEST if name in long else max(map(len, (name, *cells))))
        justify: JustifyMethod = "right" if name in numeric else "left"
        table.add_column(name, justify=justify, overflow="fold", min_width=widths[-1])
    for row in rows:
        table.add_row(*row)
    console = Console(markup=False, highlight=False, emoji=False)
    # A terminal that is still too narrow breaks the lines itself; rich would cut cells.
    console.width = max(console.width, sum(widths) + 2 * len(widths)) if console.is_terminal else 10_000
    with console.capture() as captured:  # printed by Python, so that a broken pipe raises the usual error
        console.print(table)
    print("\n".join(line.rstrip() for line in captured.get().split("\n")).rstrip("\n"), file=unescaped(sys.stdout))
