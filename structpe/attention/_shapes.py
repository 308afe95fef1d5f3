"""Whether terms fit queries and keys: said before a kernel runs, as no kernel could say it in the words of terms.

Shapes: b batch, h heads, n queries, m keys, or mixtures of them, c mixtures, d width of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from structpe.errors import StructPEError
from structpe.terms import Factor, Listed, Lookup, Pairs, Projection, Terms

__all__ = ["check_shapes"]


def check_shapes(terms: Terms, b: int, h: int, n: int, m: int, d: int) -> None:
    """See to it that all terms are of these sizes, or of 1 where that says the same of all.

    Raises:
        StructPEError: one is not; or a mask that is none, of other numbers than booleans.
    """
    if torch.compiler.is_compiling():  # a size that may vary shall not be fixed by looking at it
        return
    keys = m if terms.projection is None else terms.projection.keys.shape[-2]
    width = None if terms.maps else d  # maps may change it
    for field in fields(terms):
        given = getattr(terms, field.name)
        for term in given if isinstance(given, tuple) else (given,):
            _check(field.name, term, (b, h, n, m if field.name == "mask" and terms.projection else keys), m, width)


def _check(name: str, term: Any, sizes: tuple[int, int, int, int], m: int, d: int | None) -> None:
    b, h, n, keys = sizes
    vectors = name in ("key", "query", "product", "value")
    inner = (d if name != "value" else None,) if vectors else ()
    if isinstance(term, Tensor):
        if name == "mask" and term.dtype != torch.bool:
            raise StructPEError(f"a mask is of booleans, this one is of {term.dtype}; give mask > 0, say")
        _fits(name, term.shape, sizes)
    elif isinstance(term, Lookup):
        _fits(f"the index of a {name}", term.index.shape, (b, n, keys))
        _fits(f"the table of a {name}", term.table.shape[1:], (h, *inner))
    elif isinstance(term, Listed):
        _fits(f"the index of a {name}", term.index.shape, (len(term.pairs.batch),), exact=True)
        _fits(f"the table of a {name}", term.table.shape[1:], (h, *inner))
    elif isinstance(term, Pairs):
        for part in (term.query, term.key):
            _fits(name, part.shape, (len(term.batch),), exact=True)
    elif isinstance(term, Factor):
        _fits("the left of a factor", term.left.shape, (b, h, n, term.left.shape[-1]))
        _fits("the right of a factor", term.right.shape, (b, h, keys, term.left.shape[-1]))
    elif isinstance(term, Projection):
        for part in (term.keys, term.values):
            _fits(name, part.shape, (b, h, keys, m))


def _fits(what: str, shape: Sequence[int], sizes: Sequence[int | None], exact: bool = False) -> None:
    alike = len(shape) == len(sizes) and all(
        wanted is None or had == wanted or (had == 1 and not exact) for had, wanted in zip(shape, sizes, strict=True)
    )
    if not alike:
        wanted = ", ".join("any" if size is None else str(size) if exact else f"{size} or 1" for size in sizes)
        raise StructPEError(f"{what} has shape {tuple(shape)}; for these queries and keys it must be ({wanted})")
