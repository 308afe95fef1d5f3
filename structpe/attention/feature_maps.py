"""Feature maps, which replace the exponential of a score and make attention linear (``Terms.feature_map``).

A feature map f maps each row (d) of queries and keys to a row of non-negative numbers; f(q).f(k) is the weight of a
pair.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from structpe.errors import PositionError

__all__ = ["PositiveFeatures", "elu_plus_one", "orthogonal"]


def elu_plus_one(x: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows d"]:
    """f(x) = elu(x) + 1: x + 1 above zero, e^x below (Katharopoulos et al. 2020, eq. 7).

    PyTorch's elu is several times slower on views such as heads, and in float32 its elu(x) + 1 is 0 below about -17.
    """
    if torch.compiler.is_compiling():  # the compiler does not trace functions with a forward gradient of their own
        return x.clamp(max=0).exp() + x.relu()
    mapped: Tensor = _EluPlusOne.apply(x)  # type: ignore[no-untyped-call]
    return mapped


class _EluPlusOne(torch.autograd.Function):
    """f' = min(f, 1): only f needs to be stored."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.clamp(max=0).exp_().add_(x.clamp(min=0))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (f,) = ctx.saved_tensors
        grown: Tensor = gradient * f.clamp(max=1)
        return grown

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        (f,) = ctx.saved_tensors
        moved: Tensor = tangent * f.clamp(max=1)
        return moved


class PositiveFeatures(nn.Module):
    """f(x)_r = exp(w_r.y - |y|^2 / 2) / sqrt(R), y = x / d^(1/4): the mean of f(q).f(k) is exp(q.k / sqrt(d)).

    FAVOR+ (Choromanski et al. 2021, lemma 1 and section 2.4): w (R, d) are drawn from N(0, 1), and each block of d rows
    is orthogonal. Attention with it approaches softmax attention as R grows.

    As in the authors' code, the largest exponent of a head is subtracted before the exponential, which cancels in
    attention. The code does this separately for each query, which is not possible with one map for queries and keys,
    and adds 1e-6 to every feature, with which it would not cancel exactly.

    Args:
        width: d, the width of a head.
        features: R, the number of features.
        seed: seed of the generator of w; :meth:`draw` draws others.

    Raises:
        PositionError: the width or the number of features is below 1.
    """

    directions: Tensor

    def __init__(self, width: int, features: int = 256, seed: int = 0) -> None:
        super().__init__()
        if width < 1 or features < 1:
            raise PositionError(f"random features have a width and a number of 1 or more, not {width} and {features}")
        self.register_buffer("directions", orthogonal(features, width, torch.Generator().manual_seed(seed)))

    def draw(self, generator: torch.Generator) -> None:
        """Draw new directions from a generator on the CPU."""
        features, width = self.directions.shape
        self.directions = orthogonal(features, width, generator).to(self.directions)

    def forward(self, x: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows r"]:
        """The features of each row."""
        features, width = self.directions.shape
        y = x / width**0.25
        exponents = y @ self.directions.to(x.dtype).T - y.square().sum(-1, keepdim=True) / 2
        highest = exponents.detach().amax(dim=tuple(range(-min(2, x.ndim), 0)), keepdim=True)
        return torch.exp(exponents - highest) / math.sqrt(features)


def orthogonal(rows: int, width: int, generator: torch.Generator) -> Float[Tensor, "rows width"]:
    """Rows from N(0, 1), with orthogonal blocks of ``width`` rows: directions by QR, lengths drawn separately.

    The solver chooses the signs in QR; here they are undone, which makes directions uniform (not in the authors' code).
    """
    directions = torch.cat([_directions(width, generator) for _ in range(-(-rows // width))])[:rows]
    lengths = torch.randn(rows, width, generator=generator, dtype=torch.float64).norm(dim=1, keepdim=True)
    scaled: Tensor = directions * lengths
    return scaled.float()


def _directions(width: int, generator: torch.Generator) -> Tensor:
    q, r = torch.linalg.qr(torch.randn(width, width, generator=generator, dtype=torch.float64))
    directions: Tensor = (q * r.diagonal().sign()).T
    return directions
