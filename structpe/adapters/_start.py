"""Start from exactly the function of a pretrained model, with numbers that can all be learned."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

import torch
from torch import Tensor

from structpe.errors import PositionError
from structpe.positions import PositionModel, Sum
from structpe.positions.tables import KeyValueTables, PairTable
from structpe.terms import Factor, Lookup, SparsePairs, Terms

__all__ = ["difference", "drawn", "started", "with_same_draws"]

T = TypeVar("T")

_ADDED = ("bias", "key", "query", "product", "value")
"""What is added, so that the difference of two is, too."""


def started(position: PositionModel) -> PositionModel | None:
    """Let a position model start at zero; a copy as it is now if its numbers cannot be zero, to be subtracted.

    Tables whose entries are added become 0. Of every other model, such as one with a network, the first numbers would
    have no gradient if all were 0: its terms are those of the learned numbers less those of the first numbers.

    Raises:
        PositionError: it has no numbers to learn, so that it would never change anything.
    """
    if not any(p.requires_grad for p in position.parameters()):
        raise PositionError(
            f"position model {position.name!r} has no numbers to learn, and would never change anything if it started "
            f"at zero; use start='own'"
        )
    parts = list(position.models) if isinstance(position, Sum) else [position]
    if all(isinstance(each, (PairTable, KeyValueTables)) and _is_zero_at_zero(each) for each in parts):
        with torch.no_grad():
            for p in position.parameters():
                p.zero_()
        return None
    return copy.deepcopy(position).requires_grad_(False)


def drawn(like: Tensor, training: bool) -> list[Tensor]:
    """The states of the generators of random numbers; none where nothing is drawn, or a model is compiled."""
    if not training or torch.compiler.is_compiling():
        return []
    return [torch.get_rng_state(), *([torch.cuda.get_rng_state(like.device)] if like.is_cuda else [])]


def with_same_draws(states: list[Tensor], make: Callable[[], T], like: Tensor) -> T:
    """What ``make`` returns with random numbers from these states on: in training the first numbers meet the same."""
    if not states:
        return make()
    later = drawn(like, True)
    _set(states, like)
    try:
        return make()
    finally:
        _set(later, like)


def _set(states: list[Tensor], like: Tensor) -> None:
    torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state(states[1], like.device)


def _is_zero_at_zero(module: Any) -> bool:
    """Whether its entries are added as they are: a subclass may use them for something else."""
    own = type(module)
    base = KeyValueTables if issubclass(own, KeyValueTables) else PairTable
    only = {name.partition(".")[0] for name, _ in module.named_parameters()} <= {"table", "keys", "values"}
    return only and own.terms is base.terms and (base is KeyValueTables or own.entries is PairTable.entries)


def difference(now: Terms, first: Terms) -> Terms:
    """What the terms add, less what the first ones add: nothing, before the first step of training.

    Raises:
        PositionError: a term is not added.
    """
    if lost := now.used() - {*_ADDED, "gate", "factors"}:
        raise PositionError(
            f"a position model that acts by {', '.join(sorted(lost))} changes a pretrained model from the beginning, "
            f"and cannot start at zero; use start='own'"
        )
    joined: dict[str, Any] = {
        name: tuple(
            each for pair in zip(getattr(now, name), getattr(first, name), strict=True) for each in _less(*pair)
        )
        for name in _ADDED
    }
    negative = tuple(Factor(-each.left, each.right) for each in first.factors)
    gates = tuple(_gate(*pair) for pair in zip(now.gate, first.gate, strict=True))
    return Terms(**joined, factors=(*now.factors, *negative), gate=gates)


def _less(now: Any, first: Any) -> tuple[Any, ...]:
    """Terms whose sum is the difference; one where both are of the same pairs."""
    if isinstance(now, Tensor):
        return (now - first,)
    if _of_same_pairs(now, first):
        return (_with_table(now, now.table - first.table),)
    return now, _with_table(first, -first.table)


def _gate(now: Any, first: Any) -> Any:
    """1 + now - first: as a factor, nothing at first."""
    if isinstance(now, Tensor):
        return 1 + now - first
    if not isinstance(now, Lookup) or not _of_same_pairs(now, first):
        raise PositionError("gates of listed pairs cannot start at zero; use start='own'")
    return _with_table(now, 1 + now.table - first.table)


def _of_same_pairs(now: Lookup | SparsePairs, first: Lookup | SparsePairs) -> bool:
    if isinstance(now, Lookup) and isinstance(first, Lookup):
        return now.index is first.index and now.rows is first.rows and now.table.shape == first.table.shape
    return isinstance(now, SparsePairs) and isinstance(first, SparsePairs) and now.index is first.index


def _with_table(x: Any, table: Tensor) -> Any:
    given = {each.name: getattr(x, each.name) for each in fields(x) if each.init}
    return type(x)(**{**given, "table": table})
