"""What encodings return: of one structure an :class:`Encoded`, of a list a :class:`Column` of flat arrays.

A batch, a shard of a store and a data set are columns. Which form the index of u units has follows from its length: u^2
is a square, 2u - 1 a plain sequence (Toeplitz), and u (u + 1) / 2 with u > 2 a triangle of symmetric pairs, row by row.
Shapes: g structures, u units of one, N units in total, R distinct values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.compiled import compiled
from structpe.errors import EncodingError
from structpe.structure import Ids

if TYPE_CHECKING:
    from structpe.encodings.base import Encoding

__all__ = [
    "SPLIT",
    "Column",
    "Encoded",
    "as_items",
    "blocks",
    "distinct",
    "groups",
    "halves",
    "interleave",
    "is_half",
    "joined",
    "narrow",
    "owned",
    "ranges",
    "same_shape",
    "scatter",
    "significant",
    "starts_of",
    "to_grid",
    "whole",
]


Array = NDArray[Any]

_A_SLICE = 32  # numbers that take as long as the index of a structure, cut out and written as a slice
_SHORT = 128  # parts up to this length are written by an index of their places, longer ones as slices


def owned(array: Array) -> Array:
    """The array, or a copy if others own its memory, such as a file: PyTorch and numba take arrays to be writable."""
    return array if array.flags.writeable else array.copy()


def starts_of(lengths: Any) -> Ids:
    """(parts + 1,) where each of consecutive parts of these lengths begins, and the end."""
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.add.accumulate(lengths, out=starts[1:], dtype=np.int64)  # in less than half the time of np.cumsum
    return starts


def joined(parts: Sequence[Ids]) -> Ids:
    """Numbers of all parts, one after the other; faster than ``np.concatenate`` for many small ones, without gaps."""
    memory: Any = parts
    return np.frombuffer(bytearray().join(memory), dtype=np.int64)


def ranges(first: Ids, lengths: Ids) -> Ids:
    """The numbers first[i] .. first[i] + lengths[i] - 1 of each i, one range after the other."""
    ends = np.cumsum(lengths)
    result: Ids = np.repeat(first - ends + lengths, lengths)
    result += np.arange(len(result))
    return result


def blocks(widths: Ids, cells: int) -> Iterator[slice]:
    """Consecutive rows of these widths that together have so many cells; one row at the least."""
    ends, first = np.cumsum(widths), 0
    while first < len(widths):
        before = int(ends[first] - widths[first])
        last = max(first + 1, int(np.searchsorted(ends, before + cells, side="right")))
        yield slice(first, last)
        first = last


def groups(sizes: Ids, cells: int = 1 << 22) -> Iterator[Ids]:
    """Structures of one size, as many at a time as have so many cells in their square matrices; one at the least."""
    for size in np.unique(sizes).tolist():
        same, most = np.flatnonzero(sizes == size), max(1, cells // size**2)
        for first in range(0, len(same), most):
            yield same[first : first + most]


def scatter(result: Array, starts: Ids, parts: Array) -> None:
    """Write parts of one length, the rows of a matrix, to where each begins."""
    width = parts.shape[1]
    if width <= _SHORT:
        result[starts[:, None] + np.arange(width)] = parts
        return
    for start, part in zip(starts.tolist(), parts, strict=True):
        result[start : start + width] = part


def interleave(result: Array, starts: Ids, other: NDArray[np.bool_], flat: Array) -> None:
    """Write the parts of structures into a flat array, except for the places of others.

    Args:
        result: where; parts of all structures.
        starts: (g + 1,) where each part begins, and the end.
        other: (g,) the structures whose places are left alone.
        flat: the parts of those that are not ``other``.
    """
    done = used = 0
    runs = np.flatnonzero(np.diff(other, prepend=False, append=False))  # of consecutive others, the first and the end
    for begin, end in starts[runs].reshape(-1, 2).tolist():
        result[done:begin] = flat[used : used + begin - done]
        used, done = used + begin - done, end
    result[done:] = flat[used:]


def halves(index: Array, starts: Ids, sizes: Ids) -> tuple[Array, Ids]:
    """The flat index of several structures with a triangle in place of each symmetric square, and where each begins."""
    lengths, symmetric = np.diff(starts), np.zeros(len(sizes), dtype=np.bool_)
    symmetric[:] = (lengths == sizes * sizes) & (sizes > 2)
    if _check.pays(len(index)):
        _check(index, starts, sizes, symmetric)
    else:
        for number in np.flatnonzero(symmetric).tolist():
            square = index[starts[number] : starts[number + 1]].reshape(sizes[number], -1)
            symmetric[number] = np.array_equal(square, square.T)
    if not symmetric.any():
        return index, starts
    ends = starts_of(np.where(symmetric, sizes * (sizes + 1) // 2, lengths))
    result = np.empty(int(ends[-1]), dtype=index.dtype)
    if _halve.pays(len(result)):
        _halve(index, starts, sizes, symmetric, result)
        return result, ends
    for number, n in enumerate(sizes.tolist()):
        mine = index[starts[number] : starts[number + 1]]
        half = mine.reshape(n, n)[np.tri(n, dtype=np.bool_)] if symmetric[number] else mine
        result[ends[number] : ends[number + 1]] = half
    return result, ends


def is_half(length: int, units: int) -> bool:
    """Whether the index of so many units is a triangle, by its length."""
    return units > 2 and length == units * (units + 1) // 2


def whole(half: Array, units: int) -> Array:
    """(u, u) the square of a triangle."""
    square = np.empty((units, units), dtype=half.dtype)
    if _write.pays(len(half)):
        _write(half, square)
    else:
        lower = np.tri(units, dtype=np.bool_)
        square[lower] = half
        square.T[lower] = half
    return square


@compiled
def _check(index: Array, starts: Ids, sizes: Ids, symmetric: NDArray[np.bool_]) -> None:
    for g in range(len(sizes)):
        if symmetric[g]:
            n, first = sizes[g], starts[g]
            for i in range(n):
                for j in range(i):
                    if index[first + i * n + j] != index[first + j * n + i]:
                        symmetric[g] = False
                        break
                if not symmetric[g]:
                    break


@compiled
def _halve(index: Array, starts: Ids, sizes: Ids, symmetric: NDArray[np.bool_], result: Array) -> None:
    k = 0
    for g in range(len(sizes)):
        n, first, last = sizes[g], starts[g], starts[g + 1]
        if not symmetric[g]:
            for q in range(first, last):
                result[k] = index[q]
                k += 1
            continue
        for i in range(n):
            for j in range(i + 1):
                result[k] = index[first + i * n + j]
                k += 1


@compiled
def _write(half: Array, square: Array) -> None:
    k = 0
    for i in range(len(square)):
        for j in range(i + 1):
            square[i, j] = half[k]
            square[j, i] = half[k]
            k += 1


@compiled
def _pad(index: Array, starts: Ids, sizes: Ids, square: NDArray[np.bool_], widths: Ids, result: Array) -> None:
    at = 0
    for g in range(len(sizes)):
        n, k, width = sizes[g], starts[g], widths[g]
        for i in range(n if square[g] else 0):
            first = at + i * width
            row, mine = result[first : first + n], index[k : k + n]  # copied by vector operations, which places are not
            for j in range(len(mine)):
                row[j] = mine[j]
            k += n
        at += width * width


@compiled
def _unfold(index: Array, first: Ids, sizes: Ids, half: NDArray[np.bool_], line: NDArray[np.bool_], out: Array) -> None:
    for g in range(len(sizes)):
        n, q = sizes[g], first[g]
        for i in range(n):
            if line[g]:  # by offset, from 1 - n on
                q = first[g] + n - 1 - i
            for j in range(i + 1 if half[g] else n):
                out[g, i, j] = index[q]
                if half[g]:
                    out[g, j, i] = index[q]
                q += 1


@dataclass(frozen=True, eq=False)
class Encoded:
    """An encoding of one structure of u units.

    Attributes:
        values: arity 1: (u, ...) the value of each unit; arity 2: (r, ...) the distinct values, in no particular order.
            Real numbers may be there several times, as a search for equal ones would take longer than the numbers.
        index: arity 2: (u, u) index of the value of each pair (query, key), in the narrowest unsigned dtype; or
            (2u - 1,) if it depends on the offset only, that of the pair (i, j) at j - i + u - 1 (a Toeplitz matrix, as
            in sequences); (e,) of each listed pair if the encoding is sparse. None for arity 1.
        listed: (e, 2) the listed pairs (query, key) of units, each once; None unless the encoding is sparse.
        units: u, the number of units; None unless the encoding is sparse.
        rows: (r,) arity 2: the values that the structure uses, if it shares them with others; the index counts among
            them. None if it counts among all values.
    """

    values: NDArray[Any]
    index: NDArray[Any] | None = None
    listed: NDArray[Any] | None = None
    units: int | None = None
    rows: NDArray[Any] | None = None

    @property
    def count(self) -> int:
        """u, the number of units."""
        if self.units is not None:
            return self.units
        if self.index is None:
            return len(self.values)
        return (len(self.index) + 1) // 2 if self.index.ndim == 1 else len(self.index)

    @property
    def distinct(self) -> NDArray[Any]:
        """Arity 2: (r, ...) the values among which the index counts."""
        return self.values if self.rows is None else self.values[self.rows]

    @classmethod
    def of_list(cls, listed: NDArray[Any], values: NDArray[Any], units: int) -> Self:
        """From (e, 2) distinct pairs of units, in any order, and the integer (e,) of each."""
        distinct, index = np.unique(values, return_inverse=True)
        return cls(distinct, narrow(index), listed, units)

    @classmethod
    def of_pairs(cls, pairs: NDArray[Any]) -> Self:
        """From the (u, u) matrix of integer values.

        Raises:
            EncodingError: it is not such a matrix.
        """
        given: Any = pairs
        if not isinstance(given, np.ndarray) or given.ndim != 2 or given.dtype.kind not in "biu":
            kind = f"shape {given.shape} of {given.dtype}" if isinstance(given, np.ndarray) else type(given).__name__
            raise EncodingError(
                f"of_pairs takes a NumPy matrix (u, u) of whole numbers, and was given {kind}; for real numbers create "
                f"Encoded(values, index)"
            )
        low, span = int(pairs.min()), int(np.ptp(pairs))
        if span > 4 * pairs.size:  # special values are far from offsets
            values, index = np.unique(pairs, return_inverse=True)
            return cls(values, narrow(index.reshape(pairs.shape)))
        seen = np.zeros(span + 1, dtype=np.bool_)  # counting is faster than sorting
        seen[pairs - low] = True
        values = (np.flatnonzero(seen) + low).astype(pairs.dtype)
        return cls(values, narrow(np.cumsum(seen) - 1)[pairs - low])

    @classmethod
    def of_offsets(cls, values: NDArray[np.integer[Any]]) -> Self:
        """From (2u - 1,) integers of the offsets j - i = 1 - u..u - 1 of pairs (i, j), on which alone values depend."""
        distinct, index = np.unique(values, return_inverse=True)
        return cls(distinct, narrow(index))

    def matrix(self) -> NDArray[Any]:
        """The (u, u) index of an encoding of all pairs, written out."""
        assert self.index is not None  # of all pairs
        if self.index.ndim == 2:
            return self.index
        return np.lib.stride_tricks.sliding_window_view(self.index, self.count)[::-1]

    def pairs(self) -> NDArray[Any]:
        """The (u, u, ...) matrix of values, the inverse of :meth:`of_pairs`; for inspection and tests."""
        if self.index is None:
            raise EncodingError("this encoding has one value per unit, not per pair; use .values")
        if self.listed is not None:
            raise EncodingError("this encoding lists some pairs only; use .listed and .values[.index]")
        result: NDArray[Any] = self.distinct[self.matrix()]
        return result


@dataclass(frozen=True, eq=False)
class Column:
    """An encoding of g structures. ``column[i]`` is structure i, ``column[a:b]`` a column, both without a copy.

    On disk, symmetric pairs are halves (:mod:`structpe.encodings.columns`), which become whole when they are read.

    Attributes:
        sizes: (g,) number of units of each structure.
        values: arity 1: (N, ...) the value of each unit, one structure after the other; arity 2: (R, ...) the distinct
            values of all structures.
        index: arity 2: the index of each structure, row by row, one structure after the other, in the narrowest
            unsigned dtype; None for arity 1.
        starts: (g + 1,) where each structure begins in ``index``, or in ``values`` for arity 1, and the end.
        rows: the values that each structure uses, one structure after the other; its index counts among them. None if
            indices count among all values, or if each structure has values of its own.
        row_starts: (g + 1,) where each structure begins in ``rows``; without these, where it begins in ``values``, if
            each has its own, as those of real numbers. None if indices count among all values.
        listed: (E, 2) the listed pairs (query, key) of a sparse encoding, as ``index``; None of others.
        widths: (g,) of a batch: the index of each structure is a square of this width, with zeros after its units.
            None if it is not padded.
    """

    sizes: NDArray[np.int64]
    values: Array
    index: Array | None
    starts: NDArray[np.int64]
    rows: Array | None = None
    row_starts: NDArray[np.int64] | None = None
    listed: Array | None = None
    widths: NDArray[np.int64] | None = None

    @classmethod
    def of_units(cls, sizes: Array, values: Array) -> Self:
        """From (N, ...) values of the units of all structures."""
        return cls(sizes, values, None, starts_of(sizes))

    @classmethod
    def of_pairs(cls, sizes: Array, values: Array, index: Array) -> Self:
        """From (R, ...) values, and the flat index of all pairs of units of all structures."""
        return cls(sizes, values, narrow(index), starts_of(np.square(sizes)))

    @classmethod
    def of(cls, encoded: Sequence[Encoded], encoding: Encoding | None = None) -> Self:
        """From structures encoded one by one.

        Args:
            encoded: of one encoding.
            encoding: it; equal real numbers are not looked for unless they recur, and ragged values are padded with -1.

        Raises:
            EncodingError: values of several structures have different shapes, and the encoding is not ragged.
        """
        _check_shapes(encoded, encoding)
        real = encoding is not None and encoding.real and not encoding.recurs
        sizes = np.array([each.count for each in encoded], dtype=np.int64)
        if not encoded:
            return cls.of_units(sizes, sizes)
        if encoded[0].index is None:
            return cls.of_units(sizes, np.concatenate([each.values for each in encoded]))
        table, places = distinct([each.distinct for each in encoded], search=not real)
        indices = [each.index for each in encoded if each.index is not None]
        if encoded[0].listed is not None:
            index = np.concatenate([where[each] for where, each in zip(places, indices, strict=True)])
            listed = np.concatenate([each.listed for each in encoded if each.listed is not None])
            return cls(sizes, table, narrow(index), starts_of([len(each) for each in indices]), listed=listed)
        starts, row_starts = starts_of([each.size for each in indices]), starts_of([len(where) for where in places])
        index = np.concatenate([each.reshape(-1) for each in indices])
        return cls(sizes, table, index, starts, narrow(np.concatenate(places)), row_starts)

    @classmethod
    def joined(cls, columns: Sequence[Self], encoding: Encoding | None = None) -> Self:
        """The structures of several columns of one encoding, in their order, with one table of values.

        Args:
            columns: one or more.
            encoding: theirs, as for :meth:`of`.

        Raises:
            EncodingError: as for :meth:`of`.
        """
        if len(columns) == 1:
            return columns[0]
        _check_shapes(columns, encoding)
        sizes = np.concatenate([column.sizes for column in columns])
        if columns[0].index is None:
            return cls.of_units(sizes, np.concatenate([column.values for column in columns]))
        starts = starts_of(np.concatenate([np.diff(column.starts) for column in columns]))
        indices = [column.index for column in columns if column.index is not None]
        search = encoding is None or not encoding.real
        if not search and all(column.rows is None and column.row_starts is not None for column in columns):
            row_starts = starts_of(np.concatenate([column._counts() for column in columns]))
            table = np.concatenate(same_shape([column.values for column in columns]))
            return cls(sizes, table, narrow(np.concatenate(indices)), starts, None, row_starts)
        table, places = distinct([column.values for column in columns], search=search)
        if all(column.row_starts is None for column in columns):
            listed = [column.listed for column in columns if column.listed is not None]
            index = narrow(_through(places, indices, len(table)))
            return cls(sizes, table, index, starts, listed=np.concatenate(listed) if listed else None)
        rows = narrow(_through(places, [column._used() for column in columns], len(table)))
        row_starts = starts_of(np.concatenate([column._counts() for column in columns]))
        return cls(sizes, table, narrow(np.concatenate(indices)), starts, rows, row_starts)

    def _used(self) -> Array:
        """The values that each structure uses, one structure after the other."""
        if self.rows is not None:
            return self.rows
        every = np.arange(len(self.values))
        return np.tile(every, len(self)) if self.row_starts is None else every

    def _counts(self) -> Array:
        """(g,) how many values each structure uses."""
        return np.full(len(self), len(self.values)) if self.row_starts is None else np.diff(self.row_starts)

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[Encoded]:
        return map(self.__getitem__, range(len(self.sizes)))

    @overload
    def __getitem__(self, item: int) -> Encoded: ...

    @overload
    def __getitem__(self, item: slice) -> Column: ...

    def __getitem__(self, item: int | slice) -> Encoded | Column:
        count = len(self.sizes)
        if isinstance(item, slice):
            return self._part(*item.indices(count))
        if not -count <= item < count:
            raise IndexError(f"structure {item} of {count}")
        item %= count
        mine, units = slice(self.starts[item], self.starts[item + 1]), int(self.sizes[item])
        if self.index is None:
            return Encoded(self.values[mine])
        index = self.index[mine]
        if self.listed is not None:
            return Encoded(self.values, index, self.listed[mine], units)
        if self.widths is not None:
            return Encoded(self.values, index.reshape(self.widths[item], -1)[:units, :units])
        if len(index) == units * units:
            index = index.reshape(units, units)
        elif is_half(len(index), units):
            index = whole(index, units)
        if self.row_starts is None:
            return Encoded(self.values, index)
        own = slice(self.row_starts[item], self.row_starts[item + 1])
        if self.rows is None:
            return Encoded(self.values[own], index)
        return Encoded(self.values, index, rows=self.rows[own])

    def padded(self, dtype: np.dtype[Any]) -> Array:
        """(g, m, m) the index of the pairs of each structure in a dtype that holds it, padded with zeros."""
        count, most = len(self), int(self.sizes.max())
        return self.squares(np.full(count, most), dtype).reshape(count, most, most)

    def squares(self, widths: Ids, dtype: np.dtype[Any]) -> Array:
        """The same in a square of each structure, one after the other, flat.

        Args:
            widths: (g,) of the squares; those of the column, if it has any.
            dtype: it holds the index.
        """
        assert self.index is not None  # of all pairs
        index = self.index.view(dtype) if self.index.itemsize == dtype.itemsize else self.index.astype(dtype)
        cells = int(np.square(widths).sum())
        if len(index) == cells and (self.widths is not None or (widths == self.sizes).all()):
            return owned(index)
        result, square = np.zeros(cells, dtype=dtype), np.diff(self.starts) == np.square(self.sizes)
        if pays := _pad.pays(_A_SLICE * len(self)):
            _pad(owned(index), self.starts, self.sizes, square, widths, result)
            if square.all():
                return result
        places = zip(*(each.tolist() for each in (self.sizes, self.starts, square, widths)), strict=False)
        at = 0
        for each, (n, first, is_whole, width) in enumerate(places):
            mine = result[at : at + width * width].reshape(width, width)
            at += width * width
            if not is_whole:
                mine[:n, :n] = self[each].matrix()
            elif not pays:
                mine[:n, :n] = index[first : first + n * n].reshape(n, n)
        return result

    def chosen(self, items: Ids) -> Column | Sequence[Encoded]:
        """Some structures: a padded column if all pairs have values of one table, except for sequences alone."""
        sizes, lengths = self.sizes[items], np.diff(self.starts)[items]
        half = (lengths == sizes * (sizes + 1) // 2) & (sizes > 2)
        line = (lengths == 2 * sizes - 1) & (sizes > 1)
        own = self.listed is not None or self.row_starts is not None or self.widths is not None
        if self.index is None or own or line.all():
            return [self[item] for item in items.tolist()]
        most = int(sizes.max())
        result = np.zeros((len(items), most, most), dtype=self.index.dtype)
        if _unfold.pays(result.size):
            _unfold(owned(self.index), self.starts[items], sizes, half, line, result)
        else:
            for square, item, n in zip(result, items.tolist(), sizes.tolist(), strict=True):
                square[:n, :n] = self[item].matrix()
        widths = np.full(len(items), most)
        return Column(sizes, self.values, result.reshape(-1), starts_of(np.square(widths)), widths=widths)

    def _part(self, first: int, end: int, step: int) -> Column:
        """Consecutive structures, without a copy of their values."""
        if step != 1:
            raise IndexError(f"a column gives consecutive structures, column[{first}:{end}], not every {step}th")
        starts = self.starts[first : end + 1]
        mine, own, starts = slice(starts[0], starts[-1]), slice(None), starts - starts[0]
        index, rows, row_starts, sizes = self.index, self.rows, self.row_starts, self.sizes[first:end]
        if index is None:
            return Column(sizes, self.values[mine], None, starts)
        if row_starts is not None:
            row_starts = row_starts[first : end + 1]
            own, row_starts = slice(row_starts[0], row_starts[-1]), row_starts - row_starts[0]
        values = self.values if rows is not None or row_starts is None else self.values[own]
        rows, listed = None if rows is None else rows[own], None if self.listed is None else self.listed[mine]
        widths = None if self.widths is None else self.widths[first:end]
        return Column(sizes, values, index[mine], starts, rows, row_starts, listed, widths)

    def __repr__(self) -> str:
        return f"Column({len(self)} structures, {self.sizes.sum():,} units, {len(self.values):,} values)"


def _through(places: Sequence[Array], indices: Sequence[Array], rows: int) -> Array:
    """The indices of several tables, one after the other, as an index into ``rows`` rows where theirs went.

    It is written once, in its own narrow type: with eight bytes per number it would take many times the memory.
    """
    ends = starts_of([len(index) for index in indices])
    result = np.empty(int(ends[-1]), dtype=np.min_scalar_type(max(rows - 1, 0)))
    for first, last, where, index in zip(ends, ends[1:], places, indices, strict=False):
        same = np.array_equal(where, np.arange(len(where)))  # as whole numbers of a range mostly are
        result[first:last] = index if same else where.astype(result.dtype)[index]
    return result


def _check_shapes(encoded: Sequence[Encoded | Column], encoding: Encoding | None) -> None:
    shapes = {each.values.shape[1:] for each in encoded}
    if len(shapes) > 1 and not (encoding is not None and encoding.ragged):
        name = "a column" if encoding is None else f"encoding {encoding.name!r}"
        remedy = "those encoded together need one shape, such as features with as many numbers"
        if all(each.index is None and (_sizes(each) == math.prod(each.values.shape[1:])).all() for each in encoded):
            remedy = (
                "each unit has a number for each other one, as pairs have: set arity = 2 and return "
                "Encoded.of_pairs(matrix)"
            )
        raise EncodingError(
            f"{name} has values of shapes {' and '.join(map(str, sorted(shapes)))} for different structures; {remedy}"
        )


def _sizes(encoded: Encoded | Column) -> Ids:
    return encoded.sizes if isinstance(encoded, Column) else np.array([encoded.count])


def narrow(index: Array) -> Array:
    """Convert non-negative integers to the narrowest unsigned dtype."""
    return index.astype(np.min_scalar_type(int(index.max(initial=0))), copy=False)


def distinct(values: Sequence[Array], search: bool = True) -> tuple[Array, list[Array]]:
    """The distinct rows of all arrays, and for each array where its rows went. Shorter rows are padded with -1.

    Args:
        values: (r, ...) each.
        search: whether to look for equal rows; if not, all rows count as distinct.
    """
    together = np.concatenate(same_shape(values))
    ends = np.cumsum([len(v) for v in values])[:-1]
    if not search:
        return together, np.split(np.arange(len(together)), ends)
    _, first, where = np.unique(as_items(together), return_index=True, return_inverse=True)
    return together[first], np.split(where, ends)


def same_shape(values: Sequence[Array]) -> list[Array]:
    """Pad values, such as label paths, with -1 to one shape of all rows."""
    shape = tuple(np.max([v.shape[1:] for v in values], axis=0).tolist()) if values[0].ndim > 1 else ()
    padded = list(values)
    for number, rows in enumerate(values):
        if rows.shape[1:] != shape:
            padded[number] = np.full((len(rows), *shape), -1, dtype=rows.dtype)
            padded[number][tuple(map(slice, rows.shape))] = rows
    return padded


def as_items(rows: Array) -> Array:
    """Each row as one item: numpy compares items of bytes several times faster than rows of numbers (axis=0)."""
    if rows.ndim == 1:
        return rows
    flat = np.ascontiguousarray(rows.reshape(len(rows), -1))
    return flat.view(np.dtype((np.void, flat.itemsize * flat.shape[1]))).reshape(-1)


Floats = NDArray[np.float64]

_BITS = 36
SPLIT = 1 + 2.0 ** (53 - _BITS)
"""The factor by which a number is split into its first digits and the others (Veltkamp); see :func:`significant`."""


def significant(values: Floats) -> Floats:
    """Round to 36 binary (11 decimal) digits, for numbers whose relative errors are a few units of the last of 53."""
    high = values * SPLIT  # the sum keeps the first digits
    rounded: Floats = high - (high - values) + 0.0
    return rounded


def to_grid(values: Floats, error: float | Floats) -> Floats:
    """Round to multiples of the power of 2 that is at least 16 times the error of the numbers."""
    grid = 2.0 ** np.ceil(np.log2(16 * error))
    rounded: Floats = np.round(values / grid) * grid + 0.0
    return rounded
