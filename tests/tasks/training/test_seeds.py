"""What a batch draws depends on the seed and on the number of the batch, and on nothing else."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from structpe.tasks.training.lightning_module import Seeds


def drawn(seed: int, rank: int, batch: int) -> tuple[float, float, float]:
    trainer: Any = SimpleNamespace(global_rank=rank)
    module: Any = None
    Seeds(seed).on_train_batch_start(trainer, module, None, batch)
    return random.random(), float(np.random.rand()), float(torch.rand(()))


def test_each_batch_device_and_seed_has_its_own_draws() -> None:
    asked = [(seed, rank, batch) for seed in (0, 1) for rank in (0, 1) for batch in (0, 1, 2)]
    found = [drawn(*each) for each in asked]
    assert all(len({each[generator] for each in found}) == len(asked) for generator in range(3))


def test_they_do_not_depend_on_what_was_drawn_before() -> None:
    first = drawn(3, 0, 5)
    torch.rand(7)
    random.random()
    np.random.rand(2)
    assert drawn(3, 0, 5) == first
