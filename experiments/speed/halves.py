"""What it would save, and cost, to store only one half of symmetric pairs.

    python experiments/speed/halves.py FILE FOLDER      # structures, for example molecules as SMILES

Undirected distances of 10,000 structures lie in a file as a store keeps them, whole and as lower triangles. For each,
the bytes, and the CPU time of padding batches of 32 drawn at random, from the mapped file. Triangles are written out by
NumPy, with the places of each size kept, and by numba.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from structpe.data.chunks import columns
from structpe.encodings import UndirectedDistance
from structpe.formats import stream

COUNT, BATCH, ROUNDS = 10_000, 32, 5
Array = NDArray[Any]


def main() -> None:
    """Print a table."""
    file, folder = Path(sys.argv[1]), Path(sys.argv[2])
    structures = [item.structure for item in islice(stream(file, skip=lambda _: None), COUNT)]
    column = columns(structures, [UndirectedDistance()])[UndirectedDistance()]
    squares = [each.index for each in column if each.index is not None and each.index.ndim == 2]  # no plain sequences
    sizes, whole = np.array([len(each) for each in squares]), np.concatenate([each.reshape(-1) for each in squares])
    np.save(folder / "whole.npy", whole)
    np.save(folder / "halves.npy", np.concatenate([each[lower(len(each))] for each in squares]))
    order = np.random.default_rng(0).permutation(len(sizes))
    ways: dict[str, tuple[str, Callable[[Array, int, Array], None]]] = {
        "whole": ("whole", copy), "halves, NumPy": ("halves", by_numpy), "halves, numba": ("halves", by_numba)
    }  # fmt: skip
    print("| kept | MB | bytes per structure | reading, us per structure |\n|---|---|---|---|")
    found = {
        name: padded(folder / f"{stored}.npy", sizes, order[:BATCH], write) for name, (stored, write) in ways.items()
    }
    for name, (stored, write) in ways.items():
        assert np.array_equal(found[name], found["whole"])
        seconds = min(timed(folder / f"{stored}.npy", sizes, order, write) for _ in range(ROUNDS))
        size = (folder / f"{stored}.npy").stat().st_size
        print(f"| {name} | {size / 1e6:.2f} | {size / len(sizes):.0f} | {1e6 * seconds / len(sizes):.2f} |")


def timed(file: Path, sizes: Array, order: Array, write: Callable[[Array, int, Array], None]) -> float:
    """CPU seconds of padding all structures."""
    began = time.process_time()
    for first in range(0, len(order), BATCH):
        padded(file, sizes, order[first : first + BATCH], write)
    return time.process_time() - began


def padded(file: Path, sizes: Array, some: Array, write: Callable[[Array, int, Array], None]) -> Array:
    """(b, m, m) a batch."""
    flat, starts = opened(file), begins(file, sizes.tobytes())
    result = np.zeros((len(some), sizes[some].max(), sizes[some].max()), dtype=flat.dtype)
    for into, number in zip(result, some.tolist(), strict=True):
        n = int(sizes[number])
        write(flat[starts[number] : starts[number + 1]], n, into[:n, :n])
    return result


@cache
def opened(file: Path) -> Array:
    """The mapped numbers."""
    return np.load(file, mmap_mode="r")


@cache
def begins(file: Path, sizes: bytes) -> Array:
    """Where each structure begins."""
    n = np.frombuffer(sizes, dtype=np.int64)
    return np.concatenate([[0], np.cumsum(n * n if file.stem == "whole" else n * (n + 1) // 2)])


@cache
def lower(n: int) -> tuple[Array, Array]:
    """The places of a lower triangle."""
    return np.tril_indices(n)


def copy(flat: Array, n: int, into: Array) -> None:
    """Pairs that are whole."""
    into[:] = flat.reshape(n, n)


def by_numpy(flat: Array, n: int, into: Array) -> None:
    """A lower triangle, by its places."""
    rows, columns = lower(n)
    into[rows, columns] = flat
    into[columns, rows] = flat


@njit
def _written(flat: Array, n: int, into: Array) -> None:
    k = 0
    for i in range(n):
        for j in range(i + 1):
            into[i, j] = into[j, i] = flat[k]
            k += 1


def by_numba(flat: Array, n: int, into: Array) -> None:
    """The same in a compiled loop."""
    _written(np.asarray(flat), n, into)


if __name__ == "__main__":
    main()
