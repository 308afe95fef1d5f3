"""graph6: a graph without loops as one line of text (McKay, "Description of graph6, sparse6 and digraph6")."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.errors import ReadError
from structpe.readers._text import shown
from structpe.structure import Structure

__all__ = ["graph6"]

HEADER = ">>graph6<<"
LOWEST, LARGE = 63, 126


def graph6(text: str, name: str = "") -> Structure:
    """A graph from its text: the number of nodes, then the bits of the upper triangle of its matrix, six a character.

    Args:
        text: a line of a file.
        name: where it comes from, for error messages.

    Raises:
        ReadError: the text is no graph6.
    """
    try:
        codes = np.frombuffer(text.removeprefix(HEADER).encode("ascii"), dtype=np.uint8)
        size, bits = _size(codes)
    except (UnicodeEncodeError, IndexError):
        raise _no_graph6(text) from None
    if (codes < LOWEST).any() or (codes > LARGE).any() or len(bits) != -(-size * (size - 1) // 12) * 6 or not size:
        raise _no_graph6(text)
    matrix = np.zeros((size, size), dtype=bool)
    # Below the diagonal row by row is above it column by column.
    matrix[np.tril_indices(size, -1)] = bits[: size * (size - 1) // 2]
    return Structure(("",) * size, np.argwhere(matrix.T), directed=False, name=name)


def _size(codes: NDArray[np.uint8]) -> tuple[int, NDArray[Any]]:
    """The number of nodes, in one, three or six characters, and the bits of the characters after it."""
    length, skipped = (1, 0) if codes[0] != LARGE else (3, 1) if codes[1] != LARGE else (6, 2)
    digits = codes[skipped : skipped + length].astype(np.int64) - LOWEST
    size = int(digits @ 64 ** np.arange(len(digits))[::-1])
    rest = codes[skipped + length :] - LOWEST
    return size, ((rest[:, None] >> np.arange(5, -1, -1)) & 1).reshape(-1)


def _no_graph6(text: str) -> ReadError:
    return ReadError(f"{shown(text)} is not the text of a graph in graph6; bring back the original")
