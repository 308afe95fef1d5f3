"""Random terms of any combination of fields, for tests of kernels and of terms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import TypeAlias

import torch
from torch import Tensor

from structpe.attention import KERNELS
from structpe.terms import Factor, Lookup, Pairs, Projection, SparsePairs, Terms, Toeplitz

__all__ = [
    "ALONE",
    "FIELDS",
    "HERE",
    "PADDING_ONLY",
    "B",
    "D",
    "H",
    "M",
    "N",
    "Sizes",
    "drawn",
    "everything",
    "settled",
]
__all__ += ["tables_of"]

B, H, N, M, D = 2, 3, 5, 5, 4
MIXTURES = 3
FIELDS = sorted(f.name for f in fields(Terms))
ALONE = {"act", "feature_map", "projection"}
"""Fields that only one summand may have."""

HERE = sorted(name for name, kernel in KERNELS.items() if not kernel.absent("cpu"))
"""Kernels that run on a CPU."""

PADDING_ONLY = {"linear"}
"""Kernels whose masks may not depend on the query."""

Scalars: TypeAlias = Lookup | SparsePairs | Tensor


@dataclass(frozen=True)
class Sizes:
    """Batch, heads, queries, keys, width of a head."""

    b: int = B
    h: int = H
    n: int = N
    m: int = M
    d: int = D


def settled(some: Collection[str]) -> set[str]:
    """These fields without those that cannot be said beside a feature map or a projection."""
    some = set(some)
    if "feature_map" in some:
        some &= {"maps", "mask", "pairs", "causal", "projection", "value", "feature_map"}
    return some - {"pairs", "causal"} if "projection" in some else some


def everything(kernel: str) -> list[set[str]]:
    """The largest combinations that a kernel computes."""
    chosen = KERNELS[kernel]
    without = [set(), {"feature_map"}, {"projection"}, {"feature_map", "projection"}]
    found = [settled(chosen.supports - each) for each in without]
    return [some for some, _ in itertools.groupby(sorted(found, key=sorted)) if chosen.needs <= some]


def drawn(
    some: Collection[str],
    seed: int,
    batch: int | None = None,
    sizes: Sizes = Sizes(),
    grad: bool = False,
    beside: Collection[str] = (),
    padding_only: bool = False,
) -> Terms:
    """Terms with exactly these fields, float64; ``batch`` 1 means that all structures of a batch share them.

    Whether a quantity of pairs is a lookup, listed or a tensor, whether it has a table per head, and which of its parts
    the structures share, is drawn too; so is the sign of the scale, or none, and which biases are -inf. With ``grad``
    all of their numbers ask for gradients. ``beside`` are the fields of the terms that they will be added to. With
    ``padding_only`` masks do not depend on the query.
    """
    mixed = "projection" in {*some, *beside}
    draw = _Draw(seed, sizes, sizes.b if batch is None else batch, grad, mixed, padding_only or mixed)
    return Terms(**{name: getattr(draw, name)() for name in sorted(some)})


def tables_of(terms: Terms) -> list[Tensor]:
    """Every tensor of numbers in the terms, in a fixed order."""
    found: list[Tensor] = []
    for name in FIELDS:
        value = getattr(terms, name)
        for x in value if isinstance(value, tuple) else (value,):
            if isinstance(x, Lookup | SparsePairs):
                found.append(x.table)
            elif isinstance(x, Factor):
                found += [x.left, x.right]
            elif isinstance(x, Projection):
                found += [x.keys, x.values]
            elif isinstance(x, Tensor) and x.is_floating_point():
                found.append(x)
    return found


class _Draw:
    def __init__(self, seed: int, sizes: Sizes, batch: int, grad: bool, mixed: bool, padding_only: bool) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.all, self.batch, self.grad, self.padding_only = sizes, batch, grad, padding_only
        self.h, self.n, self.keys, self.d = sizes.h, sizes.n, sizes.m, sizes.d
        self.m = MIXTURES if mixed else sizes.m  # what queries meet
        self.shared = self.listing()

    def numbers(self, *shape: int, unseen: int = 0) -> Tensor:
        """Of each that many one in ``unseen`` is -inf."""
        made = torch.randn(*shape, generator=self.generator, dtype=torch.float64)
        if unseen:
            made[self.below(unseen, *shape) == 0] = -math.inf
        return made.requires_grad_(self.grad)

    def below(self, most: int, *shape: int) -> Tensor:
        return torch.randint(most, shape, generator=self.generator)

    def one_of(self, *several: int) -> int:
        return several[int(self.below(len(several), 1))]

    def lookup(self, *width: int, unseen: int = 0) -> Lookup:
        """Structures share its rows, its index, both or neither."""
        rows, index = (self.one_of(1, self.batch) for _ in range(2))
        table = self.numbers(7, self.one_of(1, self.h), *width, unseen=unseen)
        return Lookup(table, self.below(7, rows, 4), self.index(index))

    def index(self, structures: int) -> Tensor | Toeplitz:
        """In any integer type; written out or by diagonals."""
        dtype = (torch.uint8, torch.int16, torch.int32, torch.int64)[self.one_of(0, 1, 2, 3)]
        if self.n and self.m and self.one_of(0, 1):
            return Toeplitz(self.below(4, structures, self.n + self.m - 1).to(dtype), self.n, self.m)
        return self.below(4, structures, self.n, self.m).to(dtype)

    def listing(self) -> Pairs:
        chosen = self.below(3, self.all.b, self.n, self.m) > 0
        chosen[:, 1:2] = False  # a query that may attend nowhere
        batch, query, key = chosen.nonzero()[torch.randperm(int(chosen.sum()), generator=self.generator)].T
        return Pairs(batch, query, key)

    def listed(self, *width: int, unseen: int = 0) -> SparsePairs:
        """Of the pairs that attend, if any are listed, or of others."""
        pairs = self.shared if self.one_of(0, 1) else self.listing()
        table = self.numbers(7, self.one_of(1, self.h), *width, unseen=unseen)
        return SparsePairs(table, self.below(7, len(pairs.key)), pairs)

    def scalars(self, unseen: int = 0) -> tuple[Scalars, ...]:
        shape = (self.one_of(1, self.batch), self.one_of(1, self.h), self.one_of(1, self.n), self.one_of(1, self.m))
        dense = self.numbers(*shape, unseen=unseen)
        forms = (dense, self.lookup(unseen=unseen), self.listed(unseen=unseen))
        return tuple(form for form in forms if self.one_of(0, 1)) or (forms[self.one_of(0, 1, 2)],)

    def maps(self) -> tuple[object, ...]:
        a, b = self.numbers(self.d), self.numbers(self.d)
        return (lambda q, k: (q * a, k * b), lambda q, k: (q + q * b, k))

    def factors(self) -> tuple[Factor, ...]:
        left, right = (
            self.numbers(self.one_of(1, self.batch), self.one_of(1, self.h), self.one_of(1, of_all), 2)
            for of_all in (self.n, self.m)
        )
        return (Factor(left, right),)

    def bias(self) -> tuple[Scalars, ...]:
        return self.scalars(unseen=self.one_of(0, 0, 2, 5))

    gate = scalars

    def mask(self) -> tuple[Tensor, ...]:
        if self.padding_only:
            of_heads = self.below(5, 1, self.h, 1, self.keys) > 0
            of_heads[:, 0] = False  # a head that may attend nowhere
            return (self.below(4, self.batch, 1, 1, self.keys) > 0, of_heads)
        allowed = self.below(4, self.batch, 1, self.n, self.keys) > 0
        allowed[:, :, 1:2] = False  # a query that may attend nowhere
        return (allowed, self.below(5, 1, self.h, 1, self.keys) > 0)

    def vectors(self) -> tuple[Lookup | SparsePairs, ...]:
        forms = (self.lookup(self.d), self.lookup(self.d), self.listed(self.d))
        return tuple(form for form in forms if self.one_of(0, 1)) or (forms[self.one_of(0, 2)],)

    key = query = product = value = vectors

    def act(self) -> object:
        return torch.tanh

    def scale(self) -> float:
        return self.one_of(-1, 0, 1, 1) * (0.5 + float(torch.rand(1, generator=self.generator)))

    def pairs(self) -> tuple[Pairs, ...]:
        return (self.shared, self.listing())[: self.one_of(1, 2)]

    def causal(self) -> bool:
        return True

    def feature_map(self) -> object:
        weight = self.numbers(self.d, 6)
        return lambda x: torch.exp(torch.tanh(x @ weight))

    def projection(self) -> Projection:
        shapes = [(self.one_of(1, self.batch), self.one_of(1, self.h), MIXTURES, self.keys) for _ in range(2)]
        return Projection(*(self.numbers(*shape) for shape in shapes))
