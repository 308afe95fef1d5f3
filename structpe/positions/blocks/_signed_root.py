"""The square root of a number with its sign."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

__all__ = ["signed_root"]


def signed_root(z: Tensor) -> Tensor:
    """rho(z) = sgn(z) sqrt(|z|) (Ma et al. 2023, section 3.2), whose gradient at 0 is set to 0.

    sqrt(relu(z)) - sqrt(relu(-z)), which has the same gradient, takes six passes over z in place of three; the compiler
    makes one of them, and does not trace functions with a forward gradient of their own.
    """
    if torch.compiler.is_compiling():
        return z.relu().sqrt() - (-z).relu().sqrt()
    rooted: Tensor = _SignedRoot.apply(z)  # type: ignore[no-untyped-call]
    return rooted


class _SignedRoot(torch.autograd.Function):
    """rho' = 1 / (2 |rho|), so that only rho is kept."""

    generate_vmap_rule = True

    @staticmethod
    def forward(z: Tensor) -> Tensor:
        return z.abs().sqrt_().copysign_(z)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * _slope(*ctx.saved_tensors)

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        return tangent * _slope(*ctx.saved_tensors)


def _slope(root: Tensor) -> Tensor:
    """1 / (2 |root|), and 0 where root is 0."""
    return root.abs().mul_(2).masked_fill_(root.logical_not(), float("inf")).reciprocal_()
