"""Small networks that position models learn: perceptrons, networks over a graph, norms, Gaussian bases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from structpe.dropout import Dropout
from structpe.encodings.base import Encoding
from structpe.errors import PositionError
from structpe.positions.batch import of_arity
from structpe.structure import path

__all__ = [
    "AttentionNetwork",
    "BatchNorm",
    "GaussianNetwork",
    "GraphIsomorphism",
    "around",
    "bells",
    "concatenated",
    "count_perceptron",
    "pair_vector_width",
    "perceptron",
    "position_width",
    "rectified",
]


def perceptron(widths: Sequence[int]) -> nn.Sequential:
    """Linear(w0, w1), ReLU, Linear(w1, w2), ReLU, ..., Linear, each with bias."""
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def count_perceptron(*widths: str) -> str:
    """Formula of its number of parameters."""
    return " + ".join(f"({a} + 1)*{b}" for a, b in pairwise(widths))


def rectified(before: int, p: int, layers: int) -> nn.Sequential:
    """GraphGPS's network of node statistics: layers with a rectifier after each, inner ones of width 2p, the last p."""
    widths = [before, *[2 * p] * (layers - 1), p]
    return nn.Sequential(*(nn.Sequential(nn.Linear(a, b), nn.ReLU()) for a, b in pairwise(widths)))


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


class AttentionNetwork(nn.Module):
    """Multi-head attention of each of k vectors to all: (..., k, w) to (..., k, w).

    Args:
        width: w.
        heads: how many.
        head: width of one.
        dropout: of the weights.
        bias: whether queries, keys and values have one.
    """

    def __init__(self, width: int, heads: int, head: int, dropout: float, bias: bool = True) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, heads * head, bias=bias) for _ in range(3))
        self.dropout = Dropout(dropout)
        self.out = nn.Linear(heads * head, width)

    def forward(self, x: Tensor, there: Tensor | None = None) -> Tensor:
        """Of x (..., k, w) to those that are ``there`` (..., k), by default all; if none is, to all."""
        projections = (self.query, self.key, self.value)
        q, k, v = (project(x).unflatten(-1, (self.heads, -1)).transpose(-3, -2) for project in projections)
        # For a few vectors, two small products are faster than a fused kernel.
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if there is not None:  # a row that is masked whole would be NaN
            masked = ~there & there.any(-1, keepdim=True)
            scores = scores.masked_fill(masked[..., None, None, :], -math.inf)
        out: Tensor = self.out((self.dropout(scores.softmax(-1)) @ v).transpose(-3, -2).flatten(-2))
        return out


_MOMENTUM, _EPSILON = 0.1, 1e-5


class BatchNorm(nn.Module):
    """Each channel to mean 0 and variance 1 over all real units of the batch, then scaled and shifted.

    Padding enters neither the statistics nor their running averages. Evaluation uses the running averages, and so does
    a training step with fewer than two units, which have no variance.

    Args:
        width: number of channels, c.
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        """(..., c) to (..., c); ``present`` (...) marks the real units; the output is 0 at all others."""
        if not self.training:  # each unit separately: their number must not matter to an exported graph
            every = self._normed(x.flatten(0, -2), drawn=False).view_as(x)
            return torch.where(present[..., None], every, 0)
        if torch.compiler.is_compiling():
            return self._weighted(x, present[..., None])
        if bool(present.all()):
            return self._normed(x.flatten(0, -2), drawn=present.numel() > 1).view_as(x)
        real = x[present]
        return torch.zeros_like(x).index_put((present,), self._normed(real, drawn=len(real) > 1))

    def _normed(self, x: Tensor, drawn: bool) -> Tensor:
        return functional.batch_norm(x, self.mean, self.variance, self.weight, self.bias, drawn, _MOMENTUM, _EPSILON)

    def _weighted(self, x: Tensor, real: Tensor) -> Tensor:
        """The same by sums over all places, as a compiled graph cannot depend on how many units are real."""
        axes, count = tuple(range(x.ndim - 1)), real.sum()
        mean = x.where(real, 0).sum(axes) / count.clamp(min=1)
        variance = (x - mean).square().where(real, 0).sum(axes) / count.clamp(min=1)
        drawn = count > 1
        with torch.no_grad():
            for kept, new in ((self.mean, mean), (self.variance, variance * count / (count - 1).clamp(min=1))):
                kept.add_(torch.where(drawn, _MOMENTUM * (new - kept), 0))
        mean, variance = torch.where(drawn, mean, self.mean), torch.where(drawn, variance, self.variance)
        return ((x - mean) * torch.rsqrt(variance + _EPSILON) * self.weight + self.bias).where(real, 0)


def bells(x: Tensor, means: Tensor, widths: Tensor, least: float) -> Tensor:
    """(R, K) exp(-((x - m_k) / v_k)^2 / 2) / (sqrt(2 pi) v_k) of x (R,),  v_k = |w_k| + least.

    At least in float32: narrow bells need the digits. What is less than about 1e-30 there is 0: processors compute with
    subnormal numbers, which such a bell or its products would soon be, ten times as slowly.
    """
    exact = torch.promote_types(means.dtype, torch.float32)
    means, widths = means.to(exact), widths.to(exact).abs() + least
    exponents = ((x.to(exact)[:, None] - means) / widths).square() * -0.5
    seen = functional.threshold(exponents, 0.8 * math.log(torch.finfo(exact).tiny), -math.inf)
    heights: Tensor = seen.exp() / (math.sqrt(2 * math.pi) * widths)
    return heights


class GaussianNetwork(nn.Module):
    """(R, h) W_2 gelu(W_1 [g; marks] + c_1) + c_2 of the numbers and marks (R, 1 + r) of distinct values.

    g are K :func:`bells` of the number, their means and widths learned from U(0, 3) on; 0 for a value that a mark says
    is not a number. W_1 is (K, K + r).

    Args:
        kernels: K.
        marks: r.
        heads: h.
    """

    least = 1e-2

    def __init__(self, kernels: int, marks: int, heads: int) -> None:
        super().__init__()
        self.means, self.widths = (nn.Parameter(torch.empty(kernels).uniform_(0, 3)) for _ in range(2))
        self.hidden, self.out = nn.Linear(kernels + marks, kernels), nn.Linear(kernels, heads)

    def forward(self, inputs: Tensor) -> Tensor:
        marks = inputs[:, 1:]
        near = bells(inputs[:, 0], self.means, self.widths, self.least).to(inputs.dtype)
        basis = torch.cat([near * (1 - marks.sum(1, keepdim=True)), marks], dim=1)
        out: Tensor = self.out(functional.gelu(self.hidden(basis)))
        return out

    @staticmethod
    def count(kernels: str, marks: str, heads: str) -> str:
        """Formula of its number of parameters."""
        return f"3*{kernels} + ({kernels} + {marks})*{kernels} + ({kernels} + 1)*{heads}"


def concatenated(x: Tensor, position: Tensor) -> Tensor:
    """cat[x without its last p channels, position] from x (b, n, d) and position (b, n, p).

    Authors who concatenate embed content in d - p channels; here the last p of d are overwritten, which is the same
    model. In a sum of models, those before this one lose these channels.
    """
    kept = x[..., : x.shape[-1] - position.shape[-1]]
    # The positions of one structure may serve several rows.
    return torch.cat([kept, position.to(x.dtype).expand(len(x), -1, -1)], dim=-1)


def position_width(model: str, width: int, of_all: int) -> int:
    """The width p of a position; it must leave channels for content.

    Raises:
        PositionError: it does not.
    """
    if not 0 < width < of_all:
        raise PositionError(
            f"position model {model!r} uses {width} of {of_all} channels and must leave some for the content; "
            f"give 1 to {of_all - 1}, or a wider model"
        )
    return width


def pair_vector_width(model: str, encoding: Encoding) -> int:
    """How many numbers an encoding of arity 2 gives each pair, found by encoding a short path.

    Raises:
        PositionError: it gives one number, not a vector, or is of single units.
    """
    shape = of_arity(model, encoding, 2).one(path(["a", "b"])).values.shape
    if len(shape) != 2:
        raise PositionError(
            f"position model {model!r} needs a vector per pair of units (rrwp, ...); {encoding.name!r} gives one number"
        )
    return int(shape[1])
