"""Random terms of any combination of fields, for tests of kernels and of terms."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields

import torch
from torch import Tensor

from structpe.terms import Factor, Lookup, Terms

__all__ = ["FIELDS", "B", "D", "H", "M", "N", "drawn", "tables_of"]

B, H, N, M, D = 2, 3, 5, 5, 4
FIELDS = sorted(f.name for f in fields(Terms))


def drawn(some: Collection[str], seed: int, batch: int = B, n: int = N, m: int = M, grad: bool = False) -> Terms:
    """Terms with exactly these fields, float64; ``batch`` 1 means that all structures of a batch share them.

    Whether a lookup has a table per head and a bias comes as a lookup or as a tensor is drawn too. With ``grad`` all
    of their numbers ask for gradients.
    """
    draw = _Draw(seed, batch, n, m, grad)
    return Terms(**{name: getattr(draw, name)() for name in sorted(some)})


def tables_of(terms: Terms) -> list[Tensor]:
    """Every tensor of numbers in the terms, in a fixed order."""
    found: list[Tensor] = []
    for name in FIELDS:
        value = getattr(terms, name)
        for x in value if isinstance(value, tuple) else ():
            if isinstance(x, Lookup):
                found.append(x.table)
            elif isinstance(x, Factor):
                found += [x.left, x.right]
            elif isinstance(x, Tensor) and x.is_floating_point():
                found.append(x)
    return found


class _Draw:
    def __init__(self, seed: int, batch: int, n: int, m: int, grad: bool) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.batch, self.n, self.m, self.grad = batch, n, m, grad

    def numbers(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.generator, dtype=torch.float64).requires_grad_(self.grad)

    def below(self, most: int, *shape: int) -> Tensor:
        return torch.randint(most, shape, generator=self.generator)

    def lookup(self, *width: int) -> Lookup:
        heads = (1, H)[int(self.below(2, 1))]
        rows, index = self.below(7, self.batch, 4), self.below(4, self.batch, self.n, self.m)
        return Lookup(self.numbers(7, heads, *width), rows, index)

    def scalars(self) -> tuple[Lookup | Tensor, ...]:
        dense = self.numbers((1, self.batch)[int(self.below(2, 1))], (1, H)[int(self.below(2, 1))], self.n, self.m)
        return ((self.lookup(),), (dense,), (self.lookup(), dense))[int(self.below(3, 1))]

    def maps(self) -> tuple[object, ...]:
        a, b = self.numbers(D), self.numbers(D)
        return (lambda q, k: (q * a, k * b), lambda q, k: (q + q * b, k))

    def factors(self) -> tuple[Factor, ...]:
        return (Factor(self.numbers(self.batch, H, self.n, 2), self.numbers(self.batch, H, self.m, 2)),)

    bias = gate = scalars

    def mask(self) -> tuple[Tensor, ...]:
        allowed = self.below(4, self.batch, 1, self.n, self.m) > 0
        allowed[:, :, 1:2] = False  # a query that may attend nowhere
        return (allowed, self.below(5, 1, H, 1, self.m) > 0)

    def vectors(self) -> tuple[Lookup, ...]:
        return tuple(self.lookup(D) for _ in range(1 + int(self.below(2, 1))))

    key = query = product = value = vectors

    def act(self) -> object:
        return torch.tanh

    def scale(self) -> float:
        return 0.5 + float(torch.rand(1, generator=self.generator))
