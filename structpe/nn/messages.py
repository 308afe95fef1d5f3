"""Sums over neighbours, with their gradients: what all message passing is made of.

PyTorch's ``embedding_bag`` adds up rows in groups without making the rows first. Here both the sums and their gradients
are such: x_i' = sum_j w_ji x_j over 1,038,000 messages takes 4 ms for d = 64, where a gather and an ``index_add`` take
185 (one thread; ``experiments/speed/messages.py``).
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import embedding_bag

from structpe.data.neighbours import Neighbours

__all__ = ["along", "at_target", "received", "rectified", "spread"]


def spread(
    x: Float[Tensor, "N d"], near: Neighbours, weights: Float[Tensor, "E"] | None = None
) -> Float[Tensor, "N d"]:
    """x_i' = sum over the messages j -> i of w_ji x_j.

    Args:
        x: a vector per node.
        near: the messages.
        weights: of each message, without gradient; None for 1.
    """
    result: Tensor = _Spread.apply(x, near, weights)  # type: ignore[no-untyped-call]
    return result


def along(x: Float[Tensor, "N d"], near: Neighbours) -> Float[Tensor, "E d"]:
    """x_j for each message j -> i."""
    result: Tensor = _Along.apply(x, near)  # type: ignore[no-untyped-call]
    return result


def at_target(x: Float[Tensor, "N d"], near: Neighbours) -> Float[Tensor, "E d"]:
    """x_i for each message j -> i."""
    result: Tensor = _AtTarget.apply(x, near)  # type: ignore[no-untyped-call]
    return result


def received(messages: Float[Tensor, "E d"], near: Neighbours) -> Float[Tensor, "N d"]:
    """The sum of the messages to each node."""
    result: Tensor = _Received.apply(messages, near)  # type: ignore[no-untyped-call]
    return result


def rectified(x: Float[Tensor, "N d"], edges: Float[Tensor, "E d"], near: Neighbours) -> Float[Tensor, "N d"]:
    """x_i' = sum over the messages j -> i of max(0, x_j + e_ji); one vector per message is kept for the gradient."""
    result: Tensor = _Rectified.apply(x, edges, near)  # type: ignore[no-untyped-call]
    return result


class _Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, near: Neighbours, weights: Tensor | None) -> Tensor:
        ctx.near, ctx.weights = near, weights
        return _sums(x, near.source, near.starts, weights)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        near, weights = ctx.near, ctx.weights
        back = None if weights is None else weights[near.by_source]
        return _sums(grad, near.target_by_source, near.source_starts, back), None, None


class _Along(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, near: Neighbours) -> Tensor:
        ctx.near = near
        return x.index_select(0, near.source)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _sums(grad, ctx.near.by_source, ctx.near.source_starts, None), None


class _Received(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, messages: Tensor, near: Neighbours) -> Tensor:
        ctx.near = near
        return _all(messages, near)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad.index_select(0, ctx.near.target), None


class _Rectified(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, edges: Tensor, near: Neighbours) -> Tensor:
        messages = x.index_select(0, near.source).add_(edges).relu_()
        ctx.near = near
        ctx.save_for_backward(messages)
        return _all(messages, near)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (messages,), near = ctx.saved_tensors, ctx.near
        of_messages = torch.ops.aten.threshold_backward(grad.index_select(0, near.target), messages, 0)
        return _sums(of_messages, near.by_source, near.source_starts, None), of_messages, None


class _AtTarget(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, near: Neighbours) -> Tensor:
        ctx.near = near
        return x.index_select(0, near.target)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _all(grad, ctx.near), None


def _all(messages: Tensor, near: Neighbours) -> Tensor:
    """The sum of the messages to each node."""
    return _sums(messages, torch.arange(len(messages), device=messages.device), near.starts, None)


def _sums(rows: Tensor, which: Tensor, starts: Tensor, weights: Tensor | None) -> Tensor:
    """sum_k w_k rows[which_k] over each group of k."""
    if not len(which):  # embedding_bag refuses to look at a table of no row
        return rows.new_zeros(len(starts) - 1, rows.shape[1])
    weights = None if weights is None else weights.to(rows.dtype)
    return embedding_bag(
        which, rows.contiguous(), starts, mode="sum", per_sample_weights=weights, include_last_offset=True
    )
