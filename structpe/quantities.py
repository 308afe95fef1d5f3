"""Quantities of pairs of units, never stored per pair: a table of distinct values, and an index of which each pair has.

Shapes: b batch, n queries, m keys, R rows of a table, r rows that one structure uses, e listed pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Int, Integer
from torch import Tensor

from structpe.computed import computed
from structpe.errors import PositionError

__all__ = ["Lookup", "Pairs", "SparsePairs", "Toeplitz"]

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Toeplitz:
    """An index that depends on the offset of the pair only, as in a sequence: index_ij = diagonals[j - i + n - 1].

    It takes O(n + m) memory instead of O(n m).

    Attributes:
        diagonals: (b or 1, n + m - 1) integers, from the lower left corner of the matrix to the upper right.
        n: number of queries.
        m: number of keys.

    Raises:
        PositionError: the diagonals have a wrong dtype or shape.
    """

    diagonals: Integer[Tensor, "#b c"]
    n: int
    m: int

    def __post_init__(self) -> None:
        _check_index("diagonals", self.diagonals, "(b or 1, n + m - 1)", 2)
        if self.diagonals.shape[1] != self.n + self.m - 1:
            raise PositionError(
                f"an index of {self.n} queries and {self.m} keys has {self.n + self.m - 1} diagonals; given are "
                f"{self.diagonals.shape[1]}"
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of the index written out: (b or 1, n, m)."""
        return len(self.diagonals), self.n, self.m

    def dense(self) -> Integer[Tensor, "#b n m"]:
        """The index written out."""
        # Row by row from the last query on, diagonals are windows of one vector; a stride cannot be negative. By
        # unfold, torch.compile would compile each number of keys anew.
        across, along = self.diagonals.stride()
        return self.diagonals.as_strided(self.shape, (across, along, along)).flip(1)

    def transpose(self) -> Toeplitz:
        """index_ji instead of index_ij."""
        return Toeplitz(self.diagonals.flip(1), self.m, self.n)

    def block(self, start: int, stop: int, keys: int) -> Toeplitz:
        """The queries start..stop-1 and the first keys."""
        first = self.n - stop
        return Toeplitz(self.diagonals[:, first : first + stop - start + keys - 1], stop - start, keys)


@dataclass(frozen=True, eq=False)
class Lookup:
    """A quantity of pairs: x_ij = table[rows[index_ij]], one row per distinct value.

    The table holds the distinct values of the whole batch; ``rows`` says which of them a structure uses, so that the
    index stays narrow and what is computed per query is as wide as one structure's values, not the batch's.

    Attributes:
        table: (R, ...) a row for each distinct value. As a term: (R, h or 1) scalars or (R, h or 1, d) vectors.
        rows: (b or 1, r) integers into the table.
        index: (b or 1, n, m) integers into the rows, in any integer type, uint8 included, or a :class:`Toeplitz`;
            structures may share either, both or neither.
        shared: whether all layers read this very object, see :meth:`share`. Kernels then gather it once.

    Raises:
        PositionError: rows or index have a wrong dtype or shape.
    """

    table: Tensor
    rows: Integer[Tensor, "#b r"]
    index: Integer[Tensor, "#b n m"] | Toeplitz
    shared: bool = False
    _kept: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        _check_index("rows", self.rows, "(b or 1, r)", 2)
        if not isinstance(self.index, Toeplitz):
            _check_index("index", self.index, "(b or 1, n, m)", 3)

    def map(self, function: Callable[[Tensor], Tensor]) -> Lookup:
        """The same pairs with another table: ``function`` sees each distinct value once, not each pair.

        Args:
            function: (R, ...) to (R, ...), with a row for each row; more rows may follow.

        Raises:
            PositionError: the result has fewer rows, or is not a tensor.
        """
        return Lookup(_mapped(function, self.table), self.rows, self.index)

    def local(self) -> Tensor:
        """(b or 1, r, ...) the rows of each structure."""
        # Not table[rows], whose gradient takes up to twice as long.
        return self.table.index_select(0, self.rows.long().flatten()).view(*self.rows.shape, *self.table.shape[1:])

    def places(self) -> Integer[Tensor, "#b n m"]:
        """The index written out in int64, as indexing and ``gather`` need it: 8 bytes per pair."""
        return (self.index.dense() if isinstance(self.index, Toeplitz) else self.index).long()

    def dense(self) -> Tensor:
        """(b or 1, n, m, ...) the quantity of each pair, for inspection and for the reference kernel."""
        batch = torch.arange(len(self.rows), device=self.rows.device)
        chosen = self.rows[batch[:, None, None], self.places()]
        return self.table[chosen.long()]

    def share(self) -> Lookup:
        """The same lookup, for terms that a model prepares once for all layers."""
        return Lookup(self.table, self.rows, self.index, shared=True)

    def kept(self, name: str, make: Callable[[], T]) -> T:
        """What ``make`` returns; if layers share the lookup it is made once, and its gradient is summed once too."""
        if not self.shared:
            return make()
        key = name, torch.is_grad_enabled()
        if key not in self._kept:
            self._kept[key] = make()
        found: T = self._kept[key]
        return found

    def transpose(self) -> Lookup:
        """x_ji instead of x_ij; for self-attention, with the same units as queries and keys.

        Raises:
            PositionError: they are not the same, as in a decoding step with a cache.
        """
        if self.index.shape[1] != self.index.shape[2]:
            raise PositionError(
                f"{self.index.shape[1]} queries and {self.index.shape[2]} keys cannot change places; a position model "
                f"that looks from the key at the query cannot decode step by step"
            )
        index = self.index.transpose() if isinstance(self.index, Toeplitz) else self.index.transpose(1, 2)
        return Lookup(self.table, self.rows, index)

    def queries(self, rows: slice) -> Lookup:
        """Only these queries, over the keys up to the last of them: a decoding step with a cache."""
        start, stop = _ends(rows, self.index.shape[1])
        index = self.index.block(start, stop, stop) if isinstance(self.index, Toeplitz) else self.index[:, rows, :stop]
        return Lookup(self.table, self.rows, index)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Some pairs of units of a batch, each listed once, in any order: the only ones that attend.

    Attributes:
        batch: (e,) number of the structure.
        query: (e,) place of the query.
        key: (e,) place of the key.

    Raises:
        PositionError: a pair is listed twice. This is not checked on a GPU, as it would need a synchronisation.
    """

    batch: Int[Tensor, " e"]
    query: Int[Tensor, " e"]
    key: Int[Tensor, " e"]

    def __post_init__(self) -> None:
        parts = (self.batch, self.query, self.key)
        alike = all(part.shape == self.key.shape and part.device.type == "cpu" for part in parts)
        if torch.compiler.is_compiling() or not alike or not self.key.numel():
            return
        codes = (self.batch * (self.query.max() + 1) + self.query) * (self.key.max() + 1) + self.key
        if (codes[1:] > codes[:-1]).all():  # sorted, the usual case
            return
        codes, order = codes.sort()
        twice = order[1:][codes[1:] == codes[:-1]].tolist()
        if twice:
            first = tuple(int(part[twice[0]]) for part in parts)
            raise PositionError(
                f"{len(twice)} pairs are listed more than once, such as batch, query and key {first}; list each once"
            )

    def dense(self, b: int, n: int, m: int) -> Bool[Tensor, "b 1 n m"]:
        """The pairs as a mask, for inspection and for the reference kernel."""
        allowed = torch.zeros(b, 1, n, m, dtype=torch.bool, device=self.batch.device)
        allowed[self.batch, 0, self.query, self.key] = True
        return allowed

    @computed
    def offsets(self) -> tuple[int, int]:
        """The least and the greatest offset, key minus query; (0, 0) of an empty list. This waits for a GPU."""
        if not len(self.key):
            return 0, 0
        low, high = (self.key - self.query).aminmax()
        return int(low), int(high)

    def within(self, rows: slice) -> Tensor:
        """(e,) which pairs have their query in these rows, and their key not after the last of these rows."""
        start, stop = _ends(rows, 1 << 62)
        return (self.query >= start) & (self.query < stop) & (self.key < stop)

    def queries(self, rows: slice) -> Pairs:
        """Only these queries, renumbered, over the keys up to the last of them."""
        kept = self.within(rows)
        return Pairs(self.batch[kept], self.query[kept] - (rows.start or 0), self.key[kept])


@dataclass(frozen=True, eq=False)
class SparsePairs:
    """A quantity of listed pairs: x_e = table[index_e], and zero for every other pair.

    Attributes:
        table: (R, ...) as in :class:`Lookup`.
        index: (e,) integers into the table.
        pairs: which pairs these are.

    Raises:
        PositionError: the index is of another kind or form.
    """

    table: Tensor
    index: Integer[Tensor, " e"]
    pairs: Pairs

    def __post_init__(self) -> None:
        _check_index("index", self.index, "(e,)", 1)

    def map(self, function: Callable[[Tensor], Tensor]) -> SparsePairs:
        """The same pairs with another table, as :meth:`Lookup.map`."""
        return SparsePairs(_mapped(function, self.table), self.index, self.pairs)

    def share(self) -> SparsePairs:
        """Itself: it is read pair by pair, so that there is nothing that layers could share."""
        return self

    def dense(self, b: int, n: int, m: int) -> Tensor:
        """(b, n, m, ...) the quantity of each pair, for inspection and for the reference kernel."""
        whole = self.table.new_zeros(b, n, m, *self.table.shape[1:])
        return whole.index_put((self.pairs.batch, self.pairs.query, self.pairs.key), self.table[self.index])

    def queries(self, rows: slice) -> SparsePairs:
        """Only these queries, over the keys up to the last of them."""
        return SparsePairs(self.table, self.index[self.pairs.within(rows)], self.pairs.queries(rows))


def _ends(rows: slice, count: int) -> tuple[int, int]:
    """Where rows begin and end. By ``slice.indices``, torch.compile would compile each number of rows anew."""
    return rows.start or 0, count if rows.stop is None else min(rows.stop, count)


_INTEGERS = (torch.uint8, torch.int16, torch.int32, torch.int64)


def _check_index(name: str, given: Any, form: str, axes: int) -> None:
    """Check the dtype and the number of axes of an index."""
    if not isinstance(given, Tensor) or given.ndim != axes or given.dtype not in _INTEGERS:
        kind = f"{tuple(given.shape)} of {given.dtype}" if isinstance(given, Tensor) else type(given).__name__
        raise PositionError(f"the {name} of a lookup is {form} of torch.uint8, int16, int32 or int64; given is {kind}")


def _mapped(function: Callable[[Tensor], Tensor], table: Tensor) -> Tensor:
    """Apply a function to a table, and check that the result has a row for each row."""
    made: Any = function(table)
    if not isinstance(made, Tensor) or made.ndim == 0 or made.shape[0] < table.shape[0]:
        kind = f"shape {tuple(made.shape)}" if isinstance(made, Tensor) else type(made).__name__
        raise PositionError(
            f"a function given to map must make a table with a row for each of the {table.shape[0]} distinct values, "
            f"({table.shape[0]}, h) scalars or ({table.shape[0]}, h, d) vectors; it made {kind}"
        )
    mapped: Tensor = made
    return mapped
