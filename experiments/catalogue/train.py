"""One model on one task: applied, trained, scored."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from data import IGNORED, Example
from tasks import DIMS, Task
from torch import Tensor, nn

from structpe.encodings import ENCODINGS, Encoded, Encoding
from structpe.errors import StructPEError
from structpe.positions import MODELS, Positions, build
from structpe.positions.batch import join
from structpe.structure import path

__all__ = ["NONE", "configs", "measured"]

NONE = "none"
"""The name under which a model without any position information runs."""
RATE, WARM = 3e-3, 0.1
FIRST = 20
"""Steps by which it is judged how long a training takes."""


def configs(task: type[Task]) -> dict[str, Any]:
    """Every model of the registry with its defaults; without a reading order, offsets become graph distances.

    Those that scale rotary positions are told the length of the texts that they are trained on, and tree positions take
    a tree of any branching as a binary one.
    """
    found: dict[str, Any] = {NONE: []}
    for name, model in MODELS.items():
        options = build(name, DIMS).options() if _builds(name) else {}
        default = options.get("encoding")
        if task.causal and "original_length" in options:
            found[name] = {"name": name, "original_length": task.length}
        elif name in ("tpe", "tpe-onehot") and not task.causal:  # nodes have more children than it has branches
            found[name] = {"name": name, "encoding": {"name": "branch-path", "depth": 32, "width": 2, "binary": True}}
        elif not task.ordered and isinstance(default, Encoding) and default == ENCODINGS["offset"]():
            found[f"{name} on distance"] = {"name": name, "encoding": "undirected-distance"}
        elif model.spec.structure not in (("tree", "graph", "grid") if task.causal else ("grid",)):
            found[name] = name
    return found


def _builds(name: str) -> bool:
    try:
        build(name, DIMS)
    except StructPEError:
        return False
    return True


def measured(task: Task, config: Any, seed: int) -> dict[str, Any]:
    """What a model scores; or why it does not apply.

    Raises:
        StructPEError: the model does not apply, for the reason that the error gives.
    """
    torch.manual_seed(seed)
    random.seed(seed)
    few = task.train[:200] if task.causal else task.train
    position = build(config, DIMS, fit=[e.structure for e in few])
    encoder = Cached(position.encodings, task.causal)
    net = task.net(position)
    if task.causal:
        _check_causal(task, net, encoder)
    start, began = time.monotonic(), time.process_time()
    trained(task, net, encoder, seed)
    minutes, cpu = (time.monotonic() - start) / 60, (time.process_time() - began) / 60
    scores = {name: scored(task, net, encoder, examples) for name, examples in task.tests().items()}
    parameters = sum(p.numel() for p in position.parameters())
    return {"scores": scores, "minutes": minutes, "cpu minutes": cpu, "parameters": parameters}


class Cached:
    """Encodings of examples, each done once; of texts once per length, where the encoding does not look at words.

    Args:
        encodings: what the position model asks for.
        texts: whether all structures are paths.
    """

    def __init__(self, encodings: Sequence[Encoding], texts: bool) -> None:
        self._of_length = {e: texts and _blind(e) for e in encodings}
        self._known: dict[Encoding, dict[int, Encoded]] = {e: {} for e in encodings}

    def positions(self, examples: Sequence[Example]) -> Positions:
        return join({e: self._each(e, examples) for e in self._known})

    def _each(self, encoding: Encoding, examples: Sequence[Example]) -> list[Encoded]:
        known = self._known[encoding]
        keys = [len(x.units) if self._of_length[encoding] else id(x) for x in examples]
        new = {key: x.structure for key, x in zip(keys, examples, strict=True) if key not in known}
        if new:
            known |= zip(new, encoding.many(list(new.values())), strict=True)
        return [known[key] for key in keys]


def _blind(encoding: Encoding) -> bool:
    """Whether an encoding is the same for two texts of different words."""
    one, other = (encoding.one(path(words)) for words in (["I_WALK"] * 4, ["walk", "a", "=", "."]))
    return np.array_equal(one.values, other.values)


def _batch(examples: Sequence[Example], encoder: Cached) -> tuple[Tensor, Tensor, Positions, Tensor]:
    longest = max(len(x.units) for x in examples)
    units = torch.zeros(len(examples), longest, dtype=torch.long)
    present = torch.zeros(len(examples), longest, dtype=torch.bool)
    for row, x in enumerate(examples):
        units[row, : len(x.units)], present[row, : len(x.units)] = torch.from_numpy(x.units.astype(np.int64)), True
    targets: Any = [x.target for x in examples]
    if isinstance(targets[0], np.ndarray):
        padded = [np.pad(t, (0, longest - len(t)), constant_values=IGNORED) for t in targets]
        target = torch.from_numpy(np.stack(padded).astype(np.int64))
    else:
        target = torch.tensor(targets, dtype=torch.float32)
    return units, present, encoder.positions(examples).to(torch.device("cpu"), torch.float32), target


def _check_causal(task: Task, net: nn.Module, encoder: Cached) -> None:
    """Whether what is said of a text's beginning depends on how the text goes on."""
    examples = task.train[:2]
    cut = min(len(x.units) for x in examples) // 2
    others = [Example(x.structure, np.concatenate([x.units[:cut], x.units[cut:][::-1]]), x.target) for x in examples]
    outs = []
    with torch.no_grad():
        for some in (examples, others):
            torch.manual_seed(0)
            units, present, positions, _ = _batch(some, encoder)
            outs.append(net.eval()(units, present, positions)[:, :cut])
    if not torch.allclose(*outs, rtol=0, atol=1e-5):
        raise StructPEError("what it says of a word depends on later words")


def trained(task: Task, net: nn.Module, encoder: Cached, seed: int) -> None:
    """AdamW, warm-up over a tenth of the steps, then a cosine to zero; gradients clipped at 1."""
    optimizer = torch.optim.AdamW(net.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate((step + 1) / task.steps))
    net.train()
    start = time.process_time()
    for number, examples in enumerate(_batches(task, seed)):
        if number >= FIRST and (time.process_time() - start) * task.steps / number > task.longest:
            raise StructPEError(f"its training takes more than {task.longest} seconds of CPU time")
        units, present, positions, target = _batch(examples, encoder)
        loss = task.loss(net(units, present, positions), target)
        if not loss.isfinite():
            raise StructPEError("training diverged: the loss is not finite")
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def _rate(done: float) -> float:
    return done / WARM if done < WARM else 0.5 * (1 + math.cos(math.pi * min(1.0, (done - WARM) / (1 - WARM))))


def _batches(task: Task, seed: int) -> Iterator[list[Example]]:
    """As many as the task has steps; every example once before any comes again."""
    draw, left = random.Random(seed), []
    for _ in range(task.steps):
        if len(left) < task.batch:
            left = list(task.train)
            draw.shuffle(left)
        yield [left.pop() for _ in range(task.batch)]


def scored(task: Task, net: nn.Module, encoder: Cached, examples: Sequence[Example]) -> float | None:
    """A score; None where the model cannot take inputs as long as these."""
    outs: list[Tensor] = []
    ordered = sorted(examples, key=lambda x: len(x.units))
    net.eval()
    try:
        with torch.no_grad():
            for some in _by_room(ordered):
                units, present, positions, _ = _batch(some, encoder)
                out = net(units, present, positions)
                outs += [o[: len(x.units)] if task.causal else o for o, x in zip(out, some, strict=True)]
    except StructPEError:
        return None
    return task.score(outs, ordered)


def _by_room(examples: Sequence[Example], room: int = 4096) -> Iterator[Sequence[Example]]:
    """Batches of about as many units."""
    start = 0
    while start < len(examples):
        count = max(1, room // len(examples[start].units) // (1 if len(examples[start].units) < 256 else 2))
        yield examples[start : start + count]
        start += count
