"""Weights in the form in which oneDNN multiplies a few rows fastest, made once for all steps of a decoder.

A step multiplies one row per text by every weight of the model, and reading the weights then takes most of the time.
``torch.nn.functional.linear`` leaves them as they are stored; rearranged once, the same products of 8 to 32 rows take
half as long on a CPU. PyTorch's compiler rearranges weights by the same two operators when it freezes a model.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

__all__ = ["After", "Linear", "linear_map"]

Linear: TypeAlias = Callable[[Tensor], Tensor]
"""A function of rows (..., in) to rows (..., out)."""

After: TypeAlias = Literal["none", "relu", "gelu"]
"""What follows a linear map; ``gelu`` without approximation."""

_LEAST = 1 << 14
"""Numbers of a weight that is worth rearranging; with fewer, starting oneDNN takes more time than the product."""


def linear_map(
    weight: Float[Tensor, "out in"], bias: Float[Tensor, " out"] | None = None, after: After = "none"
) -> Linear:
    """The function xW^T + b of x (..., in), or relu or gelu of it, without gradients.

    Args:
        weight: W. The function may have a rearranged copy of it, which later changes of W do not reach.
        bias: b, or None.
        after: what follows.
    """
    weight, bias = weight.detach(), None if bias is None else bias.detach()
    if _can_pack(weight):
        tidy = torch.ops.mkldnn._reorder_linear_weight(weight)
        return partial(_packed, tidy, bias, after)
    return partial(_plain, weight, bias, after)


def _packed(weight: Tensor, bias: Tensor | None, after: After, x: Tensor) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise.default(
        x, weight, bias, after, [], "none" if after == "gelu" else ""
    )
    return product


def _plain(weight: Tensor, bias: Tensor | None, after: After, x: Tensor) -> Tensor:
    product = functional.linear(x, weight, bias)
    if after == "gelu":
        return functional.gelu(product)
    return product.relu_() if after == "relu" else product


def _can_pack(weight: Tensor) -> bool:
    """Whether a weight is large, of float32, and on a CPU for which PyTorch was built with oneDNN."""
    like = weight.device.type == "cpu" and weight.dtype == torch.float32 and weight.numel() >= _LEAST
    return like and not torch.is_autocast_enabled("cpu") and _has_operators()


@cache
def _has_operators() -> bool:
    """Whether this build of PyTorch has the two operators and they compute a product."""
    if not torch._C._has_mkldnn:
        return False
    weight, x = torch.arange(6.0).view(2, 3), torch.arange(12.0).view(4, 3)
    try:
        tidy = torch.ops.mkldnn._reorder_linear_weight(weight)
        product = torch.ops.mkldnn._linear_pointwise.default(x, tidy, None, "none", [], "")
    except (AttributeError, RuntimeError):  # another version of PyTorch, or another processor
        return False
    return torch.equal(product, functional.linear(x, weight))  # whole numbers, so exact
