"""Functions of large tensors, computed in blocks of rows whose numbers fit into a processor's cache.

What lies between the input and the output of such a function, several numbers or vectors for each pair of units, then
exists for one block at a time: it is not stored for the backward pass, which computes it again. Beside memory this
saves time. Beyond 32 MiB the C library asks the system for the memory of every tensor and gives it back, and the system
fills each page of it with zeros: four times as many pairs took up to thirteen times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import torch
from torch import Tensor

__all__ = ["LIVE", "ONE_BLOCK", "Ranges", "by_rows", "cut"]

Ranges: TypeAlias = tuple[slice, ...]
"""Ranges of rows that are computed together: one for each kind of rows, such as queries, and pairs of queries."""

LIVE = {"cpu": 1 << 21}
"""How many numbers of a block may exist at once: 8 MiB of float32. 2^26 on other devices."""

ONE_BLOCK = {"cpu": 1 << 25}
"""Up to how many numbers all rows are one block: computing them twice would take longer than their memory does."""


def cut(rows: int, numbers: int, device: torch.device) -> list[Ranges]:
    """Blocks of equally many rows, except the last; a single one if these are not many.

    Args:
        rows: how many there are.
        numbers: how many numbers exist at once for each row, about.
        device: where.
    """
    if rows * numbers <= ONE_BLOCK.get(device.type, 1 << 27):
        return [(slice(0, rows),)]
    step = max(1, LIVE.get(device.type, 1 << 26) // numbers)
    return [(slice(first, min(first + step, rows)),) for first in range(0, rows, step)]


def by_rows(
    compute: Callable[..., tuple[Tensor, ...]],
    blocks: Sequence[Ranges],
    rows: Sequence[Tensor],
    whole: Sequence[Tensor],
    of: Sequence[int] = (),
    out: Sequence[int | None] = (0,),
) -> tuple[Tensor, ...]:
    """``compute(block, *rows, *whole)``, block by block: rows are the last axis but one of each tensor.

    With a single block, while a graph is traced, and inside ``torch.func``, it is just a call of ``compute``. Otherwise
    the backward pass calls it again, for each block. Gradients of gradients are computed from all rows at once.

    Args:
        compute: gives a tuple of tensors for the rows of a block. Gradients reach the tensors that it is given, not
            those that it knows otherwise, such as a module's parameters; and it must give the same numbers each time:
            draw random ones before.
        blocks: which rows are computed together; each kind in order, from 0 to the last.
        rows: tensors of which it is given the rows of the block.
        whole: tensors that it is given as they are.
        of: for each of ``rows`` its place in the ranges of a block; by default 0.
        out: the same for each result. None for one that has no such rows, and is summed over the blocks.
    """
    of = tuple(of) or (0,) * len(rows)
    if torch.compiler.is_compiling():
        return compute(_all(blocks), *rows, *whole)
    _keep_freed_memory()
    if len(blocks) == 1 or torch._C._are_functorch_transforms_active():
        return compute(_all(blocks), *rows, *whole)
    job = _Job(compute, blocks, (*of, *(None for _ in whole)), tuple(out))
    made: tuple[Tensor, ...] = _ByRows.apply(job, *rows, *whole)  # type: ignore[no-untyped-call]
    return made


def _all(blocks: Sequence[Ranges]) -> Ranges:
    """All blocks as one."""
    return tuple(slice(0, last.stop) for last in blocks[-1])


@dataclass(frozen=True, eq=False)
class _Job:
    """Which function is computed, how tensors are cut, and how results are joined; see :func:`by_rows`."""

    compute: Callable[..., tuple[Tensor, ...]]
    blocks: Sequence[Ranges]
    given: tuple[int | None, ...]
    out: tuple[int | None, ...]

    def parts(self, tensors: Sequence[Tensor], block: Ranges) -> list[Tensor]:
        """Those of a block."""
        return [x if kind is None else _rows(x, block[kind]) for x, kind in zip(tensors, self.given, strict=True)]


def _rows(x: Tensor, rows: slice) -> Tensor:
    return x.narrow(-2, rows.start, rows.stop - rows.start)


class _ByRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, job: _Job, *tensors: Tensor) -> tuple[Tensor | None, ...]:
        ctx.job, ctx.cast = job, _autocast(tensors[0].device.type)
        ctx.save_for_backward(*tensors)
        ctx.set_materialize_grads(False)
        # Detached, because autocast would keep what it makes of a parameter, here without its gradient, for others.
        detached = [x.detach() for x in tensors]
        made: list[Tensor | None] = [None] * len(job.out)
        for block in job.blocks:
            for i, x in enumerate(job.compute(block, *job.parts(detached, block))):
                kind, earlier = job.out[i], made[i]
                if kind is None:
                    made[i] = x.clone() if earlier is None else earlier.add_(x)
                else:
                    if earlier is None:
                        earlier = made[i] = x.new_empty(*x.shape[:-2], job.blocks[-1][kind].stop, x.shape[-1])
                    _rows(earlier, block[kind]).copy_(x)
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        job, needed = ctx.job, ctx.needs_input_grad[1:]
        with ctx.cast():
            if torch.is_grad_enabled():
                return None, *_again(job, ctx.saved_tensors, needed, grads)
            return None, *_by_block(job, ctx.saved_tensors, needed, grads)


@cache
def _keep_freed_memory() -> None:
    """Let the C library keep up to 62 MiB that was freed, for the next block.

    It takes memory from the system, and gives it back, by sizes that it learns from the largest tensor below 32 MiB
    that was freed so far. Nothing is written here, so no memory is in fact taken.
    """
    torch.empty(31 << 20, dtype=torch.uint8)


def _by_block(
    job: _Job, tensors: Sequence[Tensor], needed: Sequence[bool], grads: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """The gradients of the tensors, from one block after the other."""
    made: list[Tensor | None] = [
        torch.empty(x.shape, dtype=x.dtype, device=x.device) if wanted and kind is not None else None
        for x, wanted, kind in zip(tensors, needed, job.given, strict=True)
    ]
    own = [False] * len(made)  # whether a sum is in memory of its own
    for block in job.blocks:
        parts = [x.detach().requires_grad_(wanted) for x, wanted in zip(job.parts(tensors, block), needed, strict=True)]
        with torch.enable_grad():
            results = job.compute(block, *parts)
        given = [
            g if g is None or kind is None else _rows(g, block[kind]) for g, kind in zip(grads, job.out, strict=True)
        ]
        for i, found in zip(_places(needed), _gradients(results, parts, needed, given), strict=True):
            kind, earlier = job.given[i], made[i]
            if kind is not None:
                assert earlier is not None
                part = _rows(earlier, block[kind])
                part.zero_() if found is None else part.copy_(found)
            elif found is not None:
                made[i] = found if earlier is None else earlier.add_(found) if own[i] else earlier + found
                own[i] = earlier is not None
    return made


def _again(
    job: _Job, tensors: Sequence[Tensor], needed: Sequence[bool], grads: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """The same, for which gradients can be computed: from all rows at once."""
    parts = [x.view_as(x) for x in tensors]
    results = job.compute(_all(job.blocks), *parts)
    made: list[Tensor | None] = [None] * len(parts)
    for i, found in zip(_places(needed), _gradients(results, parts, needed, grads, further=True), strict=True):
        made[i] = found
    return made


def _places(needed: Sequence[bool]) -> list[int]:
    return [i for i, wanted in enumerate(needed) if wanted]


def _gradients(
    results: Sequence[Tensor],
    parts: Sequence[Tensor],
    needed: Sequence[bool],
    grads: Sequence[Tensor | None],
    further: bool = False,
) -> Sequence[Tensor | None]:
    """Those of the needed parts; None for one that no result depends on."""
    known = [(x, g) for x, g in zip(results, grads, strict=True) if g is not None and x.requires_grad]
    wanted = [parts[i] for i in _places(needed)]
    if not known:
        return [None] * len(wanted)
    outs, given = zip(*known, strict=True)
    return torch.autograd.grad(outs, wanted, given, allow_unused=True, create_graph=further)


def _autocast(device: str) -> Callable[[], Any]:
    """What enters the autocast of this moment again, without a cache: detached tensors are others for each block."""
    if device == "meta" or not torch.is_autocast_enabled(device):
        return nullcontext
    dtype = torch.get_autocast_dtype(device)
    return lambda: torch.autocast(device, dtype, cache_enabled=False)
