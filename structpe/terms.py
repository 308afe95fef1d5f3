"""The one equation: every change that a position model makes to attention, and nothing about where it came from.

::

    (q', k') = maps(q, k)                                                                          node level
    s_ij = scale/sqrt(d) [ q'_i.k'_j + q'_i.key_ij + query_ij.k'_j + sum_c q'_ic k'_jc product_ijc ]    pair vectors
    s_ij = gate_ij act(s_ij) + left_i.right_j + bias_ij,   -inf where not mask_ij                    pair scalars
    o_i  = sum_j softmax_j(s_ij) (v_j + value_ij)

Vectors are inside the scale, biases outside it. A quantity of pairs is never stored per pair: it is a :class:`Lookup`.

Shapes: b batch, h heads, n queries, m keys, d width of a head, R rows of a table, r rows that one structure uses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from structpe.errors import PositionError

__all__ = ["Factor", "Lookup", "Map", "Terms"]

Map: TypeAlias = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""(q (b, h, n, d), k (b, h, m, d)) -> (q', k') of the same shapes. Maps of one ``Terms`` must commute."""


@dataclass(frozen=True, eq=False)
class Lookup:
    """A quantity of pairs: x_ij = table[rows[index_ij]], one row per distinct value.

    The table holds the distinct values of the whole batch; ``rows`` says which of them a structure uses, so that the
    index stays narrow and what is computed per query is as wide as one structure's values, not the batch's.

    Attributes:
        table: (R, ...) what stands for each distinct value. As a term: (R, h or 1) scalars or (R, h or 1, d) vectors.
        rows: (b or 1, r) integers into the table.
        index: (b or 1, n, m) integers into the rows.
    """

    table: Tensor
    rows: Int[Tensor, "b r"]
    index: Int[Tensor, "b n m"]

    def map(self, function: Callable[[Tensor], Tensor]) -> Lookup:
        """The same pairs with another table: ``function`` sees each distinct value once, not each pair."""
        return Lookup(function(self.table), self.rows, self.index)

    def local(self) -> Tensor:
        """(b or 1, r, ...) the rows of each structure."""
        return self.table[self.rows]

    def dense(self) -> Tensor:
        """(b or 1, n, m, ...) the quantity of each pair: what the lookup means. For looking and for the reference."""
        batch = torch.arange(len(self.rows), device=self.rows.device)
        chosen = self.rows[batch[:, None, None], self.index]
        return self.table[chosen]

    def transpose(self) -> Lookup:
        """x_ji in place of x_ij; for self-attention, where queries and keys are the same units.

        Raises:
            PositionError: they are not, as in a step of decoding with a cache.
        """
        if self.index.shape[1] != self.index.shape[2]:
            raise PositionError(
                f"{self.index.shape[1]} queries and {self.index.shape[2]} keys cannot change places; a position model "
                f"that looks from the key at the query cannot decode step by step"
            )
        return Lookup(self.table, self.rows, self.index.transpose(1, 2))

    def queries(self, rows: slice) -> Lookup:
        """Only these queries, over the keys up to the last of them: a step of decoding with a cache."""
        return Lookup(self.table, self.rows, self.index[:, rows, : rows.stop])


@dataclass(frozen=True, eq=False)
class Factor:
    """A pair scalar of low rank, left_i.right_j, outside the scale; it folds into a longer head.

    Attributes:
        left: (b or 1, h, n, r) of the queries.
        right: (b or 1, h, m, r) of the keys.
    """

    left: Float[Tensor, "b h n r"]
    right: Float[Tensor, "b h m r"]


@dataclass(frozen=True, eq=False)
class Terms:
    """What a position model adds to attention; a commutative monoid under ``+`` whose zero is ``Terms()``.

    Attributes:
        maps: functions of (q, k), before anything else; they must commute.
        factors: pair scalars of low rank.
        bias: pair scalars, (R, h or 1) per lookup, or dense (b, h, n, m).
        gate: pair scalars that multiply the score, in the forms of ``bias``.
        mask: bool (b or 1, h or 1, n, m); False means that the pair does not attend. All must allow a pair.
        key: pair vectors (R, h or 1, d) met by the query.
        query: pair vectors met by the key.
        product: pair vectors that weigh each channel of q.k, added to it.
        value: pair vectors added to the value.
        act: function of the scaled score, before gate and bias; at most one.
        scale: factor of 1/sqrt(d); scales multiply.
    """

    maps: tuple[Map, ...] = ()
    factors: tuple[Factor, ...] = ()
    bias: tuple[Lookup | Float[Tensor, "#b #h #n #m"], ...] = ()
    gate: tuple[Lookup | Float[Tensor, "#b #h #n #m"], ...] = ()
    mask: tuple[Bool[Tensor, "#b #h #n #m"], ...] = ()
    key: tuple[Lookup, ...] = ()
    query: tuple[Lookup, ...] = ()
    product: tuple[Lookup, ...] = ()
    value: tuple[Lookup, ...] = ()
    act: Callable[[Tensor], Tensor] | None = None
    scale: float = 1.0

    def __add__(self, other: Terms) -> Terms:
        if self.act is not None and other.act is not None:
            raise PositionError("two position models both change how scores are activated; only one of a sum may")
        joined: dict[str, Any] = {
            field.name: getattr(self, field.name) + getattr(other, field.name)
            for field in fields(self)
            if field.name not in ("act", "scale")
        }
        return Terms(**joined, act=self.act or other.act, scale=self.scale * other.scale)

    def used(self) -> frozenset[str]:
        """Names of the fields that differ from the zero."""
        zero = Terms()
        return frozenset(f.name for f in fields(self) if getattr(self, f.name) != getattr(zero, f.name))
