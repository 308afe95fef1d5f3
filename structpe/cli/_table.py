"""Aligned tables that read well on a terminal and in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["print_table"]


def print_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[str] = (), long: Sequence[str] = ()
) -> None:
    """Print a table; in a pipe no line is broken, on a terminal it is folded to the width there.

    Args:
        header: a name for each column.
        rows: cells of each row.
        numeric: names of the columns that are set flush right.
        long: names of the columns that are folded where the terminal is too narrow.
    """
    from rich import box
    from rich.console import Console, JustifyMethod
    from rich.measure import Measurement
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
    for name in header:
        folds = name in long
        justify: JustifyMethod = "right" if name in numeric else "left"
        table.add_column(name, justify=justify, no_wrap=not folds, overflow="fold", min_width=18 if folds else None)
    for row in rows:
        table.add_row(*row)
    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = 10_000
    # Below the width of the cells that are never folded, rich would cut them off.
    console.width = max(console.width, Measurement.get(console, console.options, table).minimum)
    console.print(table)
