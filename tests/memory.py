"""What a process that a test starts has had in memory at the most, and the largest tensor."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["FEW", "Counting", "peak"]

FEW = 100_000
"""Numbers of a tensor; what is too large has more."""


class Counting(TorchDispatchMode):
    """Keeps the largest number of numbers that a tensor with memory has."""

    largest = 0

    def __torch_dispatch__(
        self, func: Any, types: Sequence[Any], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and not out.is_meta:
            self.largest = max(self.largest, out.numel())
        return out


def peak() -> int:
    """KiB; Linux says so.

    ``getrusage`` begins with what the process had that started this one, so that nothing grows below that.
    """
    return int(re.findall(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[0])
