"""What the steps of one decoding share: made once, not in each step."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from structpe.nn.packed import Linear, linear_map
from structpe.nn.stack import Stack
from structpe.nn.step_layer import StepLayer
from structpe.positions import PositionModel, Positions, Site
from structpe.quantities import Lookup, Toeplitz
from structpe.terms import Terms

__all__ = ["Steps"]


class Steps:
    """Rearranged weights and the terms of all positions, for steps of one unit without gradients.

    They are those of the model at the first step. Like the keys and values in the caches, they do not follow later
    changes of its parameters.
    """

    def __init__(self) -> None:
        self._stack: Stack | None = None
        self._output: tuple[Tensor, Linear] | None = None
        self._terms: tuple[Positions, Sequence[_Rows] | None] | None = None

    def stack(self, stack: Stack) -> Stack:
        """The stack, with a :class:`StepLayer` for each layer that has only known parts."""
        if self._stack is None:
            each = [StepLayer(x) if StepLayer.plain(x, stack.position) else x for x in stack.layers]
            self._stack = copy.copy(stack)
            self._stack.__dict__["_modules"] = {**stack._modules, "layers": nn.ModuleList(each)}
        return self._stack

    def logits(self, hidden: Float[Tensor, "b n d"], weight: Float[Tensor, "v d"]) -> Float[Tensor, "b n v"]:
        """The products of hidden vectors and the vectors of a vocabulary."""
        if torch.is_grad_enabled() or hidden.shape[1] > 1:
            return functional.linear(hidden, weight)
        if self._output is None or self._output[0] is not weight:
            self._output = weight, linear_map(weight)
        return self._output[1](hidden)

    def terms(self, position: PositionModel, positions: Positions, place: int) -> list[Terms] | None:
        """The terms of each layer for the query at a place, taken from those of all positions.

        Args:
            position: the position model.
            positions: of the longest text that they are made for.
            place: of the query, whose keys are at 0..place.

        Returns:
            None if the model does more than add quantities of pairs from tables; ask it in each step then.
        """
        if self._terms is None or self._terms[0] is not positions:
            self._terms = positions, _of_all(position, positions)
        rows = self._terms[1]
        if rows is None:
            return None
        made = {row: row.at(place) for row in dict.fromkeys(rows)}
        return [made[row] for row in rows]


_OF_PAIRS = ("bias", "gate", "key", "query", "product", "value")


class _Rows:
    """The terms of one layer for all queries, of which one is asked for at a time.

    Args:
        terms: with quantities of pairs from tables only.
    """

    def __init__(self, terms: Terms) -> None:
        self.biases = [(each.local()[0].T.contiguous(), each.index) for each in _lookups(terms, "bias")]
        self.pairs = {name: _lookups(terms, name) for name in _OF_PAIRS[1:] if getattr(terms, name)}
        self.rest = Terms(act=terms.act, scale=terms.scale)

    def same(self, other: _Rows) -> bool:
        """Whether all rows are the same: biases from equal tables, and nothing else."""
        if self.pairs or other.pairs or self.rest.used() | other.rest.used():
            return False
        both = list(zip(self.biases, other.biases, strict=False))
        return len(self.biases) == len(other.biases) and all(a[1] is b[1] and torch.equal(a[0], b[0]) for a, b in both)

    def at(self, place: int) -> Terms:
        """The terms of the query at a place, whose keys are at 0..place."""
        row = slice(place, place + 1)
        given: dict[str, Any] = {name: tuple(x.queries(row) for x in each) for name, each in self.pairs.items()}
        biases = [table.index_select(1, _row(index, place))[None, :, None] for table, index in self.biases]
        return replace(self.rest, bias=(sum(biases[1:], biases[0]),) if biases else (), **given)


def _row(index: Tensor | Toeplitz, place: int) -> Tensor:
    """(place + 1,) the index of the query at a place, over the keys up to it."""
    if isinstance(index, Toeplitz):
        return index.diagonals[0, index.n - 1 - place : index.n].long()
    return index[0, place, : place + 1].long()


def _of_all(position: PositionModel, positions: Positions) -> list[_Rows] | None:
    """The terms of each layer for all queries, if their rows are the terms of single queries."""
    if not position.sites <= {"terms"} or position.own_attention:
        return None
    prepared = position.prepare(positions)
    found = [position.terms(prepared, Site(layer)) for layer in range(position.dims.layers)]
    if not all(map(_only_tables, found)):
        return None
    distinct: list[_Rows] = []
    for rows in map(_Rows, found):
        distinct.append(next((known for known in distinct if known.same(rows)), rows))
    return distinct


def _only_tables(terms: Terms) -> bool:
    """Whether the terms have quantities of pairs from tables of one text only."""
    pairs = [x for name in _OF_PAIRS for x in getattr(terms, name)]
    alone = all(isinstance(x, Lookup) and len(x.rows) == x.index.shape[0] == 1 for x in pairs)
    return alone and terms.used() <= {*_OF_PAIRS, "act", "scale"}


def _lookups(terms: Terms, name: str) -> tuple[Lookup, ...]:
    found: tuple[Lookup, ...] = getattr(terms, name)
    return found
