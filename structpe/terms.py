"""The one equation: every change that a position model makes to attention, independent of the position model.

::

    (q', k') = maps(q, k)                                                                          node level
    s_ij = scale/sqrt(d) [ q'_i.k'_j + q'_i.key_ij + query_ij.k'_j + sum_c q'_ic k'_jc product_ijc ]    pair vectors
    s_ij = gate_ij act(s_ij) + left_i.right_j + bias_ij,   -inf where not mask_ij                    pair scalars
    o_i  = sum_j softmax_j(s_ij) (v_j + value_ij)

Vectors are inside the scale, biases outside it. The d of the root is the width after the maps, which is that of a head
unless a map changes it. A quantity of pairs is never stored per pair: it is a :class:`Lookup`, a table of distinct
values with an index of which each pair has, or :class:`SparsePairs` if only few pairs attend (``pairs``). Two terms
make attention linear in the number of units: ``feature_map``, with which softmax_j(s_ij) becomes f(q'_i).f(k'_j) /
sum_j f(q'_i).f(k'_j), and ``projection``, which replaces the m keys and values by fewer mixtures of them.

Shapes: b batch, h heads, n queries, m keys, d width of a head, R rows of a table, r rows that one structure uses, e
listed pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias, TypeVar

import torch
from jaxtyping import Bool, Float, Int, Integer
from torch import Tensor

from structpe.computed import computed
from structpe.errors import PositionError

__all__ = ["Factor", "Lookup", "Map", "Pairs", "Projection", "SparsePairs", "Terms", "Toeplitz"]

T = TypeVar("T")

_INTEGERS = (torch.uint8, torch.int16, torch.int32, torch.int64)


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
        given: Any = self.diagonals
        if not isinstance(given, Tensor) or given.ndim != 2 or given.dtype not in _INTEGERS:
            raise PositionError(_no_index("diagonals", given, "(b or 1, n + m - 1)"))
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

    The table holds the distinct values of the whole batch; ``rows`` are those that a structure uses. So the index stays
    narrow, and tensors per query are as wide as the values of one structure, not of the batch.

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
    _cache: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        rows: Any = self.rows
        index: Any = self.index
        if not isinstance(rows, Tensor) or rows.ndim != 2 or rows.dtype not in _INTEGERS:
            raise PositionError(_no_index("rows", rows, "(b or 1, r)"))
        if isinstance(index, Toeplitz):  # which has checked its own
            return
        if not isinstance(index, Tensor) or index.ndim != 3 or index.dtype not in _INTEGERS:
            raise PositionError(_no_index("index", index, "(b or 1, n, m)"))

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

    def dense_index(self) -> Integer[Tensor, "#b n m"]:
        """The index written out in int64, as indexing and ``gather`` need it: 8 bytes per pair."""
        return (self.index.dense() if isinstance(self.index, Toeplitz) else self.index).long()

    def dense(self) -> Tensor:
        """(b or 1, n, m, ...) the quantity of each pair, for inspection and for the reference kernel."""
        batch = torch.arange(len(self.rows), device=self.rows.device)
        chosen = self.rows[batch[:, None, None], self.dense_index()]
        return self.table[chosen.long()]

    def share(self) -> Lookup:
        """The same lookup, for terms that a model prepares once for all layers."""
        return Lookup(self.table, self.rows, self.index, shared=True)

    def cached(self, name: str, make: Callable[[], T]) -> T:
        """Return ``make()``, cached if layers share this lookup; its gradient is then summed once, too."""
        if not self.shared:
            return make()
        key = name, torch.is_grad_enabled()
        if key not in self._cache:
            self._cache[key] = make()
        found: T = self._cache[key]
        return found

    def transpose(self) -> Lookup:
        """x_ji instead of x_ij; for self-attention, with the same units as queries and keys.

        Raises:
            PositionError: they are not the same, as in a decoding step with a cache.
        """
        if self.index.shape[1] != self.index.shape[2]:
            wrong = f"{self.index.shape[1]} queries and {self.index.shape[2]} keys cannot change places"
            raise PositionError(f"{wrong}; a position model that reads pairs (key, query) cannot decode step by step")
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
        PositionError: a pair is listed twice. This is not checked on a GPU, since it would synchronise.
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
        given: Any = self.index
        if not isinstance(given, Tensor) or given.ndim != 1 or given.dtype not in _INTEGERS:
            raise PositionError(_no_index("index", given, "(e,)"))

    def map(self, function: Callable[[Tensor], Tensor]) -> SparsePairs:
        """The same pairs with another table, as :meth:`Lookup.map`."""
        return SparsePairs(_mapped(function, self.table), self.index, self.pairs)

    def share(self) -> SparsePairs:
        """Return itself: it is read pair by pair, and layers have nothing to share."""
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


def _no_index(name: str, given: Any, form: str) -> str:
    """The message for an index of a wrong dtype or number of axes."""
    kind = f"{tuple(given.shape)} of {given.dtype}" if isinstance(given, Tensor) else type(given).__name__
    return f"the {name} of a lookup is {form} of torch.uint8, int16, int32 or int64; given is {kind}"


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


Map: TypeAlias = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""(q (b, h, n, d), k (b, h, m, d)) -> (q', k'), of any one width. Maps of one ``Terms`` must commute."""


@dataclass(frozen=True, eq=False)
class Projection:
    """Fewer keys and values, each a mixture of all (Linformer, Wang et al. 2020): k'_c = sum_j keys_cj k_j; same for v.

    A masked key is left out of the mixtures, so its mask must not depend on the query. All other terms of pairs are
    then for pairs of queries and mixtures.

    Attributes:
        keys: (b or 1, h or 1, c, m).
        values: (b or 1, h or 1, c, m).
    """

    keys: Float[Tensor, "#b #h c m"]
    values: Float[Tensor, "#b #h c m"]


@dataclass(frozen=True, eq=False)
class Factor:
    """A pair scalar of low rank, left_i.right_j, outside the scale; it folds into a longer head.

    Attributes:
        left: (b or 1, h or 1, n or 1, r) of the queries.
        right: (b or 1, h or 1, m or 1, r) of the keys.
    """

    left: Float[Tensor, "#b #h #n r"]
    right: Float[Tensor, "#b #h #m r"]


@dataclass(frozen=True, eq=False)
class Terms:
    """The changes of a position model to attention; a commutative monoid under ``+`` whose zero is ``Terms()``.

    Attributes:
        maps: functions of (q, k), before anything else; they must commute.
        factors: pair scalars of low rank.
        bias: pair scalars, (R, h or 1) per lookup, or dense (b or 1, h or 1, n or 1, m or 1). A bias of -inf masks the
            pair.
        gate: pair scalars that multiply the score, in the forms of ``bias``.
        mask: bool (b or 1, h or 1, n, u); False means that the pair does not attend. All masks must allow a pair. u is
            m, or, with a projection, the number of keys before it.
        key: pair vectors (R, h or 1, d) met by the query.
        query: pair vectors met by the key.
        product: pair vectors that weight each channel of q.k, added to it.
        value: pair vectors added to the value.
        act: function of the scaled score, before gate and bias; at most one.
        scale: factor of 1/sqrt(d), of any sign, d being the width after the maps; scales multiply.
        pairs: lists of the only pairs that attend; a pair must be in all lists.
        causal: whether the i-th last query sees the i-th last key and those before it, and no other.
        feature_map: f, which replaces the exponential of the score. It can be combined only with maps, mask, pairs,
            causal, projection and value, since there is no score to add to. At most one.
        projection: of the keys and values; at most one.
    """

    maps: tuple[Map, ...] = ()
    factors: tuple[Factor, ...] = ()
    bias: tuple[Lookup | SparsePairs | Float[Tensor, "#b #h #n #m"], ...] = ()
    gate: tuple[Lookup | SparsePairs | Float[Tensor, "#b #h #n #m"], ...] = ()
    mask: tuple[Bool[Tensor, "#b #h #n #u"], ...] = ()
    key: tuple[Lookup | SparsePairs, ...] = ()
    query: tuple[Lookup | SparsePairs, ...] = ()
    product: tuple[Lookup | SparsePairs, ...] = ()
    value: tuple[Lookup | SparsePairs, ...] = ()
    act: Callable[[Tensor], Tensor] | None = None
    scale: float = 1.0
    pairs: tuple[Pairs, ...] = ()
    causal: bool = False
    feature_map: Callable[[Tensor], Tensor] | None = None
    projection: Projection | None = None

    def __post_init__(self) -> None:
        for name, kinds in _KINDS.items():
            given = getattr(self, name)
            if given != () and not (isinstance(given, tuple) and all(isinstance(each, kinds) for each in given)):
                raise PositionError(_other_term(name, given, kinds))
        for name in ("act", "feature_map"):
            if (given := getattr(self, name)) is not None and not callable(given):
                raise PositionError(f"Terms({name}=...) takes a function of scores; given is {given!r}")
        if self.scale is None:
            raise PositionError("Terms(scale=...) takes a number; given is None; leave it out for 1")

    def __add__(self, other: Terms) -> Terms:
        if not isinstance(other, Terms):
            return NotImplemented
        joined: dict[str, Any] = {
            each.name: getattr(self, each.name) + getattr(other, each.name)
            for each in fields(self)
            if each.name not in ("scale", "causal", *_ALONE)
        }
        alone = {name: self._only(other, name, what) for name, what in _ALONE.items()}
        return Terms(**joined, **alone, scale=self.scale * other.scale, causal=self.causal or other.causal)

    def used(self) -> frozenset[str]:
        """Names of the fields that differ from the zero."""
        return frozenset(f.name for f in fields(self) if getattr(self, f.name) != f.default)

    def _only(self, other: Terms, name: str, what: str) -> Any:
        mine, theirs = getattr(self, name), getattr(other, name)
        if mine is not None and theirs is not None:
            raise PositionError(f"two position models both change {what}; only one of a sum may")
        return theirs if mine is None else mine


_KINDS: dict[str, tuple[Any, ...]] = {
    "maps": (Callable,),
    "factors": (Factor,),
    "bias": (Lookup, SparsePairs, Tensor),
    "gate": (Lookup, SparsePairs, Tensor),
    "mask": (Tensor,),
    "key": (Lookup, SparsePairs),
    "query": (Lookup, SparsePairs),
    "product": (Lookup, SparsePairs),
    "value": (Lookup, SparsePairs),
    "pairs": (Pairs,),
}
"""The types of the elements of the fields that are tuples."""


def _other_term(name: str, given: Any, kinds: tuple[Any, ...]) -> str:
    """The message for a field with wrong elements."""
    needed = " or ".join(kind.__name__ for kind in kinds)
    if isinstance(given, kinds):
        return f"Terms({name}=...) takes a tuple, and was given one {type(given).__name__}; write {name}=(it,)"
    wrong = [each for each in given if not isinstance(each, kinds)] if isinstance(given, (tuple, list)) else [given]
    kind = type(wrong[0] if wrong else given).__name__
    return f"Terms({name}=...) takes a tuple of {needed}, and was given {kind}; write {name}=(it,), or leave it out"


_ALONE = {
    "act": "how scores are activated",
    "feature_map": "what replaces the exponential of a score",
    "projection": "which mixtures of keys are attended to",
}
"""Fields that only one summand may have, and what they change."""
