"""What a training takes: time of a step, time in all, memory."""

from __future__ import annotations

import re
import resource
import statistics
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer

__all__ = ["Cost", "peak_memory"]

PROCESS, PEAK = Path("/proc/self/status"), re.compile(r"VmHWM:\s*(\d+) kB")
"""Of the process as Linux knows it; its other number is that of the process that started this one, if that had more."""
KEPT = 1000
"""Number of newest steps whose times are kept; their median is reported."""
WARM_UP = 5
"""First steps, which load libraries and fill caches."""


EVERY = 10
"""Of so many steps one is timed on a GPU, as what was begun before and in it must be waited for."""


class Cost(Callback):
    """Measures a training. It comes before callbacks whose work after a step is not part of the step.

    On the CPU a step is done when it returns; a GPU is waited for, in some steps. Making a batch is not part of a step;
    where gradients are accumulated, all batches of a step are.
    """

    def __init__(self) -> None:
        self.times: deque[float] = deque(maxlen=KEPT)
        self.median, self.before, self.cpu, self.memory = 0.0, 0.0, 0.0, 0
        self._began = self._began_cpu = self._batch = self._step = 0.0

    def state_dict(self) -> dict[str, Any]:
        times = list(self.times)[WARM_UP:]
        if not times and not self.median:
            times = list(self.times)  # of a very short training
        return {
            "step_seconds": statistics.median(times) if times else self.median,
            "seconds": self.before + time.monotonic() - self._began,
            "cpu_seconds": self.cpu + time.process_time() - self._began_cpu,
            "peak_bytes": max(self.memory, peak_memory()),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.median, self.before = state_dict["step_seconds"], state_dict["seconds"]
        self.cpu, self.memory = state_dict["cpu_seconds"], state_dict["peak_bytes"]

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._began, self._began_cpu = time.monotonic(), time.process_time()

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        if _timed(pl_module.device, trainer.global_step):
            _wait_for(pl_module.device)
            self._batch = time.perf_counter()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        ends = (batch_idx + 1) % trainer.accumulate_grad_batches == 0
        if _timed(pl_module.device, trainer.global_step - ends):
            _wait_for(pl_module.device)
            self._step += time.perf_counter() - self._batch
            if ends:
                self.times.append(self._step)
                self._step = 0.0


def _timed(device: torch.device, step: int) -> bool:
    return device.type == "cpu" or step % EVERY == 0


def _wait_for(device: torch.device) -> None:
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def peak_memory() -> int:
    """Bytes that this process has had in use at the most; on a GPU, of its memory."""
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated():
        return int(torch.cuda.max_memory_allocated())
    if PROCESS.exists():
        return int(PEAK.findall(PROCESS.read_text())[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
