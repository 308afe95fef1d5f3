"""Sums over neighbours and their gradients, the primitives of message passing.

PyTorch's ``embedding_bag`` sums groups of rows without gathering them first. Here both the sums and their gradients use
it: x_i' = sum_j w_ji x_j over 1,038,000 messages takes 4 ms for d = 64, where a gather and an ``index_add`` take
185 (one thread; ``experiments/speed/propagation.py``).
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import embedding_bag

from structpe.data.adjacency import CSRAdjacency

__all__ = ["gather", "gather_target", "propagate", "propagate_rectified", "propagate_weighted", "scatter"]

CHUNK = 1 << 12
"""Messages whose products a CPU computes at a time: for a million of d = 64, four times as fast as all at once."""


def propagate(x: Float[Tensor, "N d"], adjacency: CSRAdjacency) -> Float[Tensor, "N d"]:
    """x_i' = sum over the messages j -> i of x_j."""
    result: Tensor = _Propagate.apply(x, adjacency)  # type: ignore[no-untyped-call]
    return result


def propagate_weighted(
    x: Float[Tensor, "N d"], weights: Float[Tensor, "E"], adjacency: CSRAdjacency
) -> Float[Tensor, "N d"]:
    """x_i' = sum over the messages j -> i of w_ji x_j."""
    result: Tensor = _PropagateWeighted.apply(x, weights, adjacency)  # type: ignore[no-untyped-call]
    return result


def gather(x: Float[Tensor, "N d"], adjacency: CSRAdjacency) -> Float[Tensor, "E d"]:
    """x_j for each message j -> i."""
    result: Tensor = _Gather.apply(x, adjacency)  # type: ignore[no-untyped-call]
    return result


def gather_target(x: Float[Tensor, "N d"], adjacency: CSRAdjacency) -> Float[Tensor, "E d"]:
    """x_i for each message j -> i."""
    result: Tensor = _GatherTarget.apply(x, adjacency)  # type: ignore[no-untyped-call]
    return result


def scatter(messages: Float[Tensor, "E d"], adjacency: CSRAdjacency) -> Float[Tensor, "N d"]:
    """The sum of the messages to each node."""
    result: Tensor = _Scatter.apply(messages, adjacency)  # type: ignore[no-untyped-call]
    return result


def propagate_rectified(
    x: Float[Tensor, "N d"], edges: Float[Tensor, "E d"], adjacency: CSRAdjacency
) -> Float[Tensor, "N d"]:
    """x_i' = sum over the messages j -> i of max(0, x_j + e_ji); one vector per message is kept for the gradient."""
    result: Tensor = _PropagateRectified.apply(x, edges, adjacency)  # type: ignore[no-untyped-call]
    return result


class _Propagate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, adjacency: CSRAdjacency) -> Tensor:
        ctx.adjacency = adjacency
        return _sums(x, adjacency.source, adjacency.starts)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _sums(grad, ctx.adjacency.target_by_source, ctx.adjacency.source_starts), None


class _PropagateWeighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weights: Tensor, adjacency: CSRAdjacency) -> Tensor:
        ctx.adjacency = adjacency
        ctx.save_for_backward(x, weights)
        return _sums(x, adjacency.source, adjacency.starts, weights)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (x, weights), there = ctx.saved_tensors, ctx.adjacency
        of_x = _sums(grad, there.target_by_source, there.source_starts, weights.index_select(0, there.by_source))
        return of_x, _products(x, there.source, grad, there.target), None


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, adjacency: CSRAdjacency) -> Tensor:
        ctx.adjacency = adjacency
        return x.index_select(0, adjacency.source)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _sums(grad, ctx.adjacency.by_source, ctx.adjacency.source_starts), None


class _Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, messages: Tensor, adjacency: CSRAdjacency) -> Tensor:
        ctx.adjacency = adjacency
        return _all(messages, adjacency)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad.index_select(0, ctx.adjacency.target), None


class _PropagateRectified(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, edges: Tensor, adjacency: CSRAdjacency) -> Tensor:
        messages = x.index_select(0, adjacency.source).add_(edges).relu_()
        ctx.adjacency = adjacency
        ctx.save_for_backward(messages)
        return _all(messages, adjacency)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (messages,), adjacency = ctx.saved_tensors, ctx.adjacency
        of_messages = torch.ops.aten.threshold_backward(grad.index_select(0, adjacency.target), messages, 0)
        return _sums(of_messages, adjacency.by_source, adjacency.source_starts), of_messages, None


class _GatherTarget(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, adjacency: CSRAdjacency) -> Tensor:
        ctx.adjacency = adjacency
        return x.index_select(0, adjacency.target)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _all(grad, ctx.adjacency), None


def _all(messages: Tensor, adjacency: CSRAdjacency) -> Tensor:
    """The sum of the messages to each node."""
    return _sums(messages, torch.arange(len(messages), device=messages.device), adjacency.starts)


def _products(x: Tensor, first: Tensor, y: Tensor, second: Tensor) -> Tensor:
    """x[first_k] . y[second_k] for each k; on a CPU in chunks, whose gathered rows stay in its caches."""
    if x.device.type != "cpu" or torch.compiler.is_compiling():  # a compiled graph would fix the number of chunks
        return torch.bmm(x.index_select(0, first)[:, None], y.index_select(0, second)[:, :, None]).flatten()
    pairs = zip(torch.split(first, CHUNK), torch.split(second, CHUNK), strict=True)
    each = [torch.bmm(x.index_select(0, i)[:, None], y.index_select(0, j)[:, :, None]).flatten() for i, j in pairs]
    return torch.cat(each)


def _sums(rows: Tensor, which: Tensor, starts: Tensor, weights: Tensor | None = None) -> Tensor:
    """sum_k w_k rows[which_k] over each group of k; w_k is 1 without weights."""
    if not len(which):  # embedding_bag does not accept an empty table
        return rows.new_zeros(len(starts) - 1, rows.shape[1])
    options: dict[str, Any] = {"mode": "sum", "include_last_offset": True, "per_sample_weights": weights}
    return embedding_bag(which, rows.contiguous(), starts, **options)
