"""The registry of attention kernels. A kernel computes the equation of :mod:`structpe.terms`.

``dense`` is the reference: slow, simple, and it supports every field. The other kernels declare the fields they
support, the calls they suit and the cost of a call. Tests compare their values and gradients with those of ``dense``.

Shapes: b batch, h heads, n queries, m keys, d width of a head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from structpe.attention._layout import Layout
from structpe.errors import StructPEError
from structpe.registry import Registry
from structpe.terms import Terms

__all__ = ["KERNELS", "Call", "Choice", "Kernel", "Ragged", "cheapest", "choose", "kernel", "watching"]

Compute: TypeAlias = Callable[[Tensor, Tensor, Tensor, Terms, float], Tensor]
Ragged: TypeAlias = Callable[[Tensor, Layout, "list[Terms]", float], Tensor]


@dataclass(frozen=True)
class Call:
    """What is known about an attention call before it is computed.

    Attributes:
        used: fields of :class:`Terms` that are used.
        device: type of the device, such as ``cpu``.
        dtype: of the queries.
        shape: b, h, n, m and d; (1, 1, 64, 64, 64) while tracing, when sizes are symbols.
        pairs: number of listed pairs; 0 if no pairs are listed.
        ragged: whether it is one of several buckets, which share the cost of starting a kernel.
        gradients: whether gradients are needed.
        traced: whether it is traced or compiled.
        dropout: probability of dropping an attention weight.
    """

    used: frozenset[str]
    device: str
    dtype: torch.dtype
    shape: tuple[int, int, int, int, int]
    pairs: int = 0
    ragged: bool = False
    gradients: bool = False
    traced: bool = False
    dropout: float = 0.0

    @classmethod
    def of(
        cls, terms: Terms, like: Tensor, shape: tuple[int, int, int, int, int], dropout: float, ragged: bool
    ) -> Call:
        """The call with these terms and queries."""
        traced = torch.compiler.is_compiling()
        return cls(
            used=terms.used(),
            device=like.device.type,
            dtype=like.dtype,
            shape=(1, 1, 64, 64, 64) if traced else shape,
            pairs=64 if traced and terms.pairs else sum(len(pairs.query) for pairs in terms.pairs),
            ragged=ragged,
            gradients=torch.is_grad_enabled() and like.requires_grad,
            traced=traced,
            dropout=dropout,
        )

    @property
    def cells(self) -> int:
        """Number of scores: b h n m."""
        b, h, n, m, _ = self.shape
        return b * h * n * m


def _any(call: Call) -> str | None:
    """The default of ``limits``: every call suits."""
    del call
    return None


def _never(call: Call) -> bool:
    """The default of ``at_once``: buckets are computed one by one."""
    del call
    return False


@dataclass(frozen=True)
class Kernel:
    """A way of computing attention.

    Attributes:
        name: its name in the registry.
        supports: the fields of :class:`Terms` that it computes.
        compute: (q, k, v, terms, dropout) -> o.
        cost: estimated nanoseconds of a call, forward and backward, to compare kernels.
        needs: fields that must be used.
        limits: why it does not suit a call whose terms it supports; None if it does.
        ragged: (qkv (N, 3, h, d), layout, terms of each bucket, dropout) -> (N, h, d), for several buckets in one call;
            None if the kernel computes buckets one by one.
        at_once: whether ``ragged`` can compute a call.
    """

    name: str
    supports: frozenset[str]
    compute: Compute
    cost: Callable[[Call], float]
    needs: frozenset[str] = frozenset()
    limits: Callable[[Call], str | None] = _any
    ragged: Ragged | None = None
    at_once: Callable[[Call], bool] = _never

    def unable(self, used: frozenset[str]) -> str | None:
        """Why it cannot compute terms that use these fields; None if it can."""
        if lacking := used - self.supports:
            return f"does not compute {', '.join(sorted(lacking))}"
        if missing := self.needs - used:
            return f"computes attention with {', '.join(sorted(missing))} only, which these terms lack"
        return None

    def can(self, used: frozenset[str]) -> bool:
        """Whether it can compute terms that use these fields."""
        return self.unable(used) is None

    def unsuited(self, call: Call) -> str | None:
        """Why ``auto`` does not consider it for a call; None if it does."""
        return self.unable(call.used) or self.limits(call)

    def suits(self, call: Call) -> bool:
        """Whether ``auto`` considers it for a call."""
        return self.unsuited(call) is None


KERNELS: Registry[Kernel] = Registry("structpe.attention", "attention kernel", StructPEError)
"""All kernels, by name."""


def kernel(
    name: str,
    supports: str,
    cost: Callable[[Call], float],
    needs: str = "",
    limits: Callable[[Call], str | None] = _any,
    ragged: Ragged | None = None,
    at_once: Callable[[Call], bool] = _never,
) -> Callable[[Compute], Compute]:
    """Register a function as a kernel; see :class:`Kernel`. Fields of ``Terms`` are separated by spaces."""

    def enter(compute: Compute) -> Compute:
        fields = frozenset(supports.split()), compute, cost, frozenset(needs.split())
        KERNELS.add(name, Kernel(name, *fields, limits, ragged, at_once))
        return compute

    return enter


@dataclass(frozen=True)
class Choice:
    """A call, the kernel chosen for it, and for each kernel its cost or the reason why it does not suit."""

    call: Call
    kernel: str
    others: dict[str, float | str]


_WATCHERS: list[list[Choice]] = []


@contextmanager
def watching() -> Iterator[list[Choice]]:
    """Record which kernel computes each attention call in the block. Compiled calls are not recorded."""
    noted: list[Choice] = []
    _WATCHERS.append(noted)
    try:
        yield noted
    finally:
        _WATCHERS.remove(noted)


def cheapest(call: Call) -> Kernel:
    """The cheapest kernel that suits the call."""
    # Not min(..., key=...), which torch.compile cannot trace.
    return sorted([each for each in KERNELS.values() if each.suits(call)], key=lambda each: each.cost(call))[0]


def choose(name: str, call: Call) -> Kernel:
    """The kernel of this name; with ``auto`` the cheapest that suits."""
    chosen = cheapest(call) if name == "auto" else KERNELS[name]
    if _WATCHERS and not call.traced:
        others: dict[str, float | str] = {
            each.name: each.unsuited(call) or each.cost(call) for each in KERNELS.values()
        }
        for watcher in _WATCHERS:
            watcher.append(Choice(call, chosen.name, others))
    return chosen
