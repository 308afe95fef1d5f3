"""Memory that encoding takes at the most, as a multiple of what it returns.

    python experiments/speed/memory.py FILE.csv FILE.txt FILE.conllu    # SMILES, PENMAN, CoNLL-U; 10,000 of each
    python experiments/speed/memory.py FILE.csv --count 1000 --without-numba
    python experiments/speed/memory.py FILE.csv FILE.conllu --count 20000 --write       # the table of docs/speed.md

A data set is encoded as a training does it, part by part. The last rows are of one graph of 5,000 nodes. The peak is
that of the process beyond what it had before (Linux): all that NumPy, SciPy and numba take, and the result.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import re
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path

import numpy as np
from timing import shown

import structpe
from structpe.data.chunks import columns
from structpe.encodings import ENCODINGS, Encoding
from structpe.encodings.compiled import at_once, slow
from structpe.formats import stream
from structpe.structure import Structure

FORMATS = {".txt": "amr"}
NAMES = ("undirected-distance", "distance", "depth", "lowest-common-ancestor", "label-path", "path-token",
         "random-walk", "rrwp", "laplacian", "eigenvalues", "resistance", "adjacency", "neighbours")  # fmt: skip
LARGE, NODES = ("undirected-distance", "distance", "random-walk", "adjacency", "laplacian"), 5000
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def main() -> None:
    """Print a row for each file and encoding."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--only", nargs="*", default=NAMES)
    parser.add_argument("--without-numba", action="store_true")
    parser.add_argument("--write", action="store_true", help="keep the table")
    given = parser.parse_args()
    with slow() if given.without_numba else at_once():
        shown("memory", table(given.files, given.count, given.only), given.write)


def table(files: Sequence[Path], count: int, names: Sequence[str]) -> Iterator[str]:
    """Its lines."""
    yield "| file | encoding | result, MiB | peak, MiB | peak / result |\n|---|---|--:|--:|--:|"
    for file in files:
        items = islice(stream(file, FORMATS.get(file.suffix), skip=lambda _: None), count)
        yield from rows(file.name, list(islice(cycle([item.structure for item in items]), count)), names)
    ends = np.random.default_rng(0).integers(0, NODES, (5 * NODES, 2))
    yield from rows("one graph", [Structure(("",) * NODES, ends, directed=False)], LARGE)


def rows(what: str, structures: list[Structure], names: Sequence[str]) -> Iterator[str]:
    """A row for each encoding that takes such structures."""
    for name in names:
        encoding = ENCODINGS[name]().fit(structures)
        try:
            encoding.many(structures[:20])  # what is done once per process, such as compilation, does not count
        except structpe.StructPEError:
            continue
        result, peak = measured(structures, encoding)
        yield f"| {what} | {name} | {result / 2**20:.3g} | {peak / 2**20:.3g} | {peak / result:.2f} |"


def measured(structures: list[Structure], encoding: Encoding) -> tuple[int, int]:
    """Bytes of a result, and the most that the process had beyond what it had before."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # memory that was freed before must not hide what is taken now
    CLEAR.write_text("5")
    before = of_process("VmRSS")
    made = columns(structures, [encoding])[encoding]
    return sum(a.nbytes for a in vars(made).values() if isinstance(a, np.ndarray)), of_process("VmHWM") - before


def of_process(what: str) -> int:
    """Bytes."""
    return 1024 * int(re.findall(rf"{what}:\s*(\d+) kB", STATUS.read_text())[0])


if __name__ == "__main__":
    main()
