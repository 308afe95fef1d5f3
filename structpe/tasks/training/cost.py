"""What a training takes: time of a step, time in all, memory."""

from __future__ import annotations

import resource
import statistics
import sys
import time
from collections import deque
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer

__all__ = ["Cost", "peak_memory"]

KEPT = 1000
"""Steps whose times are remembered, the newest; their median is told."""
WARM_UP = 5
"""First steps, which load libraries and fill caches."""


class Cost(Callback):
    """Measures a training. It comes before callbacks whose work after a step is not part of the step.

    On the CPU a step is done when it returns; on a GPU the next may begin before.
    """

    def __init__(self) -> None:
        self.times: deque[float] = deque(maxlen=KEPT)
        self.median, self.before, self.memory = 0.0, 0.0, 0
        self._began = self._step = 0.0

    def state_dict(self) -> dict[str, Any]:
        times = list(self.times)[min(WARM_UP, len(self.times) // 2) :]
        return {
            "step_seconds": statistics.median(times) if times else self.median,
            "seconds": self.before + time.monotonic() - self._began,
            "peak_bytes": peak_memory(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.median, self.before = state_dict["step_seconds"], state_dict["seconds"]

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._began = time.monotonic()

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        self._step = time.perf_counter()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self.times.append(time.perf_counter() - self._step)


def peak_memory() -> int:
    """Bytes that this process has had in use at the most; on a GPU, of its memory."""
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated():
        return int(torch.cuda.max_memory_allocated())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
