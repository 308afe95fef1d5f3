"""Checks of graphs that are packed into arrays one after another.

A wrong count would split all later graphs at wrong positions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.datasets.files.arrays import arrays
from structpe.errors import ReadError, located

__all__ = ["check_counts", "check_ends", "check_list", "check_range", "read_packed", "slices"]

LARGEST = 1 << 16
"""Nodes or edges of a graph; far more than any graph of these sets has."""
Packed = Mapping[str, NDArray[Any]]


def read_packed(file: Path, names: Sequence[str], check: Callable[[Packed], None]) -> Packed:
    """Read arrays of an ``.npz`` file and check that they fit together.

    Args:
        file: the file.
        names: names of the arrays.
        check: raises a ReadError if they do not fit.

    Raises:
        ReadError: the file is missing or damaged, or its arrays do not fit.
    """
    packed = dict(zip(names, arrays(file, *names), strict=True))
    with located(file):
        check(packed)
    return packed


def slices(packed: Packed) -> list[tuple[slice, slice]]:
    """Slices of the nodes and of the edges of each graph."""
    ends = (np.cumsum([0, *packed[name].tolist()]).tolist() for name in ("n_nodes", "n_edges"))
    return list(zip(*([slice(*pair) for pair in pairwise(each)] for each in ends), strict=True))


def check_counts(packed: Packed, things: str) -> tuple[int, int]:
    """Check that there are ``n_nodes`` and ``n_edges`` for each ``y``; return the total of nodes and of edges.

    Raises:
        ReadError: an array has another length, or a count is out of range.
    """
    count = len(packed["y"]) if packed["y"].ndim else 0
    for name, least in (("n_nodes", 1), ("n_edges", 0)):
        check_list(packed, name, "iu", count, f"a number for each of {count} {things}s")
        check_range(packed, name, least, LARGEST)
    return int(packed["n_nodes"].sum(dtype=np.int64)), int(packed["n_edges"].sum(dtype=np.int64))


def check_ends(packed: Packed, count: int, words: tuple[str, str, str]) -> None:
    """Check that edges join nodes of one graph and are listed in both directions, with the same ``edge_attr``.

    Args:
        packed: the arrays.
        count: number of edges.
        words: words for an edge, a graph and a node, for errors.

    Raises:
        ReadError: an edge is wrong.
    """
    index, (edge, graph, node) = packed["edge_index"], words
    if index.dtype.kind not in "iu" or index.shape != (2, count):
        raise _misfit(f"edge_index has shape {index.shape} and type {index.dtype}; (2, {count}) integers are needed")
    index, sizes = index.astype(np.int64), packed["n_nodes"].astype(np.int64)
    of = np.repeat(np.arange(len(sizes)), packed["n_edges"])
    outside = np.flatnonzero(((index < 0) | (index >= sizes[of])).any(axis=0))
    if len(outside):
        first = outside[0]
        named = f"{edge} {first} is {index[:, first].tolist()} in {graph} {of[first]}"
        raise _misfit(f"{named}, whose {node}s are 0..{sizes[of[first]] - 1}")
    kinds = packed.get("edge_attr", np.zeros(count, dtype=np.int64))
    there, back = (np.stack([of, *ends, kinds], axis=1) for ends in (index, index[::-1]))
    there, back = there[there[:, 1] < there[:, 2]], back[back[:, 1] < back[:, 2]]
    there, back = (rows[np.lexsort(rows.T)] for rows in (there, back))
    if 2 * len(there) != count or not np.array_equal(there, back):
        typed = " with the same type" if "edge_attr" in packed else ""
        raise _misfit(f"each {edge} must be listed in both directions{typed} and join two {node}s")


def check_list(packed: Packed, name: str, kinds: str, count: int, needed: str) -> None:
    """Check the kind and the length of a one-dimensional array.

    Raises:
        ReadError: either is wrong.
    """
    values = packed[name]
    if values.shape != (count,) or values.dtype.kind not in kinds:
        numbers = "numbers" if "f" in kinds else "integers"
        raise _misfit(f"{name} has shape {values.shape} and type {values.dtype}; {numbers} are needed, {needed}")


def check_range(packed: Packed, name: str, least: float, below: float) -> None:
    """Check that values are finite, ``least`` or more, and less than ``below``.

    Raises:
        ReadError: a value is out of range.
    """
    values = packed[name]
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= least) & (values < below)))
    if len(wrong):
        needed = "a finite number" if below == np.inf else f"{least}..{below - 1}"
        raise _misfit(f"{name}[{wrong[0]}] is {values[wrong[0]]}; {needed} is needed")


def _misfit(message: str) -> ReadError:
    return ReadError(f"{message}; bring back the original")
