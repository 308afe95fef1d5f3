"""Half precision: which numbers it would lose. bfloat16 has 8 digits in base 2, so that 1,999 becomes 2,000.

Queries, keys, values and hidden vectors may be of half precision. Places, angles, and sums of scores with what position
models add to them, are of float32 at least: a term such as ``alibi-causal``'s is large where scores matter.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from copy import copy
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

__all__ = ["exactly", "wide", "widened"]

M = TypeVar("M", bound=nn.Module)

_DEVICES = ("cpu", "cuda", "mps", "xpu")
"""Where autocast may be enabled."""


def wide(x: Tensor) -> Tensor:
    """The same numbers in float32 at least."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def widened(module: M) -> M:
    """The module with its parameters and buffers in float32 at least, which their gradients reach; itself if they are.

    It is for functions of places, such as a small network of distances. What it does to its own buffers is lost.
    """
    of = (*module.parameters(), *module.buffers())
    if not any(x.dtype.itemsize < 4 and x.is_floating_point() for x in of):
        return module
    made = copy(module)
    for kind in ("_parameters", "_buffers"):
        vars(made)[kind] = {name: x if x is None else _float(x) for name, x in vars(module)[kind].items()}
    vars(made)["_modules"] = {name: x if x is None else widened(x) for name, x in module._modules.items()}
    return made


def _float(x: Tensor) -> Tensor:
    return wide(x) if x.is_floating_point() else x


def exactly(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without autocast, which would multiply what it computes from places in half precision."""

    @wraps(function)
    def computed(*given: Any, **named: Any) -> Any:
        under = [device for device in _DEVICES if torch.is_autocast_enabled(device)]
        if not under:
            return function(*given, **named)
        with ExitStack() as stack:
            for device in under:
                stack.enter_context(torch.autocast(device, enabled=False))
            return function(*given, **named)

    return computed
