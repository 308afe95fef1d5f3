"""The positions of a batch: from structures, by encodings, to what position models read; and checks of that.

Models say by these checks what they need of an encoding, when they are built, and of its values, when they read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields, is_dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from structpe.encodings.base import MOST_NODES, Asked, Column, Encoded, Encoding, as_encodings, check_pairs
from structpe.encodings.columns import distinct, owned, ranges, starts_of
from structpe.encodings.graphs import computing_on, concatenated_once
from structpe.errors import EncodingError, PositionError, listed
from structpe.structure import Structure, check_structures, path
from structpe.terms import Lookup, Pairs, SparsePairs, Toeplitz

__all__ = [
    "Positions",
    "check_offsets",
    "checked",
    "clipped",
    "encode",
    "fitting",
    "gathered",
    "holds",
    "in_buckets",
    "indices",
    "join",
    "numbers",
    "of_all_pairs",
    "of_arity",
    "of_listed_pairs",
    "of_whole",
    "offsets",
    "width_of",
]


class _NoEncoding(PositionError, KeyError):
    """The key of a look-up in positions is not an encoding."""


class Positions(Mapping[Encoding, Any]):
    """The values of the encodings for a batch: (b, m, ...) per unit, :class:`Lookup` or :class:`SparsePairs` per pair.

    Args:
        encodings: the positions of the keys; for pairs, of queries and keys.
        rows: which units are the queries; all by default. A decoding step has one.
        present: (b, m) which places of the keys have a unit, for models that read all units of a structure before
            attention does; None if no row is padded.
        single: whether they are the positions of one structure, which may serve several rows.
    """

    def __init__(
        self,
        encodings: Mapping[Encoding, Tensor | Lookup | SparsePairs],
        rows: slice | None = None,
        present: Tensor | None = None,
        single: bool = False,
    ) -> None:
        self._encodings, self._rows, self.present, self.single = dict(encodings), rows, present, single

    def __getitem__(self, encoding: Encoding | str) -> Any:
        """The values of an encoding, or of the only one of a name.

        Raises:
            PositionError: the batch was not encoded by it, or by several of this name.
        """
        if isinstance(encoding, str):
            encoding = self._named(encoding)
        if encoding not in self._encodings:
            known = ", ".join(repr(e) for e in self._encodings) or "none"
            if not isinstance(encoding, Encoding):
                raise _NoEncoding(
                    f"look positions up by the encoding itself, such as prepared[self.encodings[0]]; given is "
                    f"{encoding!r}; the batch was encoded by: {known}"
                )
            raise PositionError(f"the batch was not encoded by {encoding!r}; it was by: {known}")
        return self._encodings[encoding]

    def __repr__(self) -> str:
        """Each encoding and what it gave, such as ``Offset(max_distance=128): Lookup (1, 5, 5) of 9 values``."""
        each = (f"{listed([encoding])}: {_described(values)}" for encoding, values in self.items())
        return f"Positions({', '.join(each)})"

    def _named(self, name: str) -> Encoding:
        found = [encoding for encoding in self._encodings if encoding.name == name]
        if len(found) != 1:
            known = ", ".join(repr(e) for e in self._encodings) or "none"
            count = "several encodings" if found else "no encoding"
            raise _NoEncoding(f"the batch has {count} named {name!r}; it was encoded by: {known}")
        return found[0]

    def __iter__(self) -> Iterator[Encoding]:
        return iter(self._encodings)

    def __len__(self) -> int:
        return len(self._encodings)

    def queries(self, encoding: Encoding) -> Tensor:
        """(b, n, ...) the values of an encoding of arity 1 at the queries only."""
        of_keys: Tensor = self[encoding]
        return of_keys if self._rows is None else of_keys[:, self._rows]

    def step(self, start: int, stop: int) -> Positions:
        """Only the queries start..stop-1 over the keys 0..stop-1, as a decoder with a KV cache needs them."""
        rows = slice(start, stop)
        made: dict[Encoding, Any] = {}
        # Not a comprehension, by which torch.compile would compile each number of rows anew.
        for encoding, p in self._encodings.items():
            made[encoding] = p[:, :stop] if isinstance(p, Tensor) else p.queries(rows)
        return Positions(made, rows, None if self.present is None else self.present[:, :stop], self.single)

    def of(self, present: Tensor | None) -> Positions:
        """The same, with units in these places of the keys."""
        return Positions(self._encodings, self._rows, present, self.single)

    def repeated(self, times: int, lookups: bool) -> Positions:
        """The positions of one structure, for several rows.

        Args:
            times: number of rows.
            lookups: whether lookups are repeated too. Attention by kernels is faster if rows share them.
        """
        present = None if self.present is None else self.present.expand(times, -1)
        made = {e: p if isinstance(p, Lookup) and not lookups else _repeated(p, times) for e, p in self.items()}
        return Positions(made, self._rows, present)

    def replaced(self, encodings: Mapping[Encoding, Any]) -> Positions:
        """The same with other values of these encodings."""
        return Positions({**self._encodings, **encodings}, self._rows, self.present, self.single)

    def to(self, device: torch.device | str, dtype: torch.dtype | None = None) -> Positions:
        """The same on another device; ``dtype`` is for the real-valued ones, which are of float32 at least."""
        real = None if dtype is None else torch.promote_types(dtype, torch.float32)
        return self.moved(lambda x: x.to(device, real if x.is_floating_point() else None))

    def moved(self, move: Callable[[Tensor], Tensor]) -> Positions:
        """A copy whose tensors are what ``move`` makes of these."""

        def each(x: Any) -> Any:
            if isinstance(x, Tensor):
                return move(x)
            if not is_dataclass(x):  # a size or a flag
                return x
            whole: type[Any] = type(x)
            return whole(**{field.name: each(getattr(x, field.name)) for field in fields(x) if field.init})

        present = None if self.present is None else move(self.present)
        encodings = {encoding: each(p) for encoding, p in self._encodings.items()}
        return Positions(encodings, self._rows, present, self.single)


def _described(values: Any) -> str:
    """The form and shape of the values of an encoding."""
    if isinstance(values, Lookup):
        return f"Lookup {tuple(values.index.shape)} of {len(values.table)} values"
    if isinstance(values, SparsePairs):
        return f"SparsePairs {tuple(values.index.shape)} of {len(values.table)} values"
    return f"Tensor {tuple(values.shape)}" if isinstance(values, Tensor) else type(values).__name__


def _repeated(values: Any, times: int) -> Any:
    if isinstance(values, Tensor):
        return values.expand(times, *values.shape[1:])
    if isinstance(values, Lookup):
        index = values.index
        index = index if isinstance(index, Toeplitz) else index.expand(times, *index.shape[1:])
        return Lookup(values.table, values.rows.expand(times, -1), index)
    count, pairs = len(values.index), values.pairs
    batch = torch.arange(times, device=pairs.batch.device).repeat_interleave(count)
    listed = Pairs(batch, pairs.query.repeat(times), pairs.key.repeat(times))
    return SparsePairs(values.table, values.index.repeat(times), listed)


_PART = 1 << 18  # pairs that are renumbered at a time
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
    made, counts = checked(structures, encodings, "encode")
    widths = np.full(len(counts), max(counts))
    with concatenated_once(), nullcontext() if device is None else computing_on(device):
        positions = join({encoding: encoding.padded(structures, widths) for encoding in dict.fromkeys(made)})
    return positions if device is None else positions.to(torch.device(device))


def checked(
    structures: Sequence[Structure], encodings: Sequence[Asked], whose: str
) -> tuple[tuple[Encoding, ...], list[int]]:
    """The encodings of a call, of which those given by name are fitted to its structures; their numbers of units.

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
    counts = [len(each.nodes if each.units is None else each.units) for each in structures]
    if max(counts) > MOST_NODES:
        check_pairs(structures, made)
    return made, counts


def join(
    encoded: Mapping[Encoding, Column | Sequence[Encoded]], present: Tensor | Literal["by size"] | None = "by size"
) -> Positions:
    """Join the encoded values of structures to the positions of a batch.

    Args:
        encoded: of each encoding.
        present: (b, m) which places hold a unit, None if all do; ``by size`` if it is not known yet.
    """
    columns = {e: each if isinstance(each, Column) else gathered(e, each) for e, each in encoded.items()}
    joined = {encoding: _joined(encoding, column) for encoding, column in columns.items()}
    if isinstance(present, str):
        present = _present(next(iter(columns.values())).sizes) if columns else None
    return Positions(joined, present=present, single=all(len(column.sizes) == 1 for column in columns.values()))


def _present(sizes: NDArray[np.int64]) -> Tensor | None:
    """(b, m) which places hold a unit; None if all do."""
    most = int(sizes.max())
    return None if sizes.min() == most else torch.from_numpy(np.arange(most) < sizes[:, None])


def in_buckets(
    encoded: Mapping[Encoding, Column | Sequence[Encoded]],
    shapes: Sequence[tuple[int, int]],
    present: Sequence[Tensor | None],
) -> tuple[Positions, ...]:
    """The positions of consecutive structures, bucket by bucket.

    Args:
        encoded: of each encoding, the values of all structures.
        shapes: (b, m) of each bucket: its structures, and the places that each has.
        present: (b, m) of each bucket, which places hold a unit, None if all do.
    """
    columns = [_in_buckets(encoding, values, shapes) for encoding, values in encoded.items()]
    of_each: Iterable[tuple[Any, ...]] = zip(*columns, strict=True) if columns else ((),) * len(shapes)
    return tuple(
        Positions(dict(zip(encoded, values, strict=True)), present=there, single=count == 1)
        for values, there, (count, _) in zip(of_each, present, shapes, strict=True)
    )


def _in_buckets(
    encoding: Encoding, values: Column | Sequence[Encoded], shapes: Sequence[tuple[int, int]]
) -> list[Tensor | Lookup | SparsePairs]:
    """The values of one encoding; pairs with values of one small table all at once."""
    if not _in_squares(values, encoding):
        ends = accumulate((count for count, _ in shapes), initial=0)
        parts = (values[first:end] for first, end in pairwise(ends))
        return [_joined(encoding, each if isinstance(each, Column) else gathered(encoding, each)) for each in parts]
    table = values.values if isinstance(values, Column) else values[0].values
    dtype = np.dtype(_narrowest(len(table)))
    cells = _split(values, shapes, dtype) if isinstance(values, Column) else _filled(values, shapes, dtype)
    whole, rows = torch.from_numpy(owned(table)), torch.from_numpy(np.arange(len(table))[None])
    return [Lookup(whole, rows, torch.from_numpy(each)) for each in cells]


def _in_squares(values: Column | Sequence[Encoded], encoding: Encoding) -> bool:
    """Whether structures have a square of pairs each, whose values are few and the same for all."""
    if encoding.arity == 1 or encoding.sparse or encoding.ragged:
        return False
    if isinstance(values, Column):
        if values.index is None or values.row_starts is not None or len(values.values) > _WIDE:
            return False
        return values.widths is not None or len(values.index) == int(np.square(values.sizes).sum())
    table = values[0].values
    alike = len(table) <= _WIDE and all(each.values is table and each.rows is None for each in values)
    return alike and any(each.index is not None and each.index.ndim == 2 for each in values)  # not sequences alone


def _split(column: Column, shapes: Sequence[tuple[int, int]], dtype: np.dtype[Any]) -> list[NDArray[Any]]:
    """(b, m, m) the index of the pairs in each bucket, padded with zeros."""
    index = column.squares(np.repeat(*np.array(shapes).T[::-1]), dtype)
    ends = accumulate((count * most * most for count, most in shapes), initial=0)
    return [index[first:end].reshape(b, m, m) for (first, end), (b, m) in zip(pairwise(ends), shapes, strict=True)]


def _filled(encoded: Sequence[Encoded], shapes: Sequence[tuple[int, int]], dtype: np.dtype[Any]) -> list[NDArray[Any]]:
    """The same, of structures that were encoded before."""
    cells, rest = [np.zeros((count, most, most), dtype) for count, most in shapes], iter(encoded)
    for bucket in cells:
        for square, each in zip(bucket, rest, strict=False):
            index = each.matrix()
            square[: len(index), : len(index)] = index
    return cells


def gathered(encoding: Encoding, encoded: Sequence[Encoded]) -> Column:
    """A column of structures that were encoded before, of which many share a table of values, such as distances."""
    values, sizes = [e.values for e in encoded], np.array([e.count for e in encoded])
    if encoding.arity == 1:
        if len(shapes := {each.shape[1:] for each in values}) > 1:
            wrong = f"encoding {encoding.name!r} gives units {' and '.join(map(str, sorted(shapes)))} numbers"
            raise EncodingError(f"{wrong}; structures of one batch need features of one shape")
        return Column.of_units(sizes, np.concatenate(values))
    indices = [e.index.reshape(-1) for e in encoded if e.index is not None]
    listed = np.concatenate([e.listed for e in encoded if e.listed is not None]) if encoding.sparse else None
    index, starts = np.concatenate(indices), starts_of([len(each) for each in indices])
    tables = {id(each): each for each in values}
    if len(tables) == 1 and all(e.rows is None for e in encoded):
        return Column(sizes, values[0], index, starts, listed=listed)
    search = not encoding.real or encoding.recurs
    table, where = distinct(list(tables.values()), search) if len(tables) > 1 else (values[0], [range(len(values[0]))])
    of = {number: np.asarray(mine) for number, mine in zip(tables, where, strict=True)}
    rows = [of[id(e.values)] if e.rows is None else of[id(e.values)][e.rows] for e in encoded]
    if listed is not None:  # pairs of several tables
        index = np.concatenate([mine[each] for mine, each in zip(rows, indices, strict=True)])
        return Column(sizes, table, index, starts, listed=listed)
    return Column(sizes, table, index, starts, np.concatenate(rows), starts_of([len(mine) for mine in rows]))


def _joined(encoding: Encoding, column: Column) -> Tensor | Lookup | SparsePairs:
    if column.index is None:
        return _pad(column.values, column.sizes)
    if column.listed is not None:
        return _list(column.listed, column)
    joined = _merge(column, encoding.real and not encoding.recurs)
    return Lookup(_cut(joined.table), joined.rows, joined.index) if encoding.ragged else joined


def _pad(values: NDArray[Any], sizes: NDArray[np.int64]) -> Tensor:
    """(b, m, ...) the rows of each structure in turn, padded with zeros."""
    shape = len(sizes), int(sizes.max())
    if shape[0] * shape[1] == len(values):
        return torch.from_numpy(owned(values).reshape(*shape, *values.shape[1:]))
    padded = np.zeros((*shape, *values.shape[1:]), dtype=values.dtype)
    padded[np.arange(shape[1]) < sizes[:, None]] = values
    return torch.from_numpy(padded)


def _merge(column: Column, real: bool) -> Lookup:
    """One table of distinct values for the batch. Each structure has an index into the rows that it uses."""
    table, places = _table(column, real)
    if column.widths is None and (sequences := _of_sequences(column, places)) is not None:
        return _lookup_of_sequences(table, sequences)
    widths = None if column.row_starts is None else np.diff(column.row_starts)
    used = len(table) if widths is None else int(widths.max())
    if used > _WIDE and (widths is None or len(widths) == 1):  # a vocabulary for all, such as distances
        there, column = _there(column, used)
        index = column.padded(np.dtype(_narrowest(len(there))))
        return Lookup(torch.from_numpy(table[places[there]]), torch.arange(len(there))[None], torch.from_numpy(index))
    index = column.padded(np.dtype(_narrowest(used)))
    if widths is not None and len(widths) > 1:
        return Lookup(torch.from_numpy(owned(table)), _pad(places, widths), torch.from_numpy(index))
    return Lookup(torch.from_numpy(owned(table)), torch.from_numpy(places)[None], torch.from_numpy(index))


def _there(column: Column, used: int) -> tuple[NDArray[Any], Column]:
    """The values that some pair of the batch has, of a vocabulary of all structures of a data set; a column of these.

    Padding has the first value of the vocabulary.
    """
    index, first = column.index, int(column.sizes.min() < column.sizes.max())
    assert index is not None  # it is of all pairs
    if used > 16 * index.size:  # then sorting the index is faster than counting: label paths of a large data set
        there, where = np.unique(np.append(index, np.zeros(first, dtype=index.dtype)), return_inverse=True)
        return there, replace(column, index=where[: len(index)].astype(_narrowest(len(there))))
    present = np.zeros(used, dtype=np.bool_)
    present[:first] = True
    parts = [slice(at, at + _PART) for at in range(0, len(index), _PART)]
    for part in parts:  # an index of int64 of all would take eight times the memory
        present[index[part]] = True
    there = np.flatnonzero(present)
    numbers = (np.cumsum(present) - 1).astype(_narrowest(len(there)))
    number = np.empty(len(index), dtype=numbers.dtype)
    for part in parts:
        numbers.take(index[part], out=number[part], mode="clip")  # faster than checking each
    return there, replace(column, index=number)


def _cut(table: Tensor) -> Tensor:
    """Values without padding that all of them have, since the longest are in other batches; in int64.

    They are stored in the narrowest type, but PyTorch looks up by int64.
    """
    there = table != -1
    for axis in range(1, table.ndim):
        kept = there.movedim(axis, 0).flatten(1).any(dim=1).nonzero()
        table = table.narrow(axis, 0, int(kept.max()) + 1)
    return table.long()


def _table(column: Column, real: bool) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The distinct values of a batch, and those that each structure uses, one after the other: all, if all use all.

    Real numbers are not searched for equal ones.
    """
    table = column.values
    if column.rows is not None:
        used, where = np.unique(column.rows, return_inverse=True)
        return table[used], where
    if column.row_starts is None or real or len(column) == 1:
        return table, np.arange(len(table))
    table, (which,) = distinct([table])
    return table, which


def _of_sequences(column: Column, places: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """One index (2m - 1,) of offsets for all structures, if it means the same in all; None otherwise."""
    sizes, pairs = column.sizes, int(column.starts[-1])
    assert column.index is not None  # it is of all pairs
    if pairs != 2 * int(sizes.sum()) - len(sizes) or sizes.min() == 1:  # others have more pairs
        return None
    widths = np.diff(column.starts)
    first = np.zeros_like(sizes) if column.row_starts is None else column.row_starts[:-1]
    whole, most = places[column.index + np.repeat(first, widths)], int(sizes.argmax())
    longest: NDArray[np.int64] = whole[column.starts[most] : column.starts[most + 1]]
    return longest if np.array_equal(whole, longest[ranges(sizes[most] - sizes, widths)]) else None


def _lookup_of_sequences(table: NDArray[Any], index: NDArray[np.int64]) -> Lookup:
    """The lookup of an index of offsets, without values that only longer sequences of other batches have."""
    used, offsets = np.unique(index, return_inverse=True)
    diagonals, most = torch.from_numpy(offsets.astype(_narrowest(len(used))))[None], len(offsets) // 2 + 1
    return Lookup(torch.from_numpy(table[used]), torch.arange(len(used))[None], Toeplitz(diagonals, most, most))


def _narrowest(rows: int) -> type[np.integer[Any]]:
    """The narrowest integers that PyTorch has for an index into this many rows."""
    return np.uint8 if rows <= 1 << 8 else np.int16 if rows <= 1 << 15 else np.int32


def _list(listed: NDArray[Any], column: Column) -> SparsePairs:
    """The listed pairs of all structures, one after the other."""
    assert column.index is not None
    batch = np.repeat(np.arange(len(column)), np.diff(column.starts))
    pairs = Pairs(*map(torch.from_numpy, (batch, *listed.T.astype(np.int64, order="C"))))
    return SparsePairs(torch.from_numpy(owned(column.values)), torch.from_numpy(column.index.astype(np.int64)), pairs)


def holds(condition: Tensor) -> bool:
    """Whether the condition for refusing a batch is met, such as a place beyond a table.

    While torch.compile or torch.export traces a model, values are unknown and no batch is refused: a compiled model
    must be given valid batches. Looking up a row that does not exist then fails in PyTorch.
    """
    return not torch.compiler.is_compiling() and bool(condition)


def check_offsets(encoding: Encoding) -> None:
    """Raise an error unless the values of an encoding of pairs can be rows of a table.

    Raises:
        PositionError: it gives real numbers.
    """
    if encoding.real:
        raise PositionError(
            f"this model needs integer positions, but encoding {encoding.name!r} returns real numbers; use for example "
            f"'distance', or a position model without a table"
        )


def numbers(model: str, encoding: Encoding, of_units: Tensor) -> Tensor:
    """The value of an encoding of arity 1 at each unit, which must be one number.

    Raises:
        PositionError: it is a vector, such as a path or eigenvectors.
    """
    if of_units.ndim != 2:
        raise PositionError(
            f"position model {model!r} needs one number per unit (order, depth, ...); "
            f"{encoding.name!r} gives {tuple(of_units.shape[2:])} numbers; {_VECTORS}"
            + ("; numbers of pairs need arity = 2 in the class" if of_units.shape[2:] == of_units.shape[1:2] else "")
        )
    return of_units


def offsets(model: str, encoding: Encoding, of_pairs: Lookup) -> Lookup:
    """The value of an encoding of arity 2 at each pair, which must be one number.

    Raises:
        PositionError: it is a sequence, such as the labels along a path.
    """
    if of_pairs.table.ndim != 1:
        raise PositionError(
            f"position model {model!r} needs one integer per pair (offset, distance, ...); "
            f"{encoding.name!r} gives {tuple(of_pairs.table.shape[1:])} numbers"
        )
    return of_pairs


def of_arity(model: str, encoding: Encoding, arity: Literal[1, 2]) -> Encoding:
    """The encoding, which must be of the arity that a model needs.

    Raises:
        PositionError: it is of the other one.
    """
    if encoding.arity != arity:
        needed = "pairs of units (offset, distance, ...)" if arity == 2 else "single units (order, depth, ...)"
        raise PositionError(
            f"position model {model!r} needs an encoding of {needed}; {encoding.name!r} is not one: {fitting(encoding)}"
        )
    return encoding


_NUMBERS = "'learned', 'sinusoidal', 'rotary' and others read one number per unit"
_VECTORS = "'dwivedi', 'rwse', 'wire' and others read a vector per unit"
_PAIRS = "'t5', 'shaw', 'alibi' and others read a value per pair"
_LISTED = "'sliding-window' reads listed pairs"


def fitting(encoding: Encoding | type[Encoding]) -> str:
    """Which position models read an encoding of this kind, for errors."""
    if encoding.arity == 2:
        return f"it is of pairs; {_LISTED if encoding.sparse else _PAIRS}"
    return f"it is of single units; {_NUMBERS}; {_VECTORS}"


def of_whole(model: str, encoding: Encoding) -> Encoding:
    """The encoding, which must give units whole numbers, as the rows of a table.

    Raises:
        PositionError: it is of pairs, or gives real numbers.
    """
    if of_arity(model, encoding, 1).real:
        raise PositionError(
            f"position model {model!r} needs integer positions, but encoding {encoding.name!r} returns real numbers; "
            f"use for example 'order', or a position model without a table"
        )
    return encoding


def indices(model: str, encoding: Encoding, of_units: Tensor) -> Tensor:
    """The value of an encoding of arity 1 at each unit, which must be one whole number, 0 or more: the row of a table.

    Raises:
        PositionError: it is not.
    """
    rows = numbers(model, encoding, of_units)
    if rows.is_floating_point() or holds((rows < 0).any()):
        given = "real numbers" if rows.is_floating_point() else f"{int(rows.min())}"
        raise PositionError(
            f"position model {model!r} needs integer positions from 0 on, but encoding {encoding.name!r} returns "
            f"{given}"
        )
    return rows


def of_all_pairs(model: str, encoding: Encoding) -> Encoding:
    """The encoding, which must have a value for every pair of units.

    Raises:
        PositionError: it is of units, or lists only some pairs.
    """
    if of_arity(model, encoding, 2).sparse:
        raise PositionError(f"position model {model!r} needs an encoding of all pairs; {encoding.name!r} lists some")
    return encoding


def width_of(model: str, encoding: Encoding) -> int:
    """How many numbers an encoding of arity 1 gives each unit, found by encoding a short path.

    Raises:
        PositionError: it gives one integer, not a vector.
    """
    shape = of_arity(model, encoding, 1).one(path(["a", "b"])).values.shape
    if len(shape) != 2:
        raise PositionError(
            f"position model {model!r} needs a vector per unit (laplacian, random-walk, ...); "
            f"{encoding.name!r} gives one number; {_NUMBERS}"
        )
    return int(shape[1])


def of_listed_pairs(model: str, encoding: Encoding) -> Encoding:
    """The encoding, which must list pairs.

    Raises:
        PositionError: it is of all pairs, or of units.
    """
    if not of_arity(model, encoding, 2).sparse:
        raise PositionError(
            f"position model {model!r} needs an encoding that lists pairs (neighbours, window, ...); "
            f"{encoding.name!r} is of all pairs"
        )
    return encoding


def clipped(scores: Tensor) -> Tensor:
    """Scores clipped to -5..5: the authors take their exponentials without a maximum."""
    return scores.clamp(-5, 5)
