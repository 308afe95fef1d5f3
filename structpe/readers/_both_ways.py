"""Undirected edges in libraries whose edges all have a direction: they store both directions, a structure one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.errors import ConversionError
from structpe.structure import Ids, Structure

__all__ = ["both_ways", "one_way"]


def both_ways(structure: Structure) -> tuple[Ids, Ids]:
    """Rows for a library whose edges have a direction.

    Returns:
        (m, 2) source and target, and (m,) the edge of each row. An undirected edge u - v has two consecutive rows,
        u -> v and v -> u; a self-loop has one.
    """
    number = np.arange(len(structure.edges))
    if structure.directed:
        return structure.edges.copy(), number
    rows = np.stack([structure.edges, structure.edges[:, ::-1]], axis=1)
    kept = np.ones((len(rows), 2), dtype=bool)
    kept[:, 1] = rows[:, 0, 0] != rows[:, 0, 1]
    return rows[kept], np.repeat(number, 2)[kept.reshape(-1)]


def one_way(ends: Ids, columns: Sequence[NDArray[Any]], directed: bool | None) -> tuple[Ids, bool]:
    """The rows to keep, and whether the graph is directed.

    A row v -> u is the reverse of an earlier row u -> v that is equal in all columns and not yet paired.

    Args:
        ends: (m, 2) source and target of each row.
        columns: attributes of the rows, of length m.
        directed: whether the graph is directed; None: unless every row that is not a self-loop has its reverse.

    Raises:
        ConversionError: ``directed`` is False, but a row has no reverse.
    """
    if directed:
        return np.arange(len(ends)), True
    way = np.sign(ends[:, 1] - ends[:, 0])
    groups = _groups(np.sort(ends, axis=1), columns)
    rows = np.argsort(groups, kind="stable")
    first = np.flatnonzero(np.diff(groups[rows], prepend=-1))
    # Number of unpaired rows of the group after each row.
    total = np.cumsum(way[rows])
    before = np.repeat(total[first] - way[rows][first], np.diff(first, append=len(rows)))
    unpaired = total - before
    kept = (np.abs(unpaired) > np.abs(unpaired - way[rows])) | (way[rows] == 0)
    last = np.append(first[1:], len(rows)) - 1
    alone = rows[first[unpaired[last] != 0]] if len(rows) else rows
    if not len(alone):
        return np.sort(rows[kept]), False
    if directed is None:
        return np.arange(len(ends)), True
    source, target = ends[alone.min()]
    raise ConversionError(
        f"the graph is said to be undirected, but edge {alone.min()}, {source} -> {target}, has no counterpart "
        f"{target} -> {source} with the same attributes; add it, or give directed=True"
    )


def _groups(pairs: Ids, columns: Sequence[NDArray[Any]]) -> Ids:
    """(m,) a number for each row, the same for equal rows."""
    ends = pairs[:, 0] * (int(pairs.max(initial=0)) + 1) + pairs[:, 1]
    groups: Ids = np.unique(ends, return_inverse=True)[1].reshape(-1)
    for column in columns:
        flat = np.ascontiguousarray(column).reshape(len(pairs), int(np.prod(column.shape[1:], dtype=np.int64)))
        if not flat.size:
            continue
        flat = flat + 0 if flat.dtype.kind == "f" else flat  # -0.0 is 0.0
        # Comparing rows of several numbers as bytes is many times faster.
        whole = flat[:, 0] if flat.shape[1] == 1 else flat.view(np.dtype((np.void, flat.strides[0])))[:, 0]
        codes = np.unique(whole, return_inverse=True)[1].reshape(-1)
        groups = np.unique(groups * (int(codes.max()) + 1) + codes, return_inverse=True)[1].reshape(-1)
    return groups
