"""Check the shapes of terms before a kernel runs, so that errors name the terms.

Shapes: b batch, h heads, n queries, m keys, or mixtures of them, c mixtures, d width of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from structpe.errors import StructPEError
from structpe.terms import Factor, Lookup, Pairs, Projection, SparsePairs, Terms

__all__ = ["check_shapes"]


def check_shapes(terms: Terms, b: int, h: int, n: int, m: int, d: int) -> None:
    """Check that all terms have these sizes, or 1 where they broadcast.

    Raises:
        StructPEError: a shape is wrong, a mask is not boolean, or a list has a pair outside the sizes.
    """
    if torch.compiler.is_compiling():  # a check would fix a size that may vary
        return
    keys = m if terms.projection is None else terms.projection.keys.shape[-2]
    for field in fields(terms):
        given = getattr(terms, field.name)
        width = None if terms.maps and field.name != "value" else d  # maps may change the width of queries and keys
        for term in given if isinstance(given, tuple) else (given,):
            _check(field.name, term, (b, h, n, m if field.name == "mask" and terms.projection else keys), m, width)


def _check(name: str, term: Any, sizes: tuple[int, int, int, int], m: int, d: int | None) -> None:
    b, h, n, keys = sizes
    if isinstance(term, Tensor):
        if name == "mask" and term.dtype != torch.bool:
            raise StructPEError(
                f"a mask must be bool, but this one is {term.dtype}; convert it, for example with mask > 0"
            )
        _fits(name, term.shape, sizes)
    elif isinstance(term, Lookup):
        _fits(f"the rows of a {name}", term.rows.shape, (b,), (None,))
        _fits(f"the index of a {name}", term.index.shape, (b,), (n, keys))
        _check_table(name, term.table, h, d)
    elif isinstance(term, SparsePairs):
        _fits(f"the index of a {name}", term.index.shape, (), (len(term.pairs.batch),))
        _check_table(name, term.table, h, d)
        _check_pairs(f"the pairs of a {name}", term.pairs, b, n, keys)
    elif isinstance(term, Pairs):
        _check_pairs(name, term, b, n, keys)
    elif isinstance(term, Factor):
        rank = term.left.shape[-1]
        _fits("the left of a factor", term.left.shape, (b, h, n), (rank,))
        _fits("the right of a factor", term.right.shape, (b, h, keys), (rank,))
    elif isinstance(term, Projection):
        for part in (term.keys, term.values):
            _fits(name, part.shape, (b, h), (keys, m))


def _check_table(name: str, table: Tensor, h: int, d: int | None) -> None:
    vectors = name in ("key", "query", "product", "value")
    _fits(f"the table of a {name}", table.shape[1:], (h,), (d,) if vectors else ())


def _check_pairs(what: str, pairs: Pairs, *sizes: int) -> None:
    parts = (pairs.batch, pairs.query, pairs.key)
    for part in parts:
        _fits(what, part.shape, (), (len(pairs.batch),))
    if not len(pairs.batch) or pairs.batch.device.type != "cpu":  # would synchronise with a GPU
        return
    for where, part, size in zip(("batch", "query", "key"), parts, sizes, strict=True):
        low, high = (int(x) for x in part.aminmax())
        if low < 0 or high >= size:
            raise StructPEError(f"{what} name a {where} from {low} to {high}; it must be from 0 to {size - 1}")


def _fits(what: str, shape: Sequence[int], shared: Sequence[int], own: Sequence[int | None] = ()) -> None:
    """Raise an error unless the shape matches; sizes in ``shared`` may be 1, and None means any size."""
    first, rest = shape[: len(shared)], shape[len(shared) :]
    alike = (
        len(shape) == len(shared) + len(own)
        and all(had in (size, 1) for had, size in zip(first, shared, strict=True))
        and all(size in (had, None) for had, size in zip(rest, own, strict=True))
    )
    if not alike:
        named = ", ".join([f"{size} or 1" for size in shared] + ["any" if size is None else str(size) for size in own])
        raise StructPEError(f"{what} has shape {tuple(shape)}; for these queries and keys it must be ({named})")
