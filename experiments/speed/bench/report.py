"""Prints the tables: what they were made with, then row by row as they are measured."""

from __future__ import annotations

import datetime
import os
import platform
import sys
import time
from collections.abc import Sequence

import beside
import numpy as np
import torch
from peers import LIBRARIES, installed
from tables import Table, line
from threadpoolctl import threadpool_limits

import structpe
from structpe.errors import StructPEError
from structpe.registry import unknown

__all__ = ["report"]

TABLES = (beside.TABLE,)


def report(only: Sequence[str] | None, rounds: int | None, names: bool) -> None:
    """Measure the rows of these names, or all; or say which there are.

    Raises:
        StructPEError: there is no row of that name.
        Disagreement: another library computes something else.
    """
    known = sorted({row.name for table in TABLES for row in table.rows})
    for name in only or ():
        if name not in known:
            raise StructPEError(unknown("encoding or position model", name, known))
    if names:
        for table in TABLES:
            for row in table.rows:
                print("\t".join([table.title, row.name, row.of]))
        return
    torch.set_num_threads(1)
    with threadpool_limits(1):
        print(head(), flush=True)
        for table in TABLES:
            _print(table, only, rounds or table.rounds)


def head() -> str:
    """With what the tables are made, and where."""
    here = installed()
    versions = {"structpe": structpe.__version__, "Python": platform.python_version()}
    versions |= {"numpy": np.__version__, **here}
    made = f"{datetime.date.today().isoformat()}, one thread of {os.cpu_count()} {platform.machine()} cores"
    without = [name for name in LIBRARIES if name not in here]
    lacking = f"; not installed: {', '.join(without)}" if without else ""
    return f"{made}; {', '.join(f'{name} {number}' for name, number in versions.items())}{lacking}."


def _print(table: Table, only: Sequence[str] | None, rounds: int) -> None:
    rows = [row for row in table.rows if only is None or row.name in only]
    if not rows:
        return
    print(table.head(), flush=True)
    start = time.monotonic()
    for done, row in enumerate(rows, start=1):
        for cells in row.measure(rounds):
            print(line(cells), flush=True)
        spent = time.monotonic() - start
        print(f"{table.title}: {done} of {len(rows)}, {row.name}, {spent:.0f} s", file=sys.stderr, flush=True)
