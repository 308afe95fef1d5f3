"""Small networks: linear layers with rectifiers between them, and the same over a graph."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

__all__ = ["GraphIsomorphism", "count_perceptron", "perceptron"]


def perceptron(widths: Sequence[int]) -> nn.Sequential:
    """Linear(w0, w1), ReLU, Linear(w1, w2), ReLU, ..., Linear, each with bias."""
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def count_perceptron(*widths: str) -> str:
    """Formula of its number of parameters."""
    return " + ".join(f"({a} + 1)*{b}" for a, b in pairwise(widths))


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
        for eps, network in zip(self.eps, self.networks, strict=True):
            messages = (neighbours @ x.flatten(2)).view(x.shape)
            x = network((1 + eps) * x + messages)
        return x

    @staticmethod
    def count(into: str, hidden: str, out: str, layers: str) -> str:
        """Formula of its number of parameters."""
        return f"{layers} + ({into} + 1)*{hidden} + ({layers} - 1)*2*({hidden} + 1)*{hidden} + ({hidden} + 1)*{out}"
