"""A kernel computes the one equation; it knows terms and layouts, and nothing else.

``dense`` is the meaning: slow, plain, every field. The others say which fields they support and are held to ``dense``
by the tests, in values and gradients. Each says when it suits a call, and what it costs then.

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
    """What is known of an attention before it is computed.

    Attributes:
        used: fields of :class:`Terms` that are used.
        device: type of the device, such as ``cpu``.
        dtype: of queries.
        shape: b, h, n, m and d. While it is traced, sizes are symbols, and (1, 1, 64, 64, 64) is taken instead.
        pairs: number of listed pairs; 0 where none are listed.
        ragged: whether it is one of several buckets, whose starting costs are shared.
        gradients: whether gradients are needed.
        traced: whether it is traced or compiled.
        dropout: probability with which a weight is dropped.
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
        """The call of these terms on tensors like this one."""
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
        """Scores that are computed: b h n m."""
        b, h, n, m, _ = self.shape
        return b * h * n * m


def _any(call: Call) -> str | None:
    """Every call suits."""
    del call
    return None


def _never(call: Call) -> bool:
    """No call is computed with others at once."""
    del call
    return False


@dataclass(frozen=True)
class Kernel:
    """A way of computing attention.

    Attributes:
        name: its name in the registry.
        supports: the fields of :class:`Terms` that it computes.
        compute: (q, k, v, terms, dropout) -> o.
        cost: nanoseconds that a call takes, forward and backward, roughly: to be compared with those of other kernels.
        needs: those of the fields without which it cannot compute at all.
        limits: why it does not suit a call whose terms it can compute; None where it does.
        ragged: (qkv (N, 3, h, d), layout, terms of each bucket, dropout) -> (N, h, d), for several buckets at once;
            None where buckets are computed one by one.
        at_once: whether ``ragged`` computes a call.
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
        """Why it does not compute terms that use these fields; None where it does."""
        if lacking := used - self.supports:
            return f"does not compute {', '.join(sorted(lacking))}"
        if missing := self.needs - used:
            return f"computes attention with {', '.join(sorted(missing))} only, which these terms lack"
        return None

    def can(self, used: frozenset[str]) -> bool:
        """Whether it computes terms that use these fields."""
        return self.unable(used) is None

    def unsuited(self, call: Call) -> str | None:
        """Why ``auto`` does not consider it for a call; None where it does."""
        return self.unable(call.used) or self.limits(call)

    def suits(self, call: Call) -> bool:
        """Whether ``auto`` considers it for a call."""
        return self.unsuited(call) is None


KERNELS: Registry[Kernel] = Registry("structpe.attention", "attention kernel", StructPEError)
"""Every kernel by its name."""


def kernel(
    name: str,
    supports: str,
    cost: Callable[[Call], float],
    needs: str = "",
    limits: Callable[[Call], str | None] = _any,
    ragged: Ragged | None = None,
    at_once: Callable[[Call], bool] = _never,
) -> Callable[[Compute], Compute]:
    """Enter a function into the registry as a kernel; see :class:`Kernel`. Blanks separate fields of ``Terms``."""

    def enter(compute: Compute) -> Compute:
        fields = frozenset(supports.split()), compute, cost, frozenset(needs.split())
        KERNELS.add(name, Kernel(name, *fields, limits, ragged, at_once))
        return compute

    return enter


@dataclass(frozen=True)
class Choice:
    """A call, the kernel that computes it, and why: the cost of each kernel, or the reason why it does not suit."""

    call: Call
    kernel: str
    others: dict[str, float | str]


_WATCHERS: list[list[Choice]] = []


@contextmanager
def watching() -> Iterator[list[Choice]]:
    """Note which kernel computes each attention within the block; nothing while it is compiled."""
    noted: list[Choice] = []
    _WATCHERS.append(noted)
    try:
        yield noted
    finally:
        _WATCHERS.remove(noted)


def cheapest(call: Call) -> Kernel:
    """The kernel of least cost among those that suit."""
    # Not min(able, key=...), through which torch.compile does not see.
    return sorted([each for each in KERNELS.values() if each.suits(call)], key=lambda each: each.cost(call))[0]


def choose(name: str, call: Call) -> Kernel:
    """The kernel of this name, which can compute the call; with ``auto`` the cheapest that suits."""
    chosen = cheapest(call) if name == "auto" else KERNELS[name]
    if _WATCHERS and not call.traced:
        others: dict[str, float | str] = {
            each.name: each.unsuited(call) or each.cost(call) for each in KERNELS.values()
        }
        for watcher in _WATCHERS:
            watcher.append(Choice(call, chosen.name, others))
    return chosen
