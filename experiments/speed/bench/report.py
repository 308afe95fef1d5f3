"""Prints the tables: what they were made with, then row by row as they are measured; and keeps them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence

import alone
import attention
import beside
import injected
import ready
import structured
import torch
from tables import MISSING, Table, line
from threadpoolctl import threadpool_limits
from timing import made, write
from turns import Disagreement

from structpe.errors import StructPEError
from structpe.registry import unknown

__all__ = ["TABLES", "listed", "report"]

TABLES = (beside.TABLE, alone.TABLE, attention.TABLE, structured.TABLE, injected.TABLE, ready.TABLE)
FAULT = "FAULT: "


def report(
    only: Sequence[str] | None, rounds: int | None, keep: str | None = None, tables: Sequence[str] | None = None
) -> bool:
    """Measure the rows of these names, or all. Whether all could be.

    Args:
        only: names of rows.
        rounds: turns of each, if not those of the table.
        keep: what follows the name of a table in that of the file that keeps it; None keeps none. A table in which a
            row has a fault is not kept.
        tables: their names; all by default.

    Raises:
        StructPEError: there is no row of that name.
        Disagreement: another library computes something else.
    """
    known = sorted({row.name for table in TABLES for row in table.rows})
    for name in only or ():
        if name not in known:
            raise StructPEError(unknown("encoding or position model", name, known))
    torch.set_num_threads(1)
    sound = True
    with threadpool_limits(1):
        print(made(), flush=True)
        for table in [table for table in TABLES if tables is None or table.name in tables]:
            lines = list(_printed(table, only, rounds or table.rounds))
            faulty = any(FAULT in each for each in lines)
            sound = sound and not faulty
            if lines and keep is not None and not faulty:
                write(table.name + keep, "\n".join(lines))
    return sound


def listed() -> str:
    """The table, the name and the graphs of each row."""
    return "\n".join("\t".join([table.title, row.name, row.of]) for table in TABLES for row in table.rows)


def _printed(table: Table, only: Sequence[str] | None, rounds: int) -> Iterator[str]:
    """The lines of a table, if it has such rows, as they are printed."""
    rows = [row for row in table.rows if only is None or row.name in only]
    if not rows:
        return
    print(f"\n## {table.title}\n\n{table.head()}", flush=True)
    yield table.head()
    start = time.monotonic()
    for done, row in enumerate(rows, start=1):
        try:
            for cells in row.measure(rounds):
                print(line(cells), flush=True)
                yield line(cells)
        except Disagreement:
            raise
        except Exception as error:  # a fault, ours or theirs: shown, so that other rows are still measured
            fault = f"{FAULT}{type(error).__name__}: {' '.join(str(error).split())}"
            print(line([row.name, row.of, fault, *[MISSING] * (len(table.columns) - 3)]), flush=True)
            yield fault
        spent = time.monotonic() - start
        print(f"{table.title}: {done} of {len(rows)}, {row.name}, {spent:.0f} s", file=sys.stderr, flush=True)
