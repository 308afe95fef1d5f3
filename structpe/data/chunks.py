"""A data set in parts that are encoded one at a time: the shards of a store, and the tasks of processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from structpe.encodings.base import Asked, Column, Encoding, as_encodings, check_pairs
from structpe.encodings.graphs import concatenated_once
from structpe.structure import Structure, check_structures
from structpe.system.workers import in_order, workers

__all__ = ["columns", "parts"]

STRUCTURES = 1000
"""The largest number of structures of a part."""
PAIRS = 1 << 24
"""A part ends earlier if its structures have so many pairs of units, which bounds the memory."""


def parts(structures: Iterable[Structure]) -> Iterator[list[Structure]]:
    """Consecutive parts, which follow from the structures alone."""
    some: list[Structure] = []
    pairs = 0
    for structure in structures:
        check_structures([structure], "encoding")
        some.append(structure)
        pairs += structure.unit_count**2
        if len(some) == STRUCTURES or pairs >= PAIRS:
            yield some
            some, pairs = [], 0
    if some:
        yield some


def columns(structures: Sequence[Structure], encodings: Sequence[Asked], jobs: int = 1) -> dict[Encoding, Column]:
    """Encode structures, part by part.

    Args:
        structures: if there are none, the result is empty.
        encodings: in any form; fitted, if they need to be.
        jobs: processes that encode; the columns do not depend on their number.

    Raises:
        EncodingError: a structure lacks what an encoding needs.
        ConfigError: a process was killed.
    """
    asked, some = list(dict.fromkeys(as_encodings(encodings, "columns"))), list(parts(structures))
    if not asked or not some:
        return {}
    if len(some) == 1 and jobs > 0:  # a context of workers takes as long as a small graph
        return dict(zip(asked, _encode(some[0], asked), strict=True))
    with workers(min(jobs, len(some))) as executor:
        found = list(in_order(_encode, ((part, asked) for part in some), executor))
    return {
        encoding: Column.joined(each, encoding) for encoding, each in zip(asked, zip(*found, strict=True), strict=True)
    }


def _encode(structures: Sequence[Structure], encodings: Sequence[Encoding]) -> list[Column]:
    check_pairs(structures, encodings)
    with concatenated_once():
        return [encoding.many(structures) for encoding in encodings]
