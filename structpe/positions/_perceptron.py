"""Small networks: linear layers with rectifiers between them, and the same over a graph."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

__all__ = ["GraphIsomorphism", "around", "count_perceptron", "perceptron"]


def perceptron(widths: Sequence[int]) -> nn.Sequential:
    """Linear(w0, w1), ReLU, Linear(w1, w2), ReLU, ..., Linear, each with bias."""
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def count_perceptron(*widths: str) -> str:
    """Formula of its number of parameters."""
    return " + ".join(f"({a} + 1)*{b}" for a, b in pairwise(widths))


def around(neighbours: Tensor, x: Tensor, eps: Tensor) -> Tensor:
    """(b, n, ...) (1 + eps) x_i + sum_j w_ij x_j of x (b, n, ...), for weights w (b, n, n) and one number eps."""
    itself = torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
    return ((neighbours + (1 + eps) * itself) @ x.flatten(2)).view(x.shape)


class _Rectified(torch.autograd.Function):
    """relu((1 + eps) x_i + sum_j w_ij x_j + bias) of x (b, n, c); w has no gradient.

    The gradient of eps is one number, where PyTorch would compute that of the matrix w + (1 + eps) I. Sum and rectifier
    are one tensor.
    """

    @staticmethod
    def forward(ctx: Any, neighbours: Tensor, x: Tensor, eps: Tensor, bias: Tensor) -> Tensor:
        itself = torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
        weights = neighbours + (1 + eps) * itself
        out = torch.baddbmm(bias, weights, x).relu_()
        ctx.save_for_backward(weights, x, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, Tensor, Tensor]:
        weights, x, out = ctx.saved_tensors
        grad = torch.ops.aten.threshold_backward(grad, out, 0)
        of_eps = torch.dot(grad.flatten(), x.flatten().to(grad.dtype))  # under autocast, grad has fewer digits
        return None, weights.transpose(1, 2).to(grad.dtype) @ grad, of_eps, grad.sum((0, 1))


class GraphIsomorphism(nn.Module):
    """x_i <- MLP_l((1 + eps_l) x_i + sum of x_j over the neighbours j of i), for each layer l (GIN, Xu et al. 2019).

    MLP_l has one hidden layer; eps_l is learned. Edges count in both directions.

    Args:
        into: width of the input.
        hidden: width inside, and of every layer but the last.
        out: width of the output.
        layers: how many.
    """

    def __init__(self, into: int, hidden: int, out: int, layers: int) -> None:
        super().__init__()
        ends = [into, *[hidden] * (layers - 1), out]
        self.eps = nn.Parameter(torch.randn(layers))
        self.networks = nn.ModuleList(perceptron([a, hidden, b]) for a, b in pairwise(ends))

    def forward(self, x: Tensor, neighbours: Tensor) -> Tensor:
        """(b, n, ..., into) to (b, n, ..., out); ``neighbours`` (b, n, n) weighs the sum over them."""
        out: Tensor = self.last(self.before_last(x, neighbours))
        return out

    def before_last(self, x: Tensor, neighbours: Tensor) -> Tensor:
        """(b, n, ..., hidden): everything except the last linear layer.

        The last layer of a network, the sum over neighbours and the first layer of the next network are linear; the two
        layers are one product.
        """
        enter, _ = self.ends[0]
        first = around(neighbours, x, self.eps[0])
        # In place before the view: after it, the gradient would be copied.
        entered = functional.linear(first.flatten(0, -2), enter.weight, enter.bias).relu_()
        return self.after_first(entered.view(*x.shape[:-1], -1), neighbours)

    def after_first(self, x: Tensor, neighbours: Tensor) -> Tensor:
        """(b, n, ..., hidden) from what the first network has before its last layer, of the same shape."""
        for eps, ((_, before), (enter, _)) in zip(self.eps[1:], pairwise(self.ends), strict=True):
            joined = functional.linear(x, enter.weight @ before.weight, enter.weight @ before.bias)
            repeated = enter.bias.expand(*joined.shape[2:]).flatten()
            x = _Rectified.apply(neighbours, joined.flatten(2), eps, repeated).view(joined.shape)  # type: ignore[no-untyped-call]
        return x

    @property
    def ends(self) -> list[tuple[nn.Linear, nn.Linear]]:
        """The first and the last linear layer of each network."""
        networks = [cast(nn.Sequential, each) for each in self.networks]
        return [(cast(nn.Linear, each[0]), cast(nn.Linear, each[2])) for each in networks]

    @property
    def last(self) -> nn.Linear:
        """The last linear layer."""
        return self.ends[-1][1]

    @staticmethod
    def count(into: str, hidden: str, out: str, layers: str) -> str:
        """Formula of its number of parameters."""
        return f"{layers} + ({into} + 1)*{hidden} + ({layers} - 1)*2*({hidden} + 1)*{hidden} + ({hidden} + 1)*{out}"
