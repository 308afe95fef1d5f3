"""The registry of attention kernels. A kernel computes the equation of :mod:`structpe.terms`.

``dense`` is the reference: slow, simple, and it supports every field. The other kernels declare the fields they
support, the calls they suit and the cost of a call. Tests compare their values and gradients with those of ``dense``.

Shapes: b batch, h heads, n queries, m keys, d width of a head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor

from structpe.attention.gather import is_large
from structpe.attention.layout import Layout
from structpe.errors import StructPEError
from structpe.registry import Registry
from structpe.terms import Lookup, Pairs, SparsePairs, Terms, Toeplitz

__all__ = [
    "KERNELS",
    "Call",
    "Choice",
    "Kernel",
    "Ragged",
    "attend_masked",
    "cheapest",
    "choose",
    "cost_masked",
    "forget_choices",
    "kernel",
    "of_offsets",
    "room",
    "watching",
]


Compute: TypeAlias = Callable[[Tensor, Tensor, Tensor, Terms, float], Tensor]
Ragged: TypeAlias = Callable[[Tensor, Layout, "list[Terms]", float], Tensor]


@dataclass(frozen=True)
class Call:
    """The properties of an attention call that are known before it is computed.

    Attributes:
        used: fields of :class:`Terms` that are used.
        device: type of the device, such as ``cpu``.
        dtype: of the queries.
        shape: b, h, n, m and d; (1, 1, 64, 64, 64) while tracing, when sizes are symbols.
        pairs: number of listed pairs; 0 if no pairs are listed.
        span: number of different offsets, key minus query, between the least and the greatest of the listed pairs; 0 if
            not known, as on a GPU, where reading them would synchronise.
        ragged: whether it is one of several buckets, which share the cost of starting a kernel.
        gradients: whether gradients are needed.
        traced: whether it is traced or compiled.
        dropout: probability of dropping an attention weight.
        ready: whether the fused kernel can read all biases as they are: without gradients, and either tensors or of
            offsets only, see :func:`of_offsets`.
        large: whether a table of vectors has so many rows that copying a vector for each pair takes less memory.
        rows: number of rows that a structure uses of vectors of pairs, of the largest table.
        by_query: whether a mask depends on the query.
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
    ready: bool = False
    span: int = 0
    large: bool = False
    rows: int = 0
    by_query: bool = False

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
            ready=of_offsets(terms) or _of_tensors(terms),
            span=0 if traced else _span(terms),
            large=not traced and _is_large(terms, shape),
            rows=0 if traced else max((x.rows.shape[1] for x in _vectors(terms)), default=0),
            by_query=any(mask.shape[-2] != 1 for mask in terms.mask),
        )

    @property
    def gathers(self) -> int:
        """Number of fields that are, or may be, gathered from tables for each pair."""
        biased = "bias" in self.used and not self.ready
        return biased + len(self.used & {"key", "query", "gate", "product", "value"})

    def time(
        self,
        fixed: float,
        cell: float,
        width: float,
        gathered: tuple[float, float],
        gpu: tuple[float, float, float] | None = None,
    ) -> float:
        """An estimate of nanoseconds, forward and backward, of a kernel that computes all cells.

        Args:
            fixed: of a call.
            cell: of a score.
            width: of a score, for each element of a head.
            gathered: of a call and of a score, for each field that is gathered.
            gpu: of a call, of a score, and of a score for each field that is gathered, on a GPU; None for the same as
                on a CPU.
        """
        if gpu is not None and self.device != "cpu":
            call, cell, score = gpu
            return call + (cell + score * self.gathers) * self.cells
        call, score = gathered
        each = cell + width * self.shape[4] + score * self.gathers
        return fixed + call * self.gathers + each * self.cells

    @property
    def cells(self) -> int:
        """Number of scores: b h n m."""
        b, h, n, m, _ = self.shape
        return b * h * n * m


def of_offsets(terms: Terms) -> bool:
    """Whether there are biases, and all depend on the offset only, in all structures alike, and need no gradient.

    Then they are a view of one vector.
    """

    def alike(x: Lookup | SparsePairs | Tensor) -> bool:
        if not isinstance(x, Lookup) or not isinstance(x.index, Toeplitz) or len(x.rows) > 1 or x.index.shape[0] > 1:
            return False
        return not (torch.is_grad_enabled() and x.table.requires_grad)

    return bool(terms.bias) and all(alike(x) for x in terms.bias)


def _of_tensors(terms: Terms) -> bool:
    learned = torch.is_grad_enabled()
    return bool(terms.bias) and all(isinstance(x, Tensor) and not (learned and x.requires_grad) for x in terms.bias)


def _span(terms: Terms) -> int:
    listed = [pairs for pairs in terms.pairs if len(pairs.key) and pairs.key.device.type == "cpu"]
    return min((pairs.offsets[1] - pairs.offsets[0] + 1 for pairs in listed), default=0)


def _is_large(terms: Terms, shape: tuple[int, int, int, int, int]) -> bool:
    b, h, n, *_ = shape
    return any(is_large(x, b * h * n) for x in _vectors(terms))


def _vectors(terms: Terms) -> list[Lookup]:
    return [x for name in ("key", "query", "value") for x in getattr(terms, name) if isinstance(x, Lookup)]


MOST = 1 << 31
"""The largest number of scores of a call, b h n m, for which a GPU has room for a number each and its gradient."""


def room(call: Call) -> str | None:
    """The limit of kernels that write a number for each pair: on a GPU they run out of memory first.

    None if ``tiled`` could not take over: for half precision, and in a compiled model.
    """
    tiled = call.dtype in (torch.float32, torch.float64) and not call.traced
    if call.device == "cpu" or not tiled or not call.gathers or call.cells <= MOST:
        return None
    return f"writes a number for each of {call.cells:,} scores, and on a GPU auto allows {MOST:,} at most"


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
        devices: types of the devices it runs on; empty for all.
    """

    name: str
    supports: frozenset[str]
    compute: Compute
    cost: Callable[[Call], float]
    needs: frozenset[str] = frozenset()
    limits: Callable[[Call], str | None] = _any
    ragged: Ragged | None = None
    at_once: Callable[[Call], bool] = _never
    devices: frozenset[str] = frozenset()

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

    def absent(self, device: str) -> str | None:
        """Why it does not run on this type of device; None if it does."""
        if not self.devices or device in self.devices:
            return None
        return f"runs on {', '.join(sorted(self.devices))} only, and this is {device}"

    def unsuited(self, call: Call) -> str | None:
        """Why ``auto`` does not consider it for a call; None if it does."""
        return self.unable(call.used) or self.absent(call.device) or self.limits(call)

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
    devices: str = "",
) -> Callable[[Compute], Compute]:
    """Register a function as a kernel; see :class:`Kernel`. Fields and devices are separated by spaces."""

    def enter(compute: Compute) -> Compute:
        fields = frozenset(supports.split()), compute, cost, frozenset(needs.split())
        KERNELS.add(name, Kernel(name, *fields, limits, ragged, at_once, frozenset(devices.split())))
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


_CHEAPEST: dict[tuple[Call, bool, int], str] = {}
_MOST_CHOICES = 4096


def cheapest(call: Call) -> Kernel:
    """The cheapest kernel that suits the call."""
    # Not min(..., key=...), which torch.compile cannot trace.
    return sorted([each for each in KERNELS.values() if each.suits(call)], key=lambda each: each.cost(call))[0]


def remembered(call: Call) -> Kernel:
    """As :func:`cheapest`, cached by call."""
    if call.traced:
        return cheapest(call)
    # A choice depends on the call and on these two; ``flex`` clears all choices when it is enabled or disabled.
    asked = call, torch.are_deterministic_algorithms_enabled(), KERNELS.changes
    if asked not in _CHEAPEST:
        if len(_CHEAPEST) >= _MOST_CHOICES:
            _CHEAPEST.clear()
        _CHEAPEST[asked] = cheapest(call).name
    return KERNELS[_CHEAPEST[asked]]


def forget_choices() -> None:
    """Clear the cached choices, after a change that calls do not record."""
    _CHEAPEST.clear()


def choose(name: str, call: Call) -> Kernel:
    """The kernel of this name; with ``auto`` the cheapest that suits."""
    chosen = remembered(call) if name == "auto" else KERNELS[name]
    if _WATCHERS and not call.traced:
        others: dict[str, float | str] = {
            each.name: each.unsuited(call) or each.cost(call) for each in KERNELS.values()
        }
        for watcher in _WATCHERS:
            watcher.append(Choice(call, chosen.name, others))
    return chosen


def attend_masked(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float) -> Tensor:
    """Attention with a mask in place of the lists."""
    (b, h, n, d), m = q.shape, k.shape[2]
    if not n or not m:
        return (q.sum() + k.sum() + v.sum()) * 0 + v.new_zeros(b, h, n, v.shape[-1])
    masks = (_mask(pairs, b, n, m) for pairs in terms.pairs)
    whole = replace(terms, pairs=(), mask=(*terms.mask, *(mask for mask in masks if mask is not None)))
    return cheapest(Call.of(whole, q, (b, h, n, m, d), dropout, False)).compute(q, k, v, whole, dropout)


def cost_masked(call: Call) -> float:
    """Nanoseconds of a call."""
    b, _, n, m, _ = call.shape
    without = replace(call, used=call.used - {"pairs"} | {"mask"}, pairs=0)
    return cheapest(without).cost(without) + 5.0 * b * n * m + 5.0 * call.pairs


def _mask(pairs: Pairs, b: int, n: int, m: int) -> Tensor | None:
    """(b, 1, n, m) which pairs are listed; None if all are, as no pair is listed twice."""
    if len(pairs.key) == b * n * m and not torch.compiler.is_compiling():
        return None
    place = (pairs.batch * n + pairs.query) * m + pairs.key
    listed = torch.zeros(b * n * m, dtype=torch.bool, device=place.device).index_fill_(0, place, True)
    return listed.view(b, 1, n, m)
