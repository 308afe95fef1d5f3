"""The learning rate over the steps of a training."""

from __future__ import annotations

import math

from structpe.tasks.training.config import TrainingConfig

__all__ = ["factor"]


def factor(step: int, config: TrainingConfig) -> float:
    """What the highest learning rate is multiplied by in step s = 0, 1, ...

    With w steps of warm-up and t = s + 1: t/w up to w, then sqrt(w/t) (Vaswani et al. 2017),
    (1 + cos(pi (t - w)/(steps - w)))/2, or 1.
    """
    step, warmup = step + 1, max(1, config.warmup)
    if step < warmup:
        return step / warmup
    if config.schedule == "inverse-sqrt":
        return math.sqrt(warmup / step)
    if config.schedule == "cosine":
        return (1 + math.cos(math.pi * min(1.0, (step - warmup) / max(1, config.steps - warmup)))) / 2
    return 1.0
