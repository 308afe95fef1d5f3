"""What a position model costs in training: time of a step, and memory kept for the backward pass; none at all is 1."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from data import Example
from tasks import DIMS, LAYERS
from torch import Tensor
from train import Cached

from structpe.nn.stack import Stack
from structpe.positions import PositionModel, build
from structpe.structure import path

__all__ = ["BATCH", "LENGTH", "cost"]

LENGTH, BATCH = 128, 4
ROUNDS, MOST, SECONDS = 5, 30, 1.0
"""Rounds at least, at most, and seconds after which there are enough."""


def cost(config: Any) -> dict[str, float]:
    """Ratios to a model without position information; steps take turns, so that a busy machine slows both alike.

    A step is forward and backward of the encoder (without the encoding, which is done once per data set) on texts of
    :data:`LENGTH` words. Memory is that of all distinct tensors kept for the backward pass.
    """
    structure = path([f"w{i % 50}" for i in range(LENGTH)])
    position = build(config, DIMS, fit=[structure])
    mine, plain = _step(position, structure), _step(build([], DIMS), structure)
    for step in (mine, plain):
        step()
    times: list[list[float]] = [[], []]
    end = time.perf_counter() + SECONDS
    while len(times[0]) < ROUNDS or (len(times[0]) < MOST and time.perf_counter() < end):
        for step, each in zip((mine, plain), times, strict=True):
            start = time.perf_counter()
            step()
            each.append(time.perf_counter() - start)
    slow, fast = (statistics.median(each) for each in times)
    return {"time": slow / fast, "memory": _kept(mine) / _kept(plain), "parameters": _count(position)}


def _step(position: PositionModel, structure: Any) -> Callable[[], None]:
    torch.manual_seed(0)
    encoder = Stack(LAYERS, position)
    example = Example(structure, np.zeros(LENGTH), 0.0)
    positions = (
        Cached(position.encodings, texts=False).positions([example] * BATCH).to(torch.device("cpu"), torch.float32)
    )
    x = torch.randn(BATCH, LENGTH, DIMS.width)

    def step() -> None:
        encoder.padded(x, positions).sum().backward()
        encoder.zero_grad()

    return step


def _kept(step: Callable[[], None]) -> int:
    """Bytes of what autograd keeps during a step, each storage once."""
    kept: dict[int, tuple[int, Tensor]] = {}

    def keep(x: Tensor) -> Tensor:
        storage = x.untyped_storage()
        kept[storage.data_ptr()] = (storage.nbytes(), x)  # held, so that no address comes twice
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        step()
    return sum(size for size, _ in kept.values())


def _count(position: PositionModel) -> int:
    return sum(p.numel() for p in position.parameters())
