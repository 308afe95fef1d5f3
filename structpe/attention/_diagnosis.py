"""Find out whether terms made a kernel fail. This runs after the failure, so it costs nothing otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from torch import Tensor

from structpe.terms import Lookup, SparsePairs, Terms

__all__ = ["blamed"]


def blamed(terms: Terms, q: Tensor, k: Tensor) -> str:
    """What is wrong with the terms; empty if nothing is."""
    return next(_problems(terms, q, k), "")


def _problems(terms: Terms, q: Tensor, k: Tensor) -> Iterator[str]:
    for field in fields(terms):
        given = getattr(terms, field.name)
        for term in given if isinstance(given, tuple) else ():
            yield from _of_places(field.name, term)
    for each in terms.maps:
        yield from _of_map(each(q, k))


def _of_places(name: str, term: Any) -> Iterator[str]:
    if isinstance(term, Lookup):
        yield from _outside(f"the rows of a {name}", term.rows, len(term.table), "table")
        yield from _outside(f"the index of a {name}", term.places(), term.rows.shape[1], "list of rows")
    elif isinstance(term, SparsePairs):
        yield from _outside(f"the index of a {name}", term.index, len(term.table), "table")


def _outside(what: str, places: Tensor, count: int, of: str) -> Iterator[str]:
    if not places.numel():
        return
    low, high = int(places.min()), int(places.max())
    if low < 0 or high >= count:
        yield f"{what} names place {high if high >= count else low} of a {of} of {count}; give 0 to {count - 1}"


def _of_map(mapped: Any) -> Iterator[str]:
    """Check that a map returns queries and keys of the same width."""
    if not isinstance(mapped, tuple) or len(mapped) != 2 or not all(isinstance(each, Tensor) for each in mapped):
        given = "None" if mapped is None else type(mapped).__name__
        yield f"a map takes (q, k) and must return both, (q', k'); it returns {given}"
    elif mapped[0].shape[-1] != mapped[1].shape[-1]:
        yield (
            f"a map gives queries of width {mapped[0].shape[-1]} and keys of width {mapped[1].shape[-1]}; they must "
            f"be alike"
        )
