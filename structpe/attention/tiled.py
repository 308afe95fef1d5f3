"""Attention in tiles: any trainable term of pairs, at about the cost of attention without one, on any device.

Scores are computed tile by tile, forward and again backward, so that no tensor (b, h, n, m) is kept. PyTorch's fused
kernel would read a bias from such a tensor, and is not used at all if the bias needs a gradient.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from structpe.attention._folded import GATHERED
from structpe.attention._gather import gather_scalars, without_lists
from structpe.attention._mixtures import mixed
from structpe.attention._tile_work import Plan, Work
from structpe.attention.base import Call, kernel
from structpe.terms import Lookup, Terms, Toeplitz

__all__ = ["tiled"]


def _limits(call: Call) -> str | None:
    if call.traced:
        return "is not traced by torch.compile"
    if call.dtype not in (torch.float32, torch.float64):
        return f"computes in float32, and this is {call.dtype}"
    return None


def _cost(call: Call) -> float:
    b, h, _, m, d = call.shape
    by_row = 300.0 if "product" in call.used else 0.0  # a product of matrices for each row
    by_row += 0.5 * d * call.rows / max(m, 1)  # each query meets each row
    fixed = 380_000 + 2_000 * b * h
    return call.time(fixed, 6.5 + by_row, 0.24, gathered=(300_000, 3.0), gpu=(1e7, 0.2, 0.05))


@kernel(
    "tiled",
    supports="maps factors bias gate mask key query product value act scale causal projection",
    cost=_cost,
    limits=_limits,
)
def tiled(q: Tensor, k: Tensor, v: Tensor, terms: Terms, dropout: float = 0.0) -> Tensor:
    """O(b h (n + m) d) memory and, for tables, O(b h n r) for r rows in use; no tensor (b, h, n, m).

    Gradients of tables are summed in a fixed order. Half precision is computed in float32. Dropout is drawn tile by
    tile from a seed, and drawn again in the backward pass.

    Raises:
        RuntimeError: the gradient of a gradient is asked for.
    """
    for change in terms.maps:
        q, k = change(q, k)
    k, v, terms = mixed(k, v, terms)
    terms = without_lists(terms, q.shape[0], q.shape[2], k.shape[2])
    plan, tensors = _plan(q, k, terms, dropout)
    wide = torch.promote_types(q.dtype, torch.float32)
    out: Tensor = _Tiled.apply(  # type: ignore[no-untyped-call]
        plan, *(x.to(wide).contiguous() for x in (q, k, v)), *(x.to(wide) for x in tensors)
    )
    return out.to(v.dtype)


def _plan(q: Tensor, k: Tensor, terms: Terms, dropout: float) -> tuple[Plan, list[Tensor]]:
    """The plan of a call, and its tensors that may need a gradient, with the rows of each structure for tables."""
    kinds: list[tuple[str, Tensor | Toeplitz | None]] = []
    tensors: list[Tensor] = []
    for name in ("key", "query", "product", "gate", "bias", "value"):
        for term in getattr(terms, name):
            x = gather_scalars(term) if name == "bias" and _once(term, q) else term
            kinds.append((name, x.index if isinstance(x, Lookup) else None))
            tensors.append(x.kept("local", x.local).movedim(2, 1) if isinstance(x, Lookup) else x)
    for factor in terms.factors:
        kinds += [("left", None), ("right", None)]
        tensors += [factor.left, factor.right]
    scale = terms.scale / math.sqrt(q.shape[-1])
    seed = int(torch.randint(1 << 62, ())) if dropout else 0
    return Plan(kinds, terms.mask, scale, terms.act, terms.causal, dropout, seed), tensors


def _once(bias: Lookup | Tensor, q: Tensor) -> bool:
    """Whether to gather a bias for all tiles at once: structures or layers share it, and it is not large."""
    if not isinstance(bias, Lookup):
        return False
    structures = max(len(bias.rows), bias.index.shape[0])
    size = structures * math.prod(bias.index.shape[1:]) * bias.table.shape[1]
    return (bias.shared or structures < len(q)) and size <= GATHERED


class _Tiled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, plan: Plan, q: Tensor, k: Tensor, v: Tensor, *tensors: Tensor) -> Tensor:
        ctx.plan = plan
        work = Work(plan, q, k, v, tensors)
        ctx.count = len(tensors)
        ctx.save_for_backward(q, k, v, *tensors, *(work.keep_sums() if any(ctx.needs_input_grad) else ()))
        out = q.new_zeros(*q.shape[:3], v.shape[-1])
        flat = out.flatten(0, 1)
        for tile in work.tiles():
            work.mix(tile, tile.of_queries(flat))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, *rest = ctx.saved_tensors
        work = Work(ctx.plan, q, k, v, rest[: ctx.count], ctx.needs_input_grad[4:])
        work.read_sums(rest[ctx.count :])
        grads = [torch.zeros_like(x) for x in (q, k, v)]
        flat = grad.contiguous().flatten(0, 1)
        for tile in work.tiles():
            work.back(tile, flat, *(x.flatten(0, 1) for x in grads))
        return None, *grads, *(each.grad for each in work.quantities)
