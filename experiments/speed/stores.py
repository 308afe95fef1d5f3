"""What a study holds in memory of the encodings of its graphs, and how long it takes to open them.

    python experiments/speed/stores.py FOLDER                     # writes about 200 MB there, and removes them again
    python experiments/speed/stores.py FOLDER --graphs 2000

Graphs are drawn with a fixed seed: trees of 12 to 35 nodes with some edges more. Each row is a process of its own. It
has the graphs in memory and the stores on disk before it is measured; then it opens the stores as a run of a study does
and asks for the encodings of every graph, as the examples of a training do. Memory is what Linux counts as its
own (RssAnon): pages of mapped files are not, as the system takes them back when it needs memory. Bytes per graph are
differences between the number of graphs and half of it, those per encoding between three encodings and one.

It runs with the code of earlier commits too, to compare. On 2026-11-24, two shared x86-64 CPU cores, one thread, Python
3.11.7, NumPy 2.4.6, 40,000 graphs; "before" is commit a2f987b:

| | graphs | bytes per graph | bytes per encoding of a graph | opening 3 encodings, s | reading one, us |
|---|---|---|---|---|---|
| before | 40,000 | 182 | 344 | 1.29 | 0.1 |
| now | 40,000 | 119 | 0 | 0.28 | 7.0 |

A graph itself takes 1,110 bytes as a Structure; an encoding whose shard has been closed is read in 124 us.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from structpe.data import store
from structpe.encodings import Distance, Encoding, Laplacian, RandomWalk
from structpe.structure import Structure
from structpe.tasks.prediction.encodings import encode

ENCODINGS: tuple[Encoding, ...] = (RandomWalk(steps=16), Laplacian(8), Distance())


def graphs(count: int) -> list[Structure]:
    """Trees with some edges more."""
    random, drawn = np.random.default_rng(0), []
    for number in range(count):
        size = int(random.integers(12, 36))
        parents = (random.random(size - 1) * np.arange(1, size)).astype(np.int64)
        tree = np.stack([parents, np.arange(1, size)], axis=1)
        more = random.integers(0, size, (3, 2))
        edges = np.concatenate([tree, more[more[:, 0] != more[:, 1]]])
        drawn.append(Structure(("C",) * size, edges, directed=False, name=f"drawn:{number}"))
    return drawn


def own() -> int:
    """Bytes of memory that this process does not share with a file."""
    return 1024 * int(re.findall(r"RssAnon:\s*(\d+) kB", Path("/proc/self/status").read_text())[0])


def measured(folder: Path, count: int, encodings: int) -> None:
    """Print the bytes that one process holds and the seconds that it takes to open the stores."""
    before = own()
    drawn = graphs(count)
    structures = own() - before
    encode(drawn[:1], ENCODINGS[:encodings], folder / "one")  # what is done once per process does not count
    before, began = own(), time.process_time()
    opened = encode(drawn, ENCODINGS[:encodings], folder)
    took = time.process_time() - began
    rows = [opened.of(number) for number in range(count)]
    held = own() - before
    began = time.process_time()
    for row in rows:
        for encoding in ENCODINGS[:encodings]:
            _ = row[encoding]
    reading = time.process_time() - began
    closed = reading_closed(drawn, folder)
    print(held, took, reading, closed, structures)


def reading_closed(drawn: list[Structure], folder: Path) -> float:
    """CPU seconds of reading an encoding of a graph from a shard that has been checked, and closed since."""
    store._OPEN = 1
    values = encode(drawn, ENCODINGS[:1], folder).values[ENCODINGS[0]]
    for number in range(0, len(drawn), 100):  # checksums are compared once
        _ = values[number]
    numbers = np.random.default_rng(0).permutation(len(drawn))[:500].tolist()
    began = time.process_time()
    for number in numbers:
        _ = values[number]
    return (time.process_time() - began) / len(numbers)


def main() -> None:
    """Print what is held per graph and per encoding."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--graphs", type=int, default=40_000)
    parser.add_argument("--row", type=int, nargs=2)
    given = parser.parse_args()
    if given.row:
        measured(given.folder, *given.row)
        return
    found = {}
    half = given.graphs // 2
    for count in (half, given.graphs):
        for encodings in (1, 3):
            encode(graphs(count), ENCODINGS[:encodings], given.folder / "stores")
            command = [sys.executable, __file__, str(given.folder / "stores"), "--row", str(count), str(encodings)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[count, encodings] = [float(each) for each in done.stdout.split()]
    shutil.rmtree(given.folder / "stores")
    slope = {k: (found[given.graphs, k][0] - found[half, k][0]) / (given.graphs - half) for k in (1, 3)}
    each = (slope[3] - slope[1]) / 2
    _, opening, reading, closed, structures = found[given.graphs, 3]
    print("| graphs | bytes per graph | bytes per encoding of a graph | opening 3 encodings, s | reading one, us |")
    print("|---|---|---|---|---|")
    read = reading / given.graphs / 3 * 1e6
    print(f"| {given.graphs:,} | {slope[1] - each:,.0f} | {each:,.0f} | {opening:.2f} | {read:.1f} |\n")
    print(f"A graph itself, as a Structure: {structures / given.graphs:,.0f} bytes.")
    print(f"Reading an encoding whose shard has been closed: {1e6 * closed:,.0f} us.")


if __name__ == "__main__":
    main()
