"""A kernel in Triton for biases of pairs, with gradients, in O(n) memory: for CUDA.

It reads a small integer per pair and the table of a head, and goes block by block as FlashAttention (Dao et al. 2022;
Dao 2023) does, so scores are never written; the backward pass computes them again. A bias that is a tensor already, as
in triangle attention (Jumper et al. 2021), is read as it is, and its gradient is summed over the structures that share
it.

Every gradient is summed in a fixed order, so two runs give the same bits. Summing the gradient of a table takes time in
proportion to the rows that a structure uses.

Shapes: b structures, h heads, n queries, m keys, c and d widths of queries and values, r rows that a structure uses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from structpe.attention.attend import Call, kernel, padded_width
from structpe.attention.gather import gather_scalars, longer, total, without_lists
from structpe.errors import StructPEError, listed
from structpe.terms import Lookup, Terms, Toeplitz

__all__ = ["triton"]

BLOCK = 64
"""Queries, and keys, of a block."""
ROWS = 64
"""Rows of a table whose gradients one program sums."""
WIDEST = 256
"""The largest width of a head, with factors: a block of queries, one of keys and one of values are in fast memory."""
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def _limits(call: Call) -> str | None:
    if call.dropout:
        return "has no dropout of attention weights"
    if call.traced:
        return "is compiled on its own, not as part of a compiled model"
    if call.shape[4] > WIDEST:
        return f"has no room for heads wider than {WIDEST}"
    return None


def _cost(call: Call) -> float:
    # An estimate until it is measured: FlashAttention's products, a read per pair, and the sums of a table.
    return call.time(100_000, 5.0, 0.2, gathered=(0.0, 1.0), gpu=(1e6, 0.01, 0.01))


@kernel(
    "triton",
    supports="maps factors bias mask scale causal",
    cost=_cost,
    limits=_limits,
    devices="cuda",
    probed="bias",
)
def triton(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float = 0.0) -> Tensor:
    """O(b h (n + m) d) memory for one index of pairs; gradients in a fixed order.

    Biases of the same pairs are added before the kernel reads them; of biases of several indices, all but the first are
    written out as one tensor (b or 1, h or 1, n, m). Scores, sums and gradients are of float32.

    Raises:
        StructPEError: attention dropout is asked for; the dtype is not float32, bfloat16 or float16; a head is wider
            than 256; or Triton is not installed.
        RuntimeError: the gradient of a gradient is asked for.
    """
    if dropout:
        wrong = f"kernel 'triton' has no dropout of attention weights, and {dropout} is asked for"
        raise StructPEError(f"{wrong}; set attention dropout to 0, or use kernel 'tiled'")
    if q.dtype not in DTYPES:
        raise StructPEError(f"kernel 'triton' computes in {listed(DTYPES)}, and this is {q.dtype}; use kernel 'tiled'")
    for change in terms.maps:
        q, k = change(q, k)
    terms = without_lists(terms, q.shape[0], q.shape[2], k.shape[2])
    q, k, scale = longer(q, k, terms.scale / math.sqrt(q.shape[-1]), terms)
    if max(q.shape[-1], v.shape[-1]) > WIDEST:
        wrong = f"kernel 'triton' has no room for heads wider than {WIDEST}; with factors these have {q.shape[-1]}"
        raise StructPEError(f"{wrong}; use kernel 'tiled'")
    if not (q.numel() and k.numel()):
        return (q.sum() + k.sum() + v.sum()) * 0 + v.new_zeros(*q.shape[:3], v.shape[-1])
    table, index, bias = _biases(terms)
    mask = reduce(torch.logical_and, terms.mask) if terms.mask else None
    call = _Call(index, mask, scale, terms.causal)
    out: Tensor = _Attention.apply(call, q, k.to(q.dtype), v.to(q.dtype), table, bias)  # type: ignore[no-untyped-call]
    return out.to(v.dtype)


def _biases(terms: Terms) -> tuple[Tensor | None, Tensor | Toeplitz | None, Tensor | None]:
    """The table (b or 1, h or 1, r) and the index of the biases of one index, and the sum of all other biases."""
    lookups = [x for x in terms.bias if isinstance(x, Lookup)]
    if not lookups:
        return None, None, total([gather_scalars(x) for x in terms.bias])
    first = max(lookups, key=lambda x: x.index.shape[0])  # structures that share an index share its written tensor
    same = [x for x in lookups if x.index is first.index and x.rows.shape == first.rows.shape]
    others = [gather_scalars(x) for x in terms.bias if all(x is not each for each in same)]
    return total([x.cached("local", x.local).movedim(2, 1) for x in same]), first.index, total(others)


@dataclass(frozen=True)
class _Call:
    """What needs no gradient: the index of pairs, the mask, the scale, and whether attention is causal."""

    index: Tensor | Toeplitz | None
    mask: Tensor | None
    scale: float
    causal: bool


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, call: _Call, q: Tensor, k: Tensor, v: Tensor, table: Tensor | None, bias: Tensor | None
    ) -> Tensor:
        given = _Given.of(call, q, k, v, table, bias)
        out = q.new_empty(*q.shape[:3], v.shape[-1])
        sums = q.new_empty(q.shape[:3], dtype=torch.float32)
        given.run("forward", given.blocks(q), out, sums)
        ctx.call = call
        ctx.save_for_backward(q, k, v, table, bias, out, sums)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, table, bias, out, sums = ctx.saved_tensors
        given = _Given.of(ctx.call, q, k, v, table, bias)
        grad = grad.contiguous()
        told = grad, sums, (grad.float() * out.float()).sum(-1)
        grads = [torch.empty_like(x, memory_format=torch.contiguous_format) for x in (q, k, v)]
        given.run("backward_keys", given.blocks(k), *told, *grads[1:])
        of_table = of_bias = None
        rows = table.shape[2] if table is not None and ctx.needs_input_grad[4] else 0
        parts = q.new_empty(*q.shape[:2], given.blocks(q), rows, dtype=torch.float32)
        given.run("backward_queries", given.blocks(q), *told, grads[0], parts, rows=rows)
        if table is not None and rows:
            of_table = parts.sum(2).sum_to_size(table.shape).to(table.dtype)
        if bias is not None and ctx.needs_input_grad[5]:
            of_bias = given.gradient_of_bias(bias, told)
        return None, *grads, of_table, of_bias


@dataclass(frozen=True)
class _Given:
    """What every kernel reads: tensors, and how it finds the number of a pair in them."""

    qkv: tuple[Tensor, Tensor, Tensor]
    pairs: tuple[Tensor, ...]
    strides: tuple[tuple[int, ...], ...]
    options: dict[str, Any]
    scale: float

    @classmethod
    def of(cls, call: _Call, q: Tensor, k: Tensor, v: Tensor, table: Tensor | None, bias: Tensor | None) -> _Given:
        """From the arguments of :class:`_Attention`."""
        (b, h, n, _), m = q.shape, k.shape[2]
        nothing = q.new_empty(1, dtype=torch.float32)
        pairs = [nothing] * 4
        strides: list[tuple[int, ...]] = [(0, 0), (0, 0, 0), (0,) * 4, (0,) * 4]
        if table is not None:
            pairs[0] = table.float().contiguous().expand(b, h, -1)
            strides[0] = pairs[0].stride()[:2]
            pairs[1], strides[1] = _of_index(call.index, b)
        if bias is not None:
            pairs[2] = bias.float().expand(b, h, n, m)
            strides[2] = pairs[2].stride()
        if call.mask is not None:  # Triton reads no bits
            pairs[3] = call.mask.view(torch.int8).expand(b, h, n, m)
            strides[3] = pairs[3].stride()
        options = {
            "TABLE": table is not None,
            "BIAS": bias is not None,
            "MASK": call.mask is not None,
            "CAUSAL": call.causal,
            "PRECISION": "ieee" if q.dtype == torch.float32 else "tf32",
            "QUERIES": BLOCK,
            "KEYS": BLOCK,
            "C": padded_width(q.shape[3]),
            "D": padded_width(v.shape[3]),
        }
        return cls((q.contiguous(), k.contiguous(), v.contiguous()), tuple(pairs), tuple(strides), options, call.scale)

    def blocks(self, x: Tensor) -> int:
        """Number of blocks of queries or keys."""
        return -(-x.shape[2] // BLOCK)

    def run(self, name: str, blocks: int, *told: Tensor, rows: int | None = None) -> None:
        """Run a kernel, with a program for each block of each structure and head.

        Args:
            name: of the kernel.
            blocks: of queries or keys.
            told: what it reads and writes besides.
            rows: number of rows of the table whose gradient it sums, a program for each ``ROWS``; None if the kernel
                is not the one that does.
        """
        q, k, v = self.qkv
        b, h, n, c = q.shape
        grid: tuple[int, ...] = blocks, b * h
        sizes: tuple[float, ...] = (h, n, k.shape[2], c, v.shape[3], self.scale)
        options = self.options
        if rows is not None:
            grid, sizes = (*grid, max(1, -(-rows // ROWS))), (*sizes, rows)
            options = options | {"ROWS": min(ROWS, padded_width(rows)) if rows else 0}
        getattr(_kernels(), name)[grid](*self.qkv, *told, self.pairs, self.strides, *sizes, **options)

    def gradient_of_bias(self, bias: Tensor, told: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """The gradient of a bias that is a tensor, of its shape."""
        q, k, v = self.qkv
        (b, h, n, c), m = q.shape, k.shape[2]
        one_structure, one_head = bias.shape[0] < b, bias.shape[1] < h
        made = q.new_empty(1 if one_structure else b, 1 if one_head else h, n, m, dtype=torch.float32)
        grid = self.blocks(q), self.blocks(k), made.shape[0] * made.shape[1]
        sizes = b, h, n, m, c, v.shape[3], self.scale
        alike = {"ONE_STRUCTURE": one_structure, "ONE_HEAD": one_head}
        _kernels().backward_bias[grid](
            *self.qkv, *told, made, self.pairs, self.strides, *sizes, **self.options, **alike
        )
        return made.sum_to_size(bias.shape).to(bias.dtype)


def _of_index(index: Tensor | Toeplitz | None, b: int) -> tuple[Tensor, tuple[int, int, int]]:
    """A tensor, and the strides by structure, query and key from its first element to the index of a pair."""
    if isinstance(index, Toeplitz):
        # Row by row from the first query on, diagonals are windows that step back.
        diagonals = index.diagonals.expand(b, -1)
        across, along = diagonals.stride()
        return diagonals[:, index.n - 1 :], (across, -along, along)
    assert index is not None  # it comes with its table
    whole = index.expand(b, -1, -1)
    across, down, along = whole.stride()
    return whole, (across, down, along)


def _kernels() -> Any:
    """The module of the kernels.

    Raises:
        StructPEError: Triton is not installed.
    """
    try:
        from structpe.attention import _triton_kernels
    except ImportError as error:
        wrong = f"kernel 'triton' needs Triton, which cannot be imported ({error})"
        raise StructPEError(f"{wrong}; it comes with PyTorch for CUDA: install that, or use kernel 'auto'") from None
    return _triton_kernels
