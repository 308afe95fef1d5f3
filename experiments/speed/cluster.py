"""Whether a cluster encodes 200,000 graphs as one process would, though one of its workers is killed in the middle.

    python experiments/speed/cluster.py HIV.csv FOLDER                     # about 1 GB there, removed again
    python experiments/speed/cluster.py HIV.csv FOLDER --graphs 5000

The graphs are the molecules of a table of SMILES, again and again, each time with its atoms in another order. They are
made while they are encoded, so that no list of them is ever in memory. The cluster is Dask's, with two worker processes
of one thread on this machine; when half of the graphs are encoded, the first worker is killed (SIGKILL). Afterwards the
store is verified, and every fiftieth shard is encoded by this process and compared array by array, byte by byte.

What it printed last is in results/cluster.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import distributed
import numpy as np

import structpe
from structpe.data.chunks import parts
from structpe.data.store import Store, load, write
from structpe.encodings import Encoding, Laplacian, RandomWalk, UndirectedDistance
from structpe.formats import read
from structpe.structure import Structure
from structpe.system.workers import workers

ENCODINGS: tuple[Encoding, ...] = (UndirectedDistance(), RandomWalk(steps=16, undirected=True), Laplacian(8))
EVERY = 50
"""Of so many shards one is compared with what this process computes."""


def permuted(molecules: Sequence[Structure], count: int) -> Iterator[Structure]:
    """So many graphs, each a molecule whose atoms have another order; the same in each call."""
    for number in range(count):
        random = np.random.default_rng([0, number])
        one = molecules[number % len(molecules)]
        to = random.permutation(one.size)
        nodes = [one.nodes[i] for i in np.argsort(to)]
        yield replace(one, nodes=tuple(nodes), edges=to[one.edges], name=f"{one.name}/{number // len(molecules)}")


@dataclass
class Killer:
    """Counts graphs, and kills a worker when half of them are encoded."""

    victim: int
    half: int
    killed: float | None = None
    began: float = field(default_factory=time.perf_counter)

    def __call__(self, done: int) -> None:
        if self.killed is None and done >= self.half:
            os.kill(self.victim, signal.SIGKILL)
            self.killed = time.perf_counter() - self.began


def compared(store: Store, graphs: Iterator[Structure]) -> int:
    """How many shards are, byte by byte, what this process computes.

    Raises:
        AssertionError: one is not.
    """
    count = first = 0
    for number, some in enumerate(parts(graphs)):
        if number % EVERY == 0:
            for encoding in store.encodings:
                for row, mine in enumerate(encoding.many(some)):
                    theirs = store.value(first + row, encoding)
                    for name in ("values", "index", "rows", "listed"):
                        one, two = getattr(mine, name), getattr(theirs, name)
                        assert (one is None) == (two is None), (number, row, encoding, name)
                        assert one is None or one.tobytes() == two.tobytes(), (number, row, encoding, name)
            count += 1
        first += len(some)
    return count


def peak() -> float:
    """The most memory that this process has had, in MiB."""
    return int(re.findall(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[0]) / 1024


def main() -> None:
    """Encode, compare, and print what it took."""
    parser = argparse.ArgumentParser()
    parser.add_argument("table", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--graphs", type=int, default=200_000)
    given = parser.parse_args()
    molecules = [item.structure for item in read(given.table, on_error="skip").items]
    reading = peak()
    place = given.folder / "cluster-store"
    shutil.rmtree(place, ignore_errors=True)
    made = time.process_time()
    for graph in islice(permuted(molecules, 2000), 2000):
        del graph
    making = (time.process_time() - made) / 2000
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        before = {worker.pid for worker in cluster.workers.values()}
        killer = Killer(min(before), given.graphs // 2)
        with workers(scheduler=cluster.scheduler_address) as executor:
            write(place, permuted(molecules, given.graphs), ENCODINGS, killer, executor=executor)
        took = time.perf_counter() - killer.began
        after = {worker.pid for worker in cluster.workers.values()}
    report(given.graphs, len(molecules), place, took, killer, making, len(after - before))
    print(f"| of which it had when it had read the molecules, MiB | {reading:.0f} |")
    store = load(place)
    store.verify()
    same = compared(store, permuted(molecules, given.graphs))
    found = [store.find(graph) for graph in islice(permuted(molecules, given.graphs), 5)]
    print(f"| shards compared with those of one process, byte by byte | {same}, all equal |")
    print(f"| the first five graphs, found by their content | {', '.join(map(str, found))} |")
    shutil.rmtree(place)


def report(graphs: int, molecules: int, place: Path, took: float, killer: Killer, making: float, started: int) -> None:
    """Print the figures."""
    assert killer.killed is not None, "no worker was killed; give more graphs"
    files = list(place.iterdir())
    size = sum(file.stat().st_size for file in files)
    tables = sum(file.stat().st_size for file in files if not file.stem.isdigit())
    rows: list[tuple[str, Any]] = [
        ("graphs", f"{graphs:,}, from {molecules:,} molecules"),
        ("encodings", ", ".join(encoding.name for encoding in ENCODINGS)),
        ("shards", f"{sum(file.stem.isdigit() for file in files):,}"),
        ("wall-clock time, s", f"{took:.0f}"),
        ("a worker was killed after, s", f"{killer.killed:.0f}"),
        ("workers started in its place", started),
        ("graphs per second, two workers", f"{graphs / took:,.0f}"),
        ("making a graph in this process, us", f"{1e6 * making:.0f}"),
        ("bytes on disk", f"{size:,} ({size / graphs:,.0f} per graph, {tables / graphs:.1f} of them tables)"),
        ("memory of this process at the most, MiB", f"{peak():.0f}"),
        ("versions", f"structpe {structpe.__version__}, Dask {distributed.__version__}, {platform.python_version()}"),
    ]
    print("| | |\n|---|---|")
    for name, value in rows:
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    main()
