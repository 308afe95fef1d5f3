"""From encoded structures to the positions of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from structpe.encodings.base import Asked, Column, Encoded, Encoding, as_encodings, check_pairs
from structpe.encodings.columns import distinct
from structpe.encodings.device import computing_on
from structpe.encodings.graphs import concatenated_once
from structpe.errors import EncodingError
from structpe.positions import Positions
from structpe.structure import Structure, check_structures
from structpe.terms import Lookup, Pairs, SparsePairs, Toeplitz

__all__ = ["checked", "encode", "join"]

_WIDE = 64  # values of a shared table above which those that no pair of the batch has are left out


def encode(
    structures: Sequence[Structure],
    encodings: Sequence[Asked],
    device: torch.device | str | None = None,
) -> Positions:
    """Positions of a batch of structures, padded to the largest.

    Args:
        structures: b structures.
        encodings: what to compute: encodings, names, or mappings with ``name`` and options. Duplicates are computed
            once. An encoding given by name that must be fitted, such as labels, is fitted to these structures.
        device: device of the positions, such as ``cuda``. Return probabilities of walks (in graphs of up to 4,096
            nodes) and eigenvectors (of parts of up to 500 nodes) are computed there in float64, everything else on the
            CPU. None computes all on the CPU. Integral values are the same, real ones differ by rounding, and
            eigenvectors of a repeated eigenvalue by their basis.

    Returns:
        Per encoding of arity 1 a tensor (b, m, ...), zero where padded; per encoding of arity 2 a ``Lookup`` whose
        table holds the distinct values of the batch, or ``SparsePairs`` for a sparse encoding. A name finds the only
        encoding of this name.

    Raises:
        EncodingError: a structure lacks what an encoding needs, an argument is not a list of them, or PyTorch does not
            have the device.
        PositionError: there is no encoding of a name, or no such option.
    """
    made = checked(structures, encodings, "encode")
    with concatenated_once(), nullcontext() if device is None else computing_on(device):
        positions = join({encoding: encoding.many(structures) for encoding in dict.fromkeys(made)})
    return positions if device is None else positions.to(torch.device(device))


def checked(structures: Sequence[Structure], encodings: Sequence[Asked], whose: str) -> tuple[Encoding, ...]:
    """The encodings of a call; those given by name are fitted to its structures.

    Args:
        structures: one or more.
        encodings: in any form.
        whose: the function, in errors.

    Raises:
        EncodingError: an argument is not such a list.
        PositionError: there is no encoding of a name, or no such option.
    """
    check_structures(structures, whose)
    made = as_encodings(encodings, whose)
    made = tuple(m if isinstance(e, Encoding) else m.fit(structures) for m, e in zip(made, encodings, strict=True))
    check_pairs(structures, made)
    return made


def join(encoded: Mapping[Encoding, Column | Sequence[Encoded]]) -> Positions:
    """Join the encoded values of structures to the positions of a batch."""
    whole = {encoding: list(each) for encoding, each in encoded.items()}
    joined = {encoding: _joined(encoding, each) for encoding, each in whole.items()}
    single = all(len(each) == 1 for each in whole.values())
    return Positions(joined, present=_present(whole), single=single)


def _present(encoded: Mapping[Encoding, Sequence[Encoded]]) -> Tensor | None:
    """(b, m) which places hold a unit; None if all do, or if nothing was encoded."""
    counts = [e.count for e in next(iter(encoded.values()), [])]
    if not counts or min(counts) == max(counts):
        return None
    return torch.arange(max(counts))[None] < torch.tensor(counts)[:, None]


def _joined(encoding: Encoding, encoded: Sequence[Encoded]) -> Tensor | Lookup | SparsePairs:
    if encoding.arity == 1:
        return _pad(encoding, encoded)
    if encoding.sparse:
        return _list(encoded)
    joined = _merge(encoded, encoding.real and not encoding.recurs)
    return Lookup(_cut(joined.table), joined.rows, joined.index) if encoding.ragged else joined


def _pad(encoding: Encoding, encoded: Sequence[Encoded]) -> Tensor:
    most = max(len(e.values) for e in encoded)
    first = encoded[0].values
    if len(shapes := {e.values.shape[1:] for e in encoded}) > 1:
        wrong = f"encoding {encoding.name!r} gives units {' and '.join(map(str, sorted(shapes)))} numbers"
        raise EncodingError(f"{wrong}; structures of one batch need features of one shape")
    padded = np.zeros((len(encoded), most, *first.shape[1:]), dtype=np.result_type(*(e.values for e in encoded)))
    for row, e in zip(padded, encoded, strict=True):
        row[: len(e.values)] = e.values
    return torch.from_numpy(padded)


def _merge(encoded: Sequence[Encoded], real: bool) -> Lookup:
    """One table of distinct values for the batch. Each structure has an index into the rows that it uses."""
    table, places = _table(encoded, real)
    if (sequences := _of_sequences(encoded, places)) is not None:
        return _lookup_of_sequences(table, sequences)
    most, used = max(e.count for e in encoded), max(len(p) for p in places)
    index = np.zeros((len(encoded), most, most), dtype=_narrowest(used))
    for i, e in enumerate(encoded):
        index[i, : e.count, : e.count] = e.matrix()
    alike = all(where is places[0] for where in places)  # a vocabulary for all, such as distances
    if alike and used > _WIDE:
        there, index = _there(index, used)
        of_batch = torch.from_numpy(table[places[0][there]])
        return Lookup(of_batch, torch.arange(len(there))[None], torch.from_numpy(index))
    rows = np.zeros((1 if alike else len(encoded), used), dtype=np.int64)
    for row, where in zip(rows, places, strict=False):
        row[: len(where)] = where
    return Lookup(torch.from_numpy(table), torch.from_numpy(rows), torch.from_numpy(index))


def _there(index: NDArray[Any], used: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The values that some pair of the batch has, of a vocabulary that all structures of a data set share."""
    if used > 16 * index.size:  # then sorting the index is faster than counting: label paths of a large data set
        there, number = np.unique(index, return_inverse=True)
        return there, number.reshape(index.shape).astype(_narrowest(len(there)))
    present = np.bincount(index.reshape(-1), minlength=used) > 0
    there = np.flatnonzero(present)
    return there, (np.cumsum(present) - 1).astype(_narrowest(len(there)))[index]


def _cut(table: Tensor) -> Tensor:
    """Values without padding that all of them have, since the longest are in other batches; in int64.

    They are stored in the narrowest type, but PyTorch looks up by int64.
    """
    there = table != -1
    for axis in range(1, table.ndim):
        kept = there.movedim(axis, 0).flatten(1).any(dim=1).nonzero()
        table = table.narrow(axis, 0, int(kept.max()) + 1)
    return table.long()


def _table(encoded: Sequence[Encoded], real: bool = False) -> tuple[NDArray[Any], list[NDArray[Any]]]:
    """The distinct values of a batch, and per structure, the values that its index refers to.

    Structures of one column share its values, which are distinct already; real numbers are not searched for equal ones.
    """
    tables = {id(e.values): e.values for e in encoded}
    whole = [np.arange(len(table)) for table in tables.values()]
    table = next(iter(tables.values()))
    if len(tables) > 1:
        table, whole = distinct(list(tables.values()), search=not real)
    of = dict(zip(tables, whole, strict=True))
    places = [of[id(e.values)] if e.rows is None else of[id(e.values)][e.rows] for e in encoded]
    if all(e.rows is None for e in encoded):
        return table, places
    used, where = np.unique(np.concatenate(places), return_inverse=True)
    return table[used], np.split(where, np.cumsum([len(p) for p in places])[:-1])


def _of_sequences(encoded: Sequence[Encoded], places: Sequence[NDArray[np.int64]]) -> NDArray[np.int64] | None:
    """One index (2m - 1,) of offsets for all structures, if it means the same in all; None otherwise."""
    if any(e.index is None or e.index.ndim == 2 for e in encoded):
        return None
    each = [where[e.index] for e, where in zip(encoded, places, strict=True)]
    longest = max(each, key=len)
    most = len(longest) // 2
    if any(not np.array_equal(mine, longest[most - len(mine) // 2 :][: len(mine)]) for mine in each):
        return None
    return longest


def _lookup_of_sequences(table: NDArray[Any], index: NDArray[np.int64]) -> Lookup:
    """The lookup of an index of offsets, without values that only longer sequences of other batches have."""
    used, offsets = np.unique(index, return_inverse=True)
    diagonals, most = torch.from_numpy(offsets.astype(_narrowest(len(used))))[None], len(offsets) // 2 + 1
    return Lookup(torch.from_numpy(table[used]), torch.arange(len(used))[None], Toeplitz(diagonals, most, most))


def _narrowest(rows: int) -> type[np.integer[Any]]:
    """The narrowest integers that PyTorch has for an index into this many rows."""
    return np.uint8 if rows <= 1 << 8 else np.int16 if rows <= 1 << 15 else np.int32


def _list(encoded: Sequence[Encoded]) -> SparsePairs:
    """The listed pairs of all structures, one after the other."""
    table, places = _table(encoded)
    rows = [where[e.index] for e, where in zip(encoded, places, strict=True)]
    pairs = np.concatenate([e.listed for e in encoded if e.listed is not None]).astype(np.int64)
    batch = np.repeat(np.arange(len(encoded)), [len(each) for each in rows])
    listed = Pairs(*map(torch.from_numpy, (batch, pairs[:, 0].copy(), pairs[:, 1].copy())))
    return SparsePairs(torch.from_numpy(table), torch.from_numpy(np.concatenate(rows)), listed)
