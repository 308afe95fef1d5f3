"""From units to tokens: terms of the units of structures become terms of the tokens of a text.

Shapes: b batch, p structures (b, one for all, or one for each group of beams), h heads, n queries, m keys, u units of
the largest structure, r rows that a structure uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from structpe.errors import PositionError
from structpe.terms import Factor, Lookup, Map, SparsePairs, Terms, Toeplitz

__all__ = ["NONE", "Places"]

NONE = -1
"""The unit of a token that has none: special tokens, prompts, padding, generated text."""


class Places:
    """Which unit each query and each key is; a pair without a unit on both sides is left as it is.

    Tokens of one unit have its place, and each its own vector.

    Args:
        queries: (b, n) unit of each query, -1 for none.
        keys: (b, m) unit of each key.
        units: u.
        structures: p, of which b is a multiple.
        keeps: whether what is made of an index is kept for the next layer. Not under gradient checkpointing, which
            must make everything again.
        repeats: the most tokens that are one unit.
    """

    def __init__(
        self,
        queries: Int[Tensor, "b n"],
        keys: Int[Tensor, "b m"],
        units: int,
        structures: int,
        keeps: bool = True,
        repeats: int = 1,
    ) -> None:
        self.units, self.structures, self.keeps, self.repeats = units, structures, keeps, repeats
        self.turns = tuple(_turns(each) if repeats > 1 else None for each in (queries, keys))
        self.there = queries != NONE, keys != NONE
        self.queries, self.keys = queries.clamp(min=0), keys.clamp(min=0)
        self.group = len(queries) // structures
        self.structure = torch.arange(len(queries), device=queries.device) // self.group
        self._made: list[tuple[Any, Any]] = []

    def terms(self, terms: Terms) -> Terms:
        """The terms of the tokens.

        Raises:
            PositionError: a term is not of single queries or pairs.
        """
        if lost := terms.used() & {"feature_map", "projection"}:
            raise PositionError(
                f"a position model that changes attention as a whole ({', '.join(sorted(lost))}) cannot enter another "
                f"model; choose one with biases, vectors of pairs, masks or rotations"
            )
        masks = [self._dense(mask, True) for mask in terms.mask]
        for listed in terms.pairs:
            masks.append(self._dense(listed.dense(self.structures, self.units, self.units), True))
        return Terms(
            maps=tuple(self._map(each) for each in terms.maps),
            factors=tuple(self._factor(each) for each in terms.factors),
            bias=tuple(self._pairs(each, 0.0) for each in terms.bias),
            gate=tuple(self._pairs(each, 1.0) for each in terms.gate),
            mask=tuple(masks),
            key=tuple(self._lookup(each, 0.0) for each in terms.key),
            query=tuple(self._lookup(each, 0.0) for each in terms.query),
            product=tuple(self._lookup(each, 0.0) for each in terms.product),
            value=tuple(self._lookup(each, 0.0) for each in terms.value),
            act=terms.act,
            scale=terms.scale,
            causal=terms.causal,
        )

    def changed(self, change: Callable[..., tuple[Tensor, ...]], *given: Tensor) -> tuple[Tensor, ...]:
        """Tokens as a function of units changes them: (b, ..., n, d) queries, and (b, ..., m, d) keys if given.

        The first tokens of all units are changed together, then the second ones and so on: the function changes the
        vector of a unit by the unit's place, whatever the others are. Tokens without a unit are left as they are.
        """
        made = given
        for turn in range(self.repeats):
            units = self.in_groups(change, *(self._to_units(x, side, turn) for side, x in enumerate(given)))
            made = tuple(
                self._to_tokens(x, old, side, turn) for side, (x, old) in enumerate(zip(units, made, strict=True))
            )
        return made

    def _to_units(self, x: Tensor, side: int, turn: int) -> Tensor:
        """(b, ..., u, d) the tokens (b, ..., n, d) as units, 0 where a unit has no token; side 0 queries, 1 keys."""
        place = torch.where(self._of_turn(side, turn), (self.queries, self.keys)[side], self.units)
        spread = place.view(len(place), *[1] * (x.ndim - 3), -1, 1).expand(x.shape)
        empty = x.new_zeros(*x.shape[:-2], self.units + 1, x.shape[-1])
        return empty.scatter(-2, spread, x)[..., : self.units, :]

    def _to_tokens(self, x: Tensor, otherwise: Tensor, side: int, turn: int) -> Tensor:
        """The units (b, ..., u, d) as tokens (b, ..., n, d); tokens that are none are as in ``otherwise``."""
        if x.shape[-1] != otherwise.shape[-1]:
            raise PositionError(
                f"the position model makes heads of {otherwise.shape[-1]} channels {x.shape[-1]} wide, which tokens "
                f"without a unit are not; choose one that keeps the width"
            )
        form = (len(otherwise), *[1] * (x.ndim - 3), -1, 1)
        place = (self.queries, self.keys)[side].view(form).expand(*x.shape[:-2], -1, x.shape[-1])
        return torch.where(self._of_turn(side, turn).view(form), x.gather(-2, place).to(otherwise.dtype), otherwise)

    def _of_turn(self, side: int, turn: int) -> Tensor:
        """(b, n) which tokens are a unit, and the so manieth of its tokens."""
        turns = self.turns[side]
        return self.there[side] if turns is None else self.there[side] & (turns == turn)

    def in_groups(self, change: Callable[..., Any], *given: Tensor) -> tuple[Tensor, ...]:
        """Apply a function of tensors with p rows to tensors with b rows: once for each beam of a group."""
        if self.group == 1 or self.structures == 1:
            return tuple(change(*given))
        beams = [[x.view(-1, self.group, *x.shape[1:])[:, i] for x in given] for i in range(self.group)]
        made = zip(*(change(*each) for each in beams), strict=True)
        return tuple(torch.stack(parts, dim=1).flatten(0, 1) for parts in made)

    def _pairs(self, x: Lookup | SparsePairs | Tensor, nothing: float) -> Lookup | Tensor:
        return self._dense(x, nothing) if isinstance(x, Tensor) else self._lookup(x, nothing)

    def _lookup(self, x: Lookup | SparsePairs, nothing: float) -> Lookup:
        if isinstance(x, SparsePairs):
            return self._lookup(_of_list(x, self.structures, self.units, nothing), nothing)
        return self._kept(x, lambda: self._placed(x, nothing)) if x.shared else self._placed(x, nothing)

    def _placed(self, x: Lookup, nothing: float) -> Lookup:
        """The table with one more row, for pairs without units."""
        last = x.table.new_full((1, *x.table.shape[1:]), nothing)
        rows = self._kept(x.rows, lambda: self._rows(x))
        index = self._kept(x.index, lambda: self._index(x))
        return Lookup(torch.cat([x.table, last]), rows, index, shared=x.shared and self.keeps)

    def _rows(self, x: Lookup) -> Tensor:
        none = x.rows.new_full((len(x.rows), 1), len(x.table))
        rows = torch.cat([x.rows, none], dim=1)
        return rows if len(rows) == 1 else rows[self.structure]

    def _index(self, x: Lookup) -> Tensor:
        none, q, k = x.rows.shape[1], self.queries[:, :, None], self.keys[:, None, :]
        if isinstance(x.index, Toeplitz):
            given, place = x.index.diagonals, [k - q + x.index.n - 1]
        else:
            given, place = x.index, [q, k]
        if none > torch.iinfo(given.dtype).max:
            given = given.to(torch.int16 if none < 1 << 15 else torch.int32)
        index = given[(self._structure(given), *place)]
        return index.masked_fill(~self._both(), none)

    def _dense(self, x: Tensor, nothing: float | bool) -> Tensor:
        """(b, h or 1, n, m) from (p or 1, h or 1, u or 1, u or 1)."""
        whole = x.expand(-1, -1, self.units, self.units).movedim(1, 3)
        made = whole[self._structure(x), self.queries[:, :, None], self.keys[:, None, :]].movedim(3, 1)
        return made.masked_fill(~self._both()[:, None], nothing)

    def _factor(self, x: Factor) -> Factor:
        def of(side: Tensor, place: Tensor, there: Tensor) -> Tensor:
            whole = side.expand(-1, -1, self.units, -1).movedim(1, 2)
            made = whole[self._structure(side)[:, :, 0], place].movedim(2, 1)
            return made * there[:, None, :, None]

        return Factor(of(x.left, self.queries, self.there[0]), of(x.right, self.keys, self.there[1]))

    def _map(self, change: Map) -> Map:
        """Turns queries and keys where they have a unit; others are left as they are."""

        def turned(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
            of_q, of_k = self.changed(change, q, k)
            return of_q, of_k

        return turned

    def _structure(self, given: Tensor) -> Tensor:
        """(b, 1, 1) which structure each row of the batch is, in something that all structures may share."""
        of_each = torch.zeros_like(self.structure) if len(given) == 1 else self.structure
        return of_each[:, None, None]

    def _both(self) -> Tensor:
        return self.there[0][:, :, None] & self.there[1][:, None, :]

    def _kept(self, of: Any, make: Callable[[], Any]) -> Any:
        """What ``make`` returns, made once for each object: layers share an index, and some a whole lookup."""
        if not self.keeps or torch.compiler.is_compiling():
            return make()
        for known, made in self._made:
            if known is of:
                return made
        made = make()
        self._made.append((of, made))
        return made


def _turns(units: Tensor) -> Tensor:
    """(b, n) how many tokens before each are the same unit."""
    return (units[:, :, None] == units[:, None, :]).tril(-1).sum(-1)


def _of_list(x: SparsePairs, structures: int, units: int, nothing: float) -> Lookup:
    """The quantity of listed pairs as one of all pairs; those not listed have a last row."""
    none = len(x.table)
    index = x.index.new_full((structures, units, units), none, dtype=torch.int64)
    index[x.pairs.batch, x.pairs.query, x.pairs.key] = x.index.long()
    table = torch.cat([x.table, x.table.new_zeros(1, *x.table.shape[1:])])
    return Lookup(table, torch.arange(none + 1, device=index.device)[None], index)
