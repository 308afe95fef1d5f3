"""What `structpe encode` takes for all 41,127 molecules of HIV, with one process and with two.

    python experiments/speed/hiv.py HIV.csv FOLDER              # MoleculeNet's table; about 300 MB there, removed again
    python experiments/speed/hiv.py HIV.csv FOLDER --rounds 3

Encodings: distances without direction, the diagonals of 16 steps of a random walk, and 8 eigenvectors of the Laplacian.
The first rows are the command itself in a process of its own, from start to end, rows taking turns; the medians of the
rounds are printed. The stores of one and of two processes are compared byte by byte. The rows of the second table are
its parts, each measured alone in this process by CPU time: what one core does, whatever else the machine is doing.
Reading is compared with RDKit alone, in turns.

What it printed last is in results/hiv.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rdkit import Chem, rdBase
from safetensors.numpy import save_file

import structpe
from structpe.data.chunks import parts
from structpe.data.store import digests
from structpe.data.store_index import named, pack
from structpe.encodings import Encoding, Laplacian, RandomWalk, UndirectedDistance
from structpe.formats import stream
from structpe.structure import Structure
from structpe.system.files import sha256_of

WORDS = (
    "--reader smiles --option strict=false --encoding undirected-distance "
    "--encoding random-walk:steps=16,undirected=true --encoding laplacian:k=8"
)


TURN = 500
"""Molecules that are read before RDKit has its turn."""
Floats = NDArray[np.float64]

ENCODINGS: tuple[Encoding, ...] = (UndirectedDistance(), RandomWalk(steps=16, undirected=True), Laplacian(8))


def encoded(table: Path, out: Path, jobs: int) -> tuple[float, float]:
    """Wall-clock and CPU seconds of the command."""
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "structpe", "encode", str(table), *WORDS.split(), "--jobs", str(jobs)]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, "--out", str(out)], check=True, capture_output=True, env=environment)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def alone(structures: list[Structure], file: Path) -> dict[str, float]:
    """CPU seconds of the parts of encoding, in this process."""
    seconds = dict.fromkeys(("digests of structures", *(each.name for each in ENCODINGS), "writing and checksums"), 0.0)
    for encoding in ENCODINGS:
        encoding.many(structures[:10])  # what is done once per process does not count
    for some in parts(structures):
        began = time.process_time()
        of_each = digests(some)
        seconds["digests of structures"] += time.process_time() - began
        columns = []
        for encoding in ENCODINGS:
            began = time.process_time()
            columns.append(encoding.many(some))
            seconds[encoding.name] += time.process_time() - began
        began = time.process_time()
        save_file(pack(columns) | named([each.name for each in some], of_each), file)
        sha256_of(file)
        seconds["writing and checksums"] += time.process_time() - began
    file.unlink()
    return seconds


def both(table: Path) -> tuple[list[Structure], Floats, Floats]:
    """All structures of a table, and for each part of it the CPU seconds of reading and of RDKit alone, in turns."""
    structures, took = list[Structure](), list[tuple[float, float]]()
    items = stream(table, "smiles", strict=False)
    while True:
        began = time.process_time()
        some = list(islice(items, TURN))
        read = time.process_time()
        if not some:
            reading, parsing = np.array(took).T
            return structures, reading, parsing
        structures += [item.structure for item in some]
        quiet = rdBase.BlockLogs()
        parse = time.process_time()
        for item in some:
            Chem.MolFromSmiles(item.metadata["smiles"])
        took.append((read - began, time.process_time() - parse))
        del quiet


def main() -> None:
    """Print a row for each number of processes, and one of reading."""
    parser = argparse.ArgumentParser()
    parser.add_argument("table", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    load = os.getloadavg()[0]
    structures, reading, parsing = both(given.table)
    seconds, count = {"reading": float(reading.sum())}, len(structures)
    seconds |= alone(structures, given.folder / "alone.safetensors")
    stores = {jobs: given.folder / f"hiv-{jobs}" for jobs in (1, 2)}
    took: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
    for _ in range(given.rounds):
        for jobs, out in stores.items():
            took[jobs].append(encoded(given.table, out, jobs))
    one, two = ({file.name: file.read_bytes() for file in out.iterdir()} for out in stores.values())
    size = sum(map(len, one.values()))
    middle = {jobs: np.median(each, axis=0) for jobs, each in took.items()}
    share = seconds["reading"] / sum(seconds.values())
    versions = f"structpe {structpe.__version__}, NumPy {np.__version__}, Python {platform.python_version()}"
    print(f"{count:,} molecules, {size:,} bytes ({size / count:,.0f} each), the same from two processes: {one == two}.")
    print(f"{versions}; load before: {load:.1f}.\n")
    print("| | wall-clock time, s | CPU time, s | molecules per second |\n|---|---|---|---|")
    for jobs, (wall, used) in middle.items():
        print(f"| encode --jobs {jobs} | {wall:.1f} | {used:.1f} | {count / wall:,.0f} |")
    print("\n| part, one core | CPU time, s | us per molecule | molecules per second |\n|---|---|---|---|")
    for part, used in (seconds | {"together": sum(seconds.values())}).items():
        print(f"| {part} | {used:.1f} | {1e6 * used / count:.0f} | {count / used:,.0f} |")
    print(f"\nReading is {100 * share:.0f} % of the CPU time of these parts.")
    longer = np.median(reading / parsing)
    print(f"It takes {longer:.2f} times as long as RDKit's MolFromSmiles alone (median of parts of {TURN}, in turns).")
    for out in stores.values():
        shutil.rmtree(out)


if __name__ == "__main__":
    main()
