"""Kernels that are compared with ``dense`` on a device before ``auto`` takes them: those compiled for a GPU.

::

    import structpe.attention

    structpe.attention.enable("flex", "cuda", torch.bfloat16, width=64)
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias

import torch
from torch import Tensor

from structpe.attention.attend import ENABLED, KERNELS, Kernel, forget_choices, padded_width
from structpe.errors import StructPEError, listed
from structpe.terms import Lookup, Terms, Toeplitz

__all__ = ["Probe", "compared", "disable", "enable", "probe"]

Compute: TypeAlias = Callable[[Tensor, Tensor, Tensor, Terms], Tensor]


@dataclass(frozen=True)
class Probe:
    """What a kernel computes on a device.

    Attributes:
        reason: why it cannot be used there; None if its values and gradients are those of ``dense``.
        deterministic: whether all gradients had the same bits twice. This proves nothing about other sizes.
    """

    reason: str | None
    deterministic: bool = False


def probe(kernel: str, device: torch.device | str, dtype: torch.dtype, width: int) -> Probe:
    """Compare small problems, with gradients of queries, keys, values and tables, with ``dense`` on a device.

    A result is kept: the next call with these arguments does not compute again.

    Args:
        kernel: its name.
        device: where.
        dtype: of queries, keys and values.
        width: of a head.

    Raises:
        StructPEError: there is no kernel of that name, or ``auto`` takes it without a probe.
    """
    where, chosen = torch.device(device), _on_request(kernel)
    if dtype not in _CLOSE:
        return Probe(f"computes in {listed(_CLOSE)}, and this is {dtype}")
    if (absent := chosen.absent(where.type)) is not None:
        return Probe(absent)
    if where.type == "cuda" and not torch.cuda.is_available():
        return Probe("runs on cuda only, and this machine has no such device")
    return _on_device(kernel, where, dtype, padded_width(width))


def enable(
    kernel: str, device: torch.device | str = "cuda", dtype: torch.dtype = torch.float32, width: int = 64
) -> Probe:
    """Let ``auto`` take a kernel for this dtype and width of a head, if its :func:`probe` succeeds.

    Args:
        kernel, device, dtype, width: as for :func:`probe`.

    Raises:
        StructPEError: as for :func:`probe`; or the probe failed.
    """
    found = probe(kernel, device, dtype, width)
    if found.reason is not None:
        raise StructPEError(f"kernel {kernel!r} cannot be enabled for {dtype} and heads of {width}: it {found.reason}")
    ENABLED.add((kernel, torch.device(device).type, dtype, padded_width(width)))
    forget_choices()
    return found


def disable(kernel: str | None = None) -> None:
    """Undo every :func:`enable` of a kernel; of all kernels if none is named."""
    ENABLED.difference_update([each for each in ENABLED if kernel in (None, each[0])])
    forget_choices()


def compared(compute: Compute, device: torch.device, dtype: torch.dtype, width: int, fields: Collection[str]) -> Probe:
    """Compare a way to compute attention with ``dense`` in float64: sizes below and above a block.

    Args:
        compute: the way.
        device, dtype, width: as for :func:`probe`.
        fields: of ``Terms``, of which the larger size has a table each; ``bias`` is one.
    """
    same = True
    for n, some in ((40, ["bias"]), (150, sorted(fields))):
        try:
            first, second = (_problem(compute, n, some, device, dtype, width) for _ in range(2))
        except (RuntimeError, ValueError, TypeError, LookupError, AssertionError, ImportError) as error:
            return Probe(f"fails with {n} units: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}")
        for name, expected in _problem(_reference, n, some, device, torch.float64, width).items():
            by, most = (first[name] - expected).abs().max().item(), max(1.0, expected.abs().max().item())
            if not by <= _CLOSE[dtype] * most:
                return Probe(f"differs from dense by {by:.1e} in the {name}, with {n} units")
        same = same and all(torch.equal(first[name], second[name]) for name in first)
    return Probe(None, same)


def _on_request(name: str) -> Kernel:
    chosen = KERNELS[name]
    if not chosen.probed:
        names = ", ".join(each.name for each in KERNELS.values() if each.probed)
        raise StructPEError(f"kernel {name!r} needs no probe: auto takes it where it suits; these need one: {names}")
    return chosen


@cache
def _on_device(name: str, device: torch.device, dtype: torch.dtype, width: int) -> Probe:
    chosen = KERNELS[name]
    with torch.enable_grad():
        return compared(lambda q, k, v, terms: chosen.compute(q, k, v, terms, 0.0), device, dtype, width, chosen.probed)


def _reference(q: Tensor, k: Tensor, v: Tensor, terms: Terms) -> Tensor:
    return KERNELS["dense"].compute(q, k, v, terms, 0.0)


_CLOSE = {torch.float64: 1e-9, torch.float32: 2e-3, torch.bfloat16: 5e-2, torch.float16: 1e-2}
"""The largest allowed difference, relative to the largest number or to 1."""


def _problem(
    compute: Compute,
    n: int,
    some: Collection[str],
    device: torch.device,
    dtype: torch.dtype,
    width: int,
) -> dict[str, Tensor]:
    """The output and the gradients, in float64; one query attends to nothing, one key is padding."""
    generator = torch.Generator().manual_seed(n)

    def numbers(*shape: int) -> Tensor:
        # Rounded to bfloat16 first: all precisions then have the same numbers.
        made = torch.randn(*shape, generator=generator).to(torch.bfloat16)
        return made.to(device, dtype).requires_grad_()

    index = torch.randint(5, (2, n, n), generator=generator).to(device, torch.uint8)
    mask = torch.ones(2, 1, n, n, dtype=torch.bool, device=device)
    mask[0, :, :, -1], mask[1, :, 3] = False, False
    given = {name: numbers(2, 2, n, width) for name in ("queries", "keys", "values")}
    tables = {f"table of a {name}": numbers(5, 2, *(() if name in ("bias", "gate") else (width,))) for name in some}
    tables["table of diagonals"] = numbers(2 * n - 1, 2)
    weights = numbers(2, 2, n, width).detach()

    def every(table: Tensor) -> Tensor:
        return torch.arange(len(table), device=device)[None]

    diagonals = Toeplitz(every(tables["table of diagonals"]), n, n)
    of_offsets = Lookup(tables["table of diagonals"], diagonals.diagonals, diagonals)
    fields: dict[str, Any] = {
        name: (Lookup(tables[f"table of a {name}"], every(tables[f"table of a {name}"]), index),) for name in some
    }
    terms = replace(Terms(**fields, mask=(mask,), causal=n > 128), bias=(*fields["bias"], of_offsets))
    out = compute(given["queries"], given["keys"], given["values"], terms)
    leaves = {**given, **tables}
    grads = torch.autograd.grad((out * weights).sum(), list(leaves.values()))
    named = {f"gradient of the {name}": grad for name, grad in zip(leaves, grads, strict=True)}
    return {name: x.detach().double() for name, x in {"output": out, **named}.items()}
