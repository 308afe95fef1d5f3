"""From encoded structures to the positions of a batch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from structpe.encodings._guards import check_key
from structpe.encodings.base import Encoded, Encoding, check_matrices, same_shape
from structpe.errors import EncodingError
from structpe.positions import Positions
from structpe.structure import Structure
from structpe.terms import Lookup, Pairs, SparsePairs

__all__ = ["check_pairs", "encode", "join"]


def encode(structures: Sequence[Structure], encodings: Sequence[Encoding]) -> Positions:
    """Positions of a batch of structures, padded to the largest.

    Args:
        structures: b structures.
        encodings: what to compute; duplicates are computed once.

    Returns:
        Per encoding of arity 1 a tensor (b, m, ...), zero where padded; per encoding of arity 2 a ``Lookup`` whose
        table holds the distinct values of the batch, or ``SparsePairs`` for a sparse encoding.

    Raises:
        EncodingError: a structure lacks what an encoding needs, or an argument is not a list of them.
    """
    _check(structures, encodings)
    return join({encoding: encoding.many(structures) for encoding in dict.fromkeys(encodings)})


def _check(structures: Sequence[Structure], encodings: Sequence[Encoding]) -> None:
    given: Any = structures
    if not isinstance(given, Sequence) or isinstance(given, str) or not len(given):
        raise EncodingError("encode takes a list of structures, one at least: encode([structure], [encoding, ...])")
    asked: Any = encodings
    if not isinstance(asked, Collection) or isinstance(asked, str):  # an iterator could be read only once
        raise EncodingError(
            f"encode takes a list of encodings, such as [Order(), Distance(limit=8)]; given is {asked!r}"
        )
    if wrong := [e for e in asked if not isinstance(e, Encoding)]:
        raise EncodingError(
            f"encode takes a list of encodings, such as [Order(), Distance(limit=8)], and {wrong[0]!r} is not one; "
            f"ENCODINGS[name](...) makes an encoding from its name"
        )
    for encoding in encodings:
        check_key(encoding)
    if odd := [s for s in given if not isinstance(s, Structure)]:
        raise EncodingError(
            f"encode takes a list of structures, and {type(odd[0]).__name__} is not one; structpe.as_structure makes "
            f"one of what other libraries hold, item.structure is that of an item that was read"
        )
    check_pairs(structures, encodings)


def check_pairs(structures: Sequence[Structure], encodings: Sequence[Encoding]) -> None:
    """Check that the pairs of each structure fit in memory, if an encoding needs all pairs.

    Raises:
        EncodingError: a structure is too large.
    """
    largest = max(structure.unit_count for structure in structures)
    for encoding in encodings:
        if encoding.arity == 2 and not encoding.sparse:
            check_matrices(encoding, largest)


def join(encoded: dict[Encoding, list[Encoded]]) -> Positions:
    """Join the encoded values of structures to the positions of a batch."""
    whole = {encoding: _joined(encoding, each) for encoding, each in encoded.items()}
    return Positions(whole, present=_present(encoded))


def _present(encoded: dict[Encoding, list[Encoded]]) -> Tensor | None:
    """(b, m) which places hold a unit; None if all do, or if nothing was encoded."""
    counts = [e.count for e in next(iter(encoded.values()), [])]
    if not counts or min(counts) == max(counts):
        return None
    return torch.arange(max(counts))[None] < torch.tensor(counts)[:, None]


def _joined(encoding: Encoding, encoded: Sequence[Encoded]) -> Tensor | Lookup | SparsePairs:
    if encoding.arity == 1:
        return _pad(encoding, encoded)
    return _list(encoded) if encoding.sparse else _merge(encoded)


def _pad(encoding: Encoding, encoded: Sequence[Encoded]) -> Tensor:
    most = max(len(e.values) for e in encoded)
    first = encoded[0].values
    if len(shapes := {e.values.shape[1:] for e in encoded}) > 1:
        raise EncodingError(
            f"encoding {encoding.name!r} gives units {' and '.join(map(str, sorted(shapes)))} numbers; "
            f"structures of one batch need features of one shape"
        )
    padded = np.zeros((len(encoded), most, *first.shape[1:]), dtype=np.result_type(*(e.values for e in encoded)))
    for row, e in zip(padded, encoded, strict=True):
        row[: len(e.values)] = e.values
    return torch.from_numpy(padded)


def _merge(encoded: Sequence[Encoded]) -> Lookup:
    """One table of distinct values for the batch. Each structure has an index into the rows that it uses."""
    table, places = _distinct([e.values for e in encoded])
    indices = [e.index for e in encoded if e.index is not None]
    most, used = max(len(index) for index in indices), max(len(p) for p in places)
    rows = np.zeros((len(encoded), used), dtype=np.int64)
    index = np.zeros((len(encoded), most, most), dtype=np.int64)
    for i, (mine, where) in enumerate(zip(indices, places, strict=True)):
        rows[i, : len(where)] = where
        index[i, : len(mine), : len(mine)] = mine
    return Lookup(torch.from_numpy(table), torch.from_numpy(rows), torch.from_numpy(index))


def _list(encoded: Sequence[Encoded]) -> SparsePairs:
    """The listed pairs of all structures, one after the other."""
    table, places = _distinct([e.values for e in encoded])
    rows = [where[e.index] for e, where in zip(encoded, places, strict=True)]
    pairs = np.concatenate([e.listed for e in encoded if e.listed is not None]).astype(np.int64)
    batch = np.repeat(np.arange(len(encoded)), [len(each) for each in rows])
    listed = Pairs(*map(torch.from_numpy, (batch, pairs[:, 0].copy(), pairs[:, 1].copy())))
    return SparsePairs(torch.from_numpy(table), torch.from_numpy(np.concatenate(rows)), listed)


def _distinct(values: Sequence[NDArray[np.generic]]) -> tuple[NDArray[np.generic], list[NDArray[np.int64]]]:
    """The distinct rows of all arrays, and for each array where its rows went. Shorter rows are padded with -1."""
    together = np.concatenate(same_shape(values))
    _, first, where = np.unique(_as_items(together), return_index=True, return_inverse=True)
    return together[first], np.split(where, np.cumsum([len(v) for v in values])[:-1])


def _as_items(rows: NDArray[np.generic]) -> NDArray[np.generic]:
    """Each row as one item: numpy compares items of bytes several times faster than rows of numbers (axis=0)."""
    if rows.ndim == 1:
        return rows
    flat = np.ascontiguousarray(rows.reshape(len(rows), -1))
    return flat.view(np.dtype((np.void, flat.itemsize * flat.shape[1]))).reshape(-1)
