"""The registry of attention kernels, and attention by the one that suits: for padded batches, and for flat ones.

A kernel computes the equation of :mod:`structpe.terms`. ``dense`` is the reference: slow, simple, and it supports every
field. The other kernels declare the fields they support, the calls they suit and the cost of a call. Tests compare
their values and gradients with those of ``dense``.

Shapes: b batch, h heads, n queries, m keys, or mixtures of them, c mixtures, d width of a head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from itertools import groupby
from typing import Any, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from structpe.attention.gather import is_large, with_shared_factors
from structpe.attention.layout import Layout
from structpe.errors import StructPEError, UnsupportedTerm, reason_of
from structpe.registry import Registry
from structpe.terms import Factor, Lookup, Pairs, Projection, SparsePairs, Terms, Toeplitz

__all__ = [
    "ENABLED",
    "KERNELS",
    "Call",
    "Kernel",
    "KernelChoice",
    "Ragged",
    "attend",
    "attend_masked",
    "attend_ragged",
    "blamed",
    "cheapest",
    "check_shapes",
    "choose",
    "cost_masked",
    "forget_choices",
    "kernel",
    "of_offsets",
    "padded_width",
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
            span=_span(terms) if terms.pairs and not traced else 0,
            large=not traced and any(is_large(x, shape[0] * shape[1] * shape[2]) for x in _vectors(terms)),
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
        limits: why it does not suit a call whose terms it supports; None if it does. Like ``cost`` it may depend on the
            call only, by which choices are cached; after another change call :func:`forget_choices`.
        ragged: (qkv (N, 3, h, d), layout, terms of each bucket, dropout) -> (N, h, d), for several buckets in one call;
            None if the kernel computes buckets one by one.
        at_once: whether ``ragged`` can compute a call.
        devices: types of the devices it runs on; empty for all.
        probed: fields of which :func:`structpe.attention.probe` compares tables with ``dense``, without which ``auto``
            does not take the kernel; empty if it needs no probe.
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
    probed: frozenset[str] = frozenset()

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
        return self.unable(call.used) or self.absent(call.device) or self._untried(call) or self.limits(call)

    def _untried(self, call: Call) -> str | None:
        if not self.probed or (self.name, call.device, call.dtype, padded_width(call.shape[4])) in ENABLED:
            return None
        return "is not enabled for this device, dtype and width of a head; see structpe.attention.enable"

    def suits(self, call: Call) -> bool:
        """Whether ``auto`` considers it for a call."""
        return self.unsuited(call) is None


ENABLED: set[tuple[str, str, torch.dtype, int]] = set()
"""For kernels that need a probe: name, type of device, dtype and width of a head as it is computed."""


def padded_width(d: int) -> int:
    """The next power of two, at least 16: compiled kernels of GPUs know no other width of a head."""
    return max(16, 1 << (d - 1).bit_length())


KERNELS: Registry[Kernel] = Registry("structpe.attention", "attention kernel", StructPEError, own=False)
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
    probed: str = "",
) -> Callable[[Compute], Compute]:
    """Register a function as a kernel; see :class:`Kernel`, and :mod:`structpe.attention` for what it must compute.

    Fields and devices are separated by spaces.
    """

    def enter(compute: Compute) -> Compute:
        fields = frozenset(supports.split()), compute, cost, frozenset(needs.split())
        on = frozenset(devices.split()), frozenset(probed.split())
        KERNELS.add(name, Kernel(name, *fields, limits, ragged, at_once, *on))
        return compute

    return enter


@dataclass(frozen=True)
class KernelChoice:
    """A call, the kernel chosen for it, and for each kernel its cost or the reason why it does not suit."""

    call: Call
    kernel: str
    others: dict[str, float | str]


_WATCHERS: list[list[KernelChoice]] = []


@contextmanager
def watching() -> Iterator[list[KernelChoice]]:
    """Record which kernel computes each attention call in the block. Compiled calls are not recorded."""
    noted: list[KernelChoice] = []
    _WATCHERS.append(noted)
    try:
        yield noted
    finally:
        _WATCHERS.remove(noted)


_CHEAPEST: dict[tuple[Call, bool, int], str] = {}
_MOST_CHOICES = 4096
"""Choices that are kept; they depend on sizes, of which data may have any number."""


def cheapest(call: Call) -> Kernel:
    """The cheapest kernel that suits the call."""
    # Not min(..., key=...), which torch.compile cannot trace.
    return sorted([each for each in KERNELS.values() if each.suits(call)], key=lambda each: each.cost(call))[0]


def remembered(call: Call) -> Kernel:
    """As :func:`cheapest`, cached by call."""
    if call.traced:
        return cheapest(call)
    # A choice depends on the call and on these two; enabling or disabling a kernel clears all choices.
    asked = call, torch.are_deterministic_algorithms_enabled(), KERNELS.changes
    # Read once, because another thread may clear the choices in between.
    if (name := _CHEAPEST.get(asked)) is not None:
        return KERNELS[name]
    if len(_CHEAPEST) >= _MOST_CHOICES:
        _CHEAPEST.clear()
    chosen = cheapest(call)
    _CHEAPEST[asked] = chosen.name
    return chosen


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
            watcher.append(KernelChoice(call, chosen.name, others))
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
            if not isinstance(term, _SHAPED):
                continue
            _check(field.name, term, (b, h, n, m if field.name == "mask" and terms.projection else keys), m, width)


_SHAPED = Tensor, Lookup, SparsePairs, Pairs, Factor, Projection


def _check(name: str, term: Any, sizes: tuple[int, int, int, int], m: int, d: int | None) -> None:
    b, h, n, keys = sizes
    if isinstance(term, Tensor):
        if name == "mask" and term.dtype != torch.bool:
            raise StructPEError(f"a mask must be bool, not {term.dtype}; convert it, for example with mask > 0")
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


def blamed(terms: Terms, q: Tensor, k: Tensor) -> str:
    """The problem of the terms, looked for only after a kernel has failed; empty if there is none."""
    return next(_problems(terms, q, k), "")


def _problems(terms: Terms, q: Tensor, k: Tensor) -> Iterator[str]:
    for field in fields(terms):
        given = getattr(terms, field.name)
        for term in given if isinstance(given, tuple) else ():
            yield from _of_places(field.name, term)
    mapped: Any = q, k
    for each in terms.maps:
        try:
            mapped = each(*mapped)
        except RuntimeError as error:
            shapes = f"queries of shape {tuple(q.shape)} and keys of shape {tuple(k.shape)}"
            yield (
                f"a map, such as a rotation, does not take {shapes} ({reason_of(error)}); attend takes (batch, heads, "
                f"units, width), and as many units as were encoded"
            )
            return
        yield from _of_map(mapped)
    width = mapped[0].shape[-1]
    for name in ("key", "query", "product"):
        for term in getattr(terms, name):
            if (own := term.table.shape[-1]) != width:
                yield (
                    f"the vectors of a {name} have width {own}, and the queries and keys that they are multiplied with "
                    f"have width {width} after the maps; use only one of the position models that give these"
                )


def _of_places(name: str, term: Any) -> Iterator[str]:
    if isinstance(term, Lookup):
        yield from _outside(f"the rows of a {name}", term.rows, len(term.table), "table")
        yield from _outside(f"the index of a {name}", term.dense_index(), term.rows.shape[1], "list of rows")
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
        widths = f"queries of width {mapped[0].shape[-1]} and keys of width {mapped[1].shape[-1]}"
        yield f"a map gives {widths}; the widths must be equal"


TRANSPOSED = (
    "With units before heads they fit: attend takes q, k, v of shape (batch, heads, units, width), so give "
    "q.transpose(1, 2), and k and v likewise"
)


def _suits(terms: Terms, b: int, h: int, n: int, m: int, d: int) -> bool:
    """Whether terms have these sizes."""
    try:
        check_shapes(terms, b, h, n, m, d)
    except StructPEError:
        return False
    return True


def attend(
    q: Float[Tensor, "b h n d"],
    k: Float[Tensor, "b h m d"],
    v: Float[Tensor, "b h m d"],
    terms: Terms | None = None,
    kernel: str = "auto",
    dropout: float = 0.0,
) -> Float[Tensor, "b h n d"]:
    """Compute attention with the changes in ``terms``: the equation at the top of :mod:`structpe.terms`.

    Args:
        q, k, v: queries, keys and values.
        terms: what position models add; None for plain attention. In half precision, and under autocast, sums of scores
            and terms are of float32.
        kernel: name of a kernel, or ``auto`` for the cheapest that suits.
        dropout: probability of dropping an attention weight.

    Raises:
        UnsupportedTerm: the named kernel does not compute one of the terms.
        StructPEError: there is no kernel of that name, it does not run on this device, the shapes do not match, an
            index is outside its table (not detected on a GPU), a map does not return queries and keys, or an argument
            is not a tensor, a nested tensor, or not ``Terms``.
    """
    _check_tensors("attend", q, k, v)
    terms = Terms() if terms is None else terms
    _check_terms("attend", terms)
    if q.ndim != 4 or k.ndim != 4 or k.shape != v.shape or (*q.shape[:2], q.shape[3]) != (*k.shape[:2], k.shape[3]):
        shapes = ", ".join(str(tuple(x.shape)) for x in (q, k, v))
        raise StructPEError(f"attend takes q (b, h, n, d) and k, v (b, h, m, d); the shapes are {shapes}")
    b, h, n, d = q.shape
    shape = (b, h, n, k.shape[2], d)
    try:
        _dispatch_check(terms, kernel, shape, q.device.type)
    except StructPEError as error:
        if not _suits(terms, *shape) and _suits(terms, b, n, h, k.shape[1], d):
            raise type(error)(f"{error}. {TRANSPOSED}") from None
        raise
    terms = with_shared_factors(terms, b, n, k.shape[2])
    return _computed(choose(kernel, Call.of(terms, q, shape, dropout, False)), q, k, v, terms, dropout)


def attend_ragged(
    q: Float[Tensor, "N h d"],
    k: Float[Tensor, "N h d"],
    v: Float[Tensor, "N h d"],
    layout: Layout,
    terms: Sequence[Terms],
    kernel: str = "auto",
    dropout: float = 0.0,
) -> Float[Tensor, "N h d"]:
    """Let each unit attend to the units of its structure, for structures that differ in size.

    A kernel is chosen for each bucket of the layout. Neighbouring buckets with the same kernel are computed in one call
    if the kernel can.

    Args:
        q, k, v: of all units. Views of one tensor (N, 3, h, d) are read without a copy.
        layout: how the units are padded.
        terms: one per bucket, without the mask for padding.
        kernel: name of a kernel, or ``auto`` for the cheapest that suits each bucket.
        dropout: probability of dropping an attention weight.

    Raises:
        UnsupportedTerm, StructPEError: as :func:`attend`; or the layout has a different number of units or buckets.
    """
    _check_tensors("attend_ragged", q, k, v)
    for each in terms:
        _check_terms("attend_ragged", each)
    if q.ndim != 3 or q.shape != k.shape or q.shape != v.shape or len(q) != layout.units or len(terms) != len(layout):
        shapes = ", ".join(str(tuple(x.shape)) for x in (q, k, v))
        given = f"the layout has {layout.units} units in {len(layout)} buckets, and there are {len(terms)} terms"
        wanted = "attend_ragged takes q, k, v (N, h, d) and the terms of each bucket"
        raise StructPEError(f"{wanted}; the shapes are {shapes}, {given}")
    h, d = q.shape[1:]
    for each, (b, n) in zip(terms, layout.shapes, strict=True):
        _dispatch_check(each, kernel, (b, h, n, n, d), q.device.type)
    terms = [with_shared_factors(each, b, n, n) for each, (b, n) in zip(terms, layout.shapes, strict=True)]
    each_shape = zip(terms, layout.shapes, strict=True)
    calls = [Call.of(mine, q, (b, h, n, n, d), dropout, True) for mine, (b, n) in each_shape]
    chosen = [choose(kernel, call) for call in calls]
    alike = [(each.name, each.at_once(call)) for each, call in zip(chosen, calls, strict=True)]
    groups = [[i for i, _ in group] for _, group in groupby(enumerate(alike), key=lambda pair: pair[1])]
    qkv, parts, mixed = packed(q, k, v), [], []
    if len(groups) > 1:
        counts = layout.counts()
        parts = list(torch.split(qkv, [sum(counts[group[0] : group[-1] + 1]) for group in groups]))
    for part, group in zip(parts or [qkv], groups, strict=True):
        alone, mine, by = layout.part(group[0], group[-1] + 1), [terms[i] for i in group], chosen[group[0]]
        if by.ragged is not None and alike[group[0]][1]:
            mixed.append(_at_once(by.ragged, part, alone, mine, dropout))
        else:
            mixed.append(_by_bucket(part, alone, mine, by, dropout))
    return mixed[0] if len(mixed) == 1 else torch.cat(mixed)


def _check_tensors(whose: str, *given: Any) -> None:
    """Check that queries, keys and values are padded tensors, or flat ones with a layout."""
    for each in given:
        if not isinstance(each, Tensor):
            raise StructPEError(f"{whose} takes q, k and v as tensors; given is {type(each).__name__}")
        if each.is_nested:
            padded = "torch.nested.to_padded_tensor(q, 0.0), with Terms(mask=(present[:, None, None],))"
            flat = "call attend_ragged with its flat values and Layout.of(sizes)"
            wrong = f"{whose} was given a nested tensor, whose rows differ in length"
            raise StructPEError(f"{wrong}; pad it, {padded}, or {flat}")


def _check_terms(whose: str, given: Any) -> None:
    if not isinstance(given, Terms):
        call = "model.terms(model.prepare(structpe.encode(structures, model.encodings)), structpe.Site(layer))"
        wrong = f"{whose} takes Terms, and was given {type(given).__name__}"
        raise StructPEError(f"{wrong}; a position model gives them: {call}")


def packed(q: Tensor, k: Tensor, v: Tensor) -> Float[Tensor, "N 3 h d"]:
    """Queries, keys and values as one tensor. No copy is made if all three are views of it."""
    base, (count, heads, width) = q._base, q.shape
    if base is None or torch.compiler.is_compiling() or k._base is not base or v._base is not base:
        return torch.stack([q, k, v], dim=1)
    step = heads * width
    places = [x.storage_offset() - base.storage_offset() for x in (q, k, v)]
    same = all(x.stride() == (3 * step, width, 1) for x in (q, k, v)) and places == [0, step, 2 * step]
    if same and base.is_contiguous() and base.numel() == count * 3 * step:
        return base.view(count, 3, heads, width)
    return torch.stack([q, k, v], dim=1)


def _at_once(compute: Ragged, qkv: Tensor, layout: Layout, terms: list[Terms], dropout: float) -> Tensor:
    """Compute several buckets in one call. If it fails because of the terms, the error names the term."""
    try:
        return compute(qkv, layout, terms, dropout)
    except (RuntimeError, LookupError, TypeError, ValueError) as error:
        for each in terms:
            if found := blamed(each, qkv, qkv):
                raise StructPEError(found) from error
        raise


def _by_bucket(qkv: Tensor, layout: Layout, terms: Sequence[Terms], by: Kernel, dropout: float) -> Tensor:
    """Compute the buckets of a layout one by one; (N, h, d)."""
    mixed = []
    for number, rows in enumerate(layout.padded(qkv.flatten(1))):
        q, k, v = rows.view(*rows.shape[:2], *qkv.shape[1:]).permute(2, 0, 3, 1, 4).unbind()
        masked = terms[number] + Terms(mask=layout.mask(number))
        mixed.append(_computed(by, q, k, v, masked, dropout).transpose(1, 2).flatten(2))
    return layout.flat(mixed).view(len(qkv), *qkv.shape[2:])


def _dispatch_check(terms: Terms, name: str, shape: tuple[int, int, int, int, int], device: str) -> None:
    """Check that terms fit the shape and that the named kernel computes them on this device."""
    check_shapes(terms, *shape)
    _check_linear(terms)
    if name == "auto":
        return
    used, chosen = terms.used(), KERNELS[name]
    unable, absent = chosen.unable(used), chosen.absent(device)
    if unable or absent:
        names = ", ".join(each.name for each in KERNELS.values() if each.can(used) and not each.absent(device))
        error = UnsupportedTerm if unable else StructPEError
        raise error(f"kernel {name!r} {unable or absent}; these can: {names} (or 'auto')")


def _computed(chosen: Kernel, q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float) -> Tensor:
    """Run a kernel. If it fails because of the terms, the error names the term."""
    try:
        if q.device.type != "meta" and torch.is_autocast_enabled(q.device.type):
            return _lowered(chosen, q, k, v, terms, dropout)
        return chosen.compute(q, k, v, terms, dropout)
    except (RuntimeError, LookupError, TypeError, ValueError) as error:
        if not torch.compiler.is_compiling() and (found := blamed(terms, q, k)):
            raise StructPEError(found) from error
        raise


def _lowered(chosen: Kernel, q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float) -> Tensor:
    """Under autocast only queries, keys and values are of half precision, not the sums of terms and over keys.

    The functions of the terms still run under autocast, since they may read parameters.
    """
    device, to = q.device.type, torch.get_autocast_dtype(q.device.type)

    def inside(function: Any) -> Any:
        return function and torch.autocast(device, to)(function)

    maps = tuple(map(inside, terms.maps))
    terms = replace(terms, maps=maps, act=inside(terms.act), feature_map=inside(terms.feature_map))
    q, k, v = (x.to(to) if x.dtype == torch.float32 else x for x in (q, k, v))
    with torch.autocast(device, enabled=False):
        return chosen.compute(q, k, v, terms, dropout)


_WITH_FEATURE_MAP = frozenset({"maps", "mask", "pairs", "causal", "projection", "value", "feature_map"})


def _check_linear(terms: Terms) -> None:
    """Check that a feature map is not used with terms that change scores: no kernel can compute that."""
    if terms.feature_map is not None and (lost := terms.used() - _WITH_FEATURE_MAP):
        known = ", ".join(sorted(_WITH_FEATURE_MAP - {"feature_map"}))
        wrong = f"with a feature map attention has no score that {', '.join(sorted(lost))} could change"
        raise UnsupportedTerm(f"{wrong}; use position models that act by {known}")
    if terms.projection is not None:
        mixed = terms.projection.keys.shape[-1]
        if terms.causal or terms.pairs or any(mask.shape[-2] != 1 or mask.shape[-1] != mixed for mask in terms.mask):
            wrong = "with a projection, keys are mixtures, which cannot be masked for each query"
            remedy = "leave out causal attention and listed pairs; a mask must be (b or 1, h or 1, 1, m)"
            raise UnsupportedTerm(f"{wrong}; {remedy}")
