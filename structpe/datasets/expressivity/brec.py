"""BREC: 400 pairs of graphs that are hard to distinguish (Wang and Zhang 2024).

Graphs have no target, so this is not a :class:`~structpe.datasets.base.Benchmark`: a model is trained for each pair
and tested statistically, see ``experiments/benchmarks/brec_protocol.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from structpe.datasets.files.arrays import array
from structpe.errors import ReadError, located
from structpe.formats.graph6 import graph6
from structpe.structure import Structure

__all__ = ["KINDS", "Pair", "brec_pairs"]

KINDS = {"basic": 60, "regular": 50, "str": 50, "extension": 100, "cfi": 100, "4vtx": 20, "dr": 20}
"""Number of pairs of each kind: basic, simple regular, strongly regular, extension, CFI, 4-vertex condition, distance
regular; in the order of the authors' numbers."""


class Pair(NamedTuple):
    """Two graphs that are not isomorphic, and their kind."""

    kind: str
    first: Structure
    second: Structure


def brec_pairs(folder: Path, *kinds: str) -> list[Pair]:
    """Read pairs of graphs.

    Files: ``basic.npy`` and so on, arrays of graph6 texts; graphs 2i and 2i + 1 are a pair.

    Args:
        folder: folder with the files.
        kinds: names in :data:`KINDS`; all by default.

    Raises:
        ReadError: a kind is unknown, or its file is missing or damaged.
    """
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise ReadError(f"BREC has no pairs of kind {unknown[0]!r}; known: {', '.join(KINDS)}")
    return [pair for kind in kinds or KINDS for pair in _pairs(folder / f"{kind}.npy", kind)]


def _pairs(file: Path, kind: str) -> list[Pair]:
    texts = array(file).reshape(-1)
    if texts.dtype.kind not in "SU" or len(texts) != 2 * KINDS[kind]:
        raise ReadError(
            f"an array of {2 * KINDS[kind]} texts is needed, this one is of {len(texts)} {texts.dtype}; bring back the "
            "original"
        ).at(file)
    with located(file):
        graphs = [graph6(text, f"{kind} {number}") for number, text in enumerate(texts.astype(str).tolist())]
    return [Pair(kind, *pair) for pair in zip(graphs[::2], graphs[1::2], strict=True)]
