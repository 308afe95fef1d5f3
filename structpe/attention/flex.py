"""PyTorch's FlexAttention on CUDA: a compiled kernel that reads tables of pairs while it computes scores.

``auto`` takes it only after :func:`enable`, which compares it with ``dense`` on the GPU at hand::

    from structpe.attention import flex

    flex.enable("cuda", torch.bfloat16, width=64)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from structpe.attention._flex_parts import Masks, Score, masks_of, score_of
from structpe.attention._mixtures import mixed
from structpe.attention.base import KERNELS, Call, kernel
from structpe.errors import StructPEError, listed
from structpe.terms import Lookup, Terms, Toeplitz

__all__ = ["Probe", "block_mask", "disable", "eager", "enable", "flex", "kernel_options", "modifications", "probe"]

BLOCK = 128
"""Queries and keys of a block of the mask."""


@dataclass(frozen=True)
class Probe:
    """What FlexAttention computes on a device.

    Attributes:
        reason: why it cannot be used there; None if its values and gradients are those of ``dense``.
        deterministic: whether all gradients had the same bits twice. This proves nothing about other sizes: with
            deterministic algorithms and gradients the kernel is refused in any case.
    """

    reason: str | None
    deterministic: bool = False


_ENABLED: set[tuple[str, torch.dtype, int]] = set()
"""By type of device, dtype and width of a head as it is computed."""


def _limits(call: Call) -> str | None:
    if call.dropout:
        return "has no dropout of attention weights"
    if call.traced:
        return "is compiled on its own, not as part of a compiled model"
    if (call.device, call.dtype, _width(call.shape[4])) not in _ENABLED:
        return "is not enabled for this device, dtype and width of a head; see structpe.attention.flex.enable"
    if call.large:
        return "lets each query meet all rows of vectors, which are as many as pairs"
    if call.gradients and torch.are_deterministic_algorithms_enabled():
        return "sums gradients of tables in no fixed order"
    return None


def _cost(call: Call) -> float:
    return call.time(150_000, 5.0, 0.2, gathered=(0.0, 1.0), gpu=(2.2e6, 0.012, 0.01))


@kernel(
    "flex",
    supports="maps factors bias gate mask key query act scale pairs causal projection",
    cost=_cost,
    limits=_limits,
    devices="cuda",
)
def flex(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float = 0.0) -> Tensor:
    """O(b h (n + m) d) memory, and O(b h n r) for vectors of r rows; listed pairs are kept by blocks of 128 x 128.

    Blocks of pairs that do not attend are skipped. Scores are computed in float32. The first call with any terms and
    sizes is compiled, which takes seconds; give batches few sizes.

    Raises:
        StructPEError: attention dropout is asked for, or deterministic algorithms, with a gradient.
    """
    if dropout:
        raise StructPEError(
            f"kernel 'flex' has no dropout of attention weights, and {dropout} is asked for; set attention dropout to "
            f"0, or use kernel 'tiled'"
        )
    if torch.are_deterministic_algorithms_enabled() and torch.is_grad_enabled():
        raise StructPEError(
            "kernel 'flex' sums gradients of tables in no fixed order, and deterministic algorithms are asked for; use "
            "kernel 'tiled'"
        )
    return _computed(_compiled(), q, k, v, terms)


def eager(q: Tensor, k: Tensor, v: Tensor, terms: Terms) -> Tensor:
    """What the kernel ``flex`` computes, on any device: for tests, without compilation, and with (b, h, n, m) scores.

    Raises:
        NotImplementedError: a gradient is asked for on a CPU; FlexAttention has none there.
    """
    from torch.nn.attention.flex_attention import flex_attention

    return _computed(flex_attention, q, k, v, terms)


def modifications(q: Tensor, k: Tensor, terms: Terms, captured: bool = False) -> tuple[Score | None, Masks | None]:
    """The ``score_mod`` of terms, and their ``mask_mod`` with the blocks that it leaves; None if not needed.

    Args:
        q: (b, h, n, d) after the maps.
        k: (b, h, m, d) after the maps, or the mixtures of keys.
        terms: without maps, projection and fields that the kernel does not support.
        captured: whether factors are part of ``score_mod``; otherwise they are part of longer heads.
    """
    scale = terms.scale / math.sqrt(q.shape[-1])
    shape = (q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    return score_of(q, k, terms, scale, captured), masks_of(terms, shape, BLOCK, q.device)


def block_mask(masks: Masks, n: int, m: int, size: int = BLOCK) -> Any:
    """The ``BlockMask`` of n queries and m keys."""
    from torch.nn.attention.flex_attention import BlockMask

    partly, wholly = (_ordered(each) for each in (masks.some & ~masks.whole, masks.whole))
    return BlockMask.from_kv_blocks(*partly, *wholly, BLOCK_SIZE=size, mask_mod=masks.mod, seq_lengths=(n, m))


def probe(device: torch.device | str, dtype: torch.dtype, width: int) -> Probe:
    """Compare small problems, with gradients of queries, keys, values and tables, with ``dense`` on a device.

    A result is kept: the next call with these arguments does not compute again.
    """
    where = torch.device(device)
    if dtype not in _CLOSE:
        return Probe(f"computes in {listed(_CLOSE)}, and this is {dtype}")
    if where.type != "cuda":
        return Probe(f"runs on cuda only, and this is {where.type}")
    if not torch.cuda.is_available():
        return Probe("runs on cuda only, and this machine has no such device")
    return _on_cuda(where, dtype, _width(width))


def enable(device: torch.device | str = "cuda", dtype: torch.dtype = torch.float32, width: int = 64) -> Probe:
    """Let ``auto`` take the kernel ``flex`` for this dtype and width of a head, if its :func:`probe` succeeds.

    Raises:
        StructPEError: the probe failed.
    """
    found = probe(device, dtype, width)
    if found.reason is not None:
        raise StructPEError(f"kernel 'flex' cannot be enabled for {dtype} and heads of {width}: it {found.reason}")
    _ENABLED.add((torch.device(device).type, dtype, _width(width)))
    return found


def disable() -> None:
    """Undo every :func:`enable`."""
    _ENABLED.clear()


def _computed(attention: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, terms: Terms) -> Tensor:
    """Attention by FlexAttention, compiled or not."""
    for change in terms.maps:
        q, k = change(q, k)
    k, v, terms = mixed(k, v, terms)
    n, m, d = q.shape[2], k.shape[2], v.shape[-1]
    if not (q.numel() and k.numel()):
        return v.new_zeros(*q.shape[:3], d)
    captured = bool(terms.gate) or terms.act is not None
    score_mod, masks = modifications(q, k, terms, captured)
    scale = terms.scale / math.sqrt(q.shape[-1])
    if terms.factors and not captured:
        q = torch.cat([scale * q, *(x.left.to(q.dtype).expand(*q.shape[:3], -1) for x in terms.factors)], -1)
        k = torch.cat([k, *(x.right.to(k.dtype).expand(*k.shape[:3], -1) for x in terms.factors)], -1)
        scale = 1.0
    q, k, v = (functional.pad(x, (0, _width(x.shape[-1]) - x.shape[-1])) for x in (q, k, v))
    blocks = None if masks is None else block_mask(masks, n, m)
    options = kernel_options(terms, q.dtype, captured)
    out: Tensor = attention(q, k, v, score_mod=score_mod, block_mask=blocks, scale=scale, kernel_options=options)
    return out[..., :d]


def kernel_options(terms: Terms, dtype: torch.dtype, captured: bool = False) -> dict[str, int] | None:
    """Options with which the kernel of a GPU compiles; None for PyTorch's own.

    The kernel loads what a score reads ahead, each table into shared memory of its own. In half precision three of
    them do not fit in that of an H200, so that from two on nothing is loaded ahead.

    Args:
        terms: what changes scores.
        dtype: of the queries.
        captured: whether factors are part of ``score_mod``.
    """
    tables = sum(len(getattr(terms, name)) for name in ("bias", "gate", "key", "query"))
    tables += 2 * sum(x.left.shape[-1] for x in terms.factors) if captured else 0
    return {"num_stages": 1} if dtype.itemsize == 2 and tables > 1 else None


def _width(d: int) -> int:
    """The next power of two, at least 16: the kernels of GPUs know no other."""
    return max(16, 1 << (d - 1).bit_length())


def _ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks a row has, and which, with these first."""
    found = blocks.to(torch.int32)
    return found.sum(-1, dtype=torch.int32), found.argsort(dim=-1, descending=True, stable=True).to(torch.int32)


@cache
def _compiled() -> Callable[..., Any]:
    from torch.nn.attention.flex_attention import flex_attention

    # Whole or not at all: what is not compiled would make all scores, without a word. Of sizes that may vary PyTorch
    # 2.13 makes wrong code on a CPU, if captured tensors share them.
    compiled = torch.compile(flex_attention, fullgraph=True, dynamic=False)

    def attention(*given: Any, **named: Any) -> Any:
        with torch._dynamo.config.patch(recompile_limit=_FORMS):
            return compiled(*given, **named)

    return attention


_FORMS = 64
"""How many forms and sizes are compiled; more are an error of PyTorch."""


@cache
def _on_cuda(device: torch.device, dtype: torch.dtype, width: int) -> Probe:
    with torch.enable_grad():
        return _probed(lambda *given: _computed(_compiled(), *given), device, dtype, width)


def _probed(
    compute: Callable[[Tensor, Tensor, Tensor, Terms], Tensor], device: torch.device, dtype: torch.dtype, width: int
) -> Probe:
    """Compare a way to compute attention with ``dense`` in float64: sizes below and above a block."""
    same = True
    for n, some in ((40, ("bias",)), (150, ("bias", "gate", "key", "query"))):
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


def _reference(q: Tensor, k: Tensor, v: Tensor, terms: Terms) -> Tensor:
    return KERNELS["dense"].compute(q, k, v, terms, 0.0)


_CLOSE = {torch.float64: 1e-9, torch.float32: 2e-3, torch.bfloat16: 5e-2, torch.float16: 1e-2}
"""How much may differ, of the largest number or of 1."""


def _problem(
    compute: Callable[[Tensor, Tensor, Tensor, Terms], Tensor],
    n: int,
    some: tuple[str, ...],
    device: torch.device,
    dtype: torch.dtype,
    width: int,
) -> dict[str, Tensor]:
    """The output and the gradients, in float64; one query attends to nothing, one key is padding."""
    generator = torch.Generator().manual_seed(n)

    def numbers(*shape: int) -> Tensor:
        # Rounded before they are widened, so that all precisions have the same numbers.
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
    terms = replace(Terms(**fields, mask=(mask,), causal=n > BLOCK), bias=(*fields["bias"], of_offsets))
    out = compute(given["queries"], given["keys"], given["values"], terms)
    leaves = {**given, **tables}
    grads = torch.autograd.grad((out * weights).sum(), list(leaves.values()))
    named = {f"gradient of the {name}": grad for name, grad in zip(leaves, grads, strict=True)}
    return {name: x.detach().double() for name, x in {"output": out, **named}.items()}
