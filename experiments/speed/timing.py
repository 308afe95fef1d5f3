"""Times of ways to compute the same thing, in rounds in which they take turns, so that a busy machine slows all alike.

On a CPU with one thread the time is that of the processor, in which other programs do not count; with more threads, and
on a GPU, it is that of the wall clock.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping

import torch

__all__ = ["clock", "medians"]

CPU = torch.device("cpu")


def medians(
    ways: Mapping[str, Callable[[], object]], rounds: int, device: torch.device = CPU, warm: int = 1
) -> dict[str, float]:
    """Seconds of each way, the medians of the rounds.

    Garbage is not collected meanwhile, because whose turn that would fall into is chance.

    Args:
        ways: by name.
        rounds: how many count.
        device: where they compute.
        warm: rounds before these, in which code is compiled and memory found.
    """
    times: dict[str, list[float]] = {name: [] for name in ways}
    collects = gc.isenabled()
    gc.disable()
    try:
        for number in range(warm + rounds):
            for name, way in ways.items():
                start = clock(device)
                way()
                if number >= warm:
                    times[name].append(clock(device) - start)
    finally:
        if collects:
            gc.enable()
    return {name: statistics.median(took) for name, took in times.items()}


def clock(device: torch.device = CPU) -> float:
    """Seconds since some moment; a GPU has done all that it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        return time.perf_counter()
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()
