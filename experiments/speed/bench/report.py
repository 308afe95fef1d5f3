"""Prints the tables: what they were made with, then row by row as they are measured."""

from __future__ import annotations

import datetime
import os
import platform
import sys
import time
from collections.abc import Sequence

import alone
import attention
import beside
import injected
import numpy as np
import structured
import torch
from peers import LIBRARIES, installed
from tables import MISSING, Table, line
from threadpoolctl import threadpool_limits
from turns import Disagreement

import structpe
from structpe.errors import StructPEError
from structpe.registry import unknown

__all__ = ["listed", "report"]

TABLES = (beside.TABLE, alone.TABLE, attention.TABLE, structured.TABLE, injected.TABLE)


def report(only: Sequence[str] | None, rounds: int | None) -> bool:
    """Measure the rows of these names, or all. Whether all could be.

    Raises:
        StructPEError: there is no row of that name.
        Disagreement: another library computes something else.
    """
    known = sorted({row.name for table in TABLES for row in table.rows})
    for name in only or ():
        if name not in known:
            raise StructPEError(unknown("encoding or position model", name, known))
    torch.set_num_threads(1)
    with threadpool_limits(1):
        print(head(), flush=True)
        sound = [_print(table, only, rounds or table.rounds) for table in TABLES]
    return all(sound)


def listed() -> str:
    """The table, the name and the graphs of each row."""
    return "\n".join("\t".join([table.title, row.name, row.of]) for table in TABLES for row in table.rows)


def head() -> str:
    """With what the tables are made, and where."""
    here = installed()
    versions = {"structpe": structpe.__version__, "Python": platform.python_version()}
    versions |= {"numpy": np.__version__, **here}
    made = f"{datetime.date.today().isoformat()}, one thread of {os.cpu_count()} {platform.machine()} cores"
    without = [name for name in LIBRARIES if name not in here]
    lacking = f"; not installed: {', '.join(without)}" if without else ""
    return f"{made}; {', '.join(f'{name} {number}' for name, number in versions.items())}{lacking}."


def _print(table: Table, only: Sequence[str] | None, rounds: int) -> bool:
    """A table, if it has such rows; whether no row had a fault."""
    rows = [row for row in table.rows if only is None or row.name in only]
    if rows:
        print(table.head(), flush=True)
    start, sound = time.monotonic(), True
    for done, row in enumerate(rows, start=1):
        try:
            for cells in row.measure(rounds):
                print(line(cells), flush=True)
        except Disagreement:
            raise
        except Exception as error:  # a fault, ours or theirs: shown, so that other rows are still measured
            sound = False
            fault = f"FAULT: {type(error).__name__}: {' '.join(str(error).split())}"
            print(line([row.name, row.of, fault, *[MISSING] * (len(table.columns) - 3)]), flush=True)
        spent = time.monotonic() - start
        print(f"{table.title}: {done} of {len(rows)}, {row.name}, {spent:.0f} s", file=sys.stderr, flush=True)
    return sound
