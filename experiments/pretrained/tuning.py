"""Fine-tuning with resumption, and scores: the loss of all texts and BLEU of greedy ones."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from halves import Halves
from prompts import Prompt
from torch import Tensor, nn

from structpe.system.files import atomic_write
from structpe.tasks.graph_to_text.scores import score

__all__ = ["Budget", "Tuning", "losses", "texts", "written"]

IGNORED = -100


@dataclass(frozen=True)
class Budget:
    """How long, and how fast.

    Attributes:
        steps: of training.
        batch: texts of a step.
        warmup: steps in which rates rise; then they fall to 0 in a line.
        rate: of the checkpoint's weights.
        position_rate: of the position model's numbers, which start at 0.
        keep: steps between checkpoints.
    """

    steps: int
    batch: int = 8
    warmup: int = 10
    rate: float = 2e-4
    position_rate: float = 2e-2
    keep: int = 20


class Tuning:
    """A training that goes on where it was: AdamW (Loshchilov and Hutter 2019) without decay, gradients clipped at 1.

    Batches are a function of the seed and the number of the step, so that rows of one seed see the same batches.

    Args:
        halves: the model, with a position model or without.
        seed: of the order of batches.
        budget: how long, and how fast.
        file: the checkpoint.
    """

    def __init__(self, halves: Halves, seed: int, budget: Budget, file: Path) -> None:
        self.halves, self.seed, self.budget, self.file = halves, seed, budget, file
        self.numbers = {name: p for name, p in halves.model.named_parameters() if p.requires_grad}
        self.optimiser = torch.optim.AdamW(list(self._groups()), weight_decay=0.0)
        schedule = torch.optim.lr_scheduler.LambdaLR(self.optimiser, self._share)
        self.schedule, self.cpu = schedule, 0.0
        self.curve: list[float] = []
        if file.exists():
            self._restore(torch.load(file, weights_only=True))

    def train(self, prompts: Sequence[Prompt], below: Sequence[Tensor]) -> None:
        """All steps that are not done yet.

        Args:
            prompts: what is trained on.
            below: of each, what the lower layers make of it.
        """
        batches = itertools.islice(_batches(prompts, self.budget.batch, self.seed), len(self.curve), self.budget.steps)
        began = time.process_time()
        self.halves.model.train()
        for numbers in batches:
            loss = _loss(self.halves, [prompts[each] for each in numbers], [below[each] for each in numbers]).mean()
            self.optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.numbers.values(), 1.0)
            self.optimiser.step()
            self.schedule.step()
            self.curve.append(loss.item())
            if len(self.curve) % self.budget.keep == 0 or len(self.curve) == self.budget.steps:
                self.cpu, began = self.cpu + time.process_time() - began, time.process_time()
                atomic_write(self.file, self._save)
                print(
                    f"step {len(self.curve)}, loss {sum(self.curve[-20:]) / 20:.3f}, {self.cpu:.0f} CPU s", flush=True
                )

    def _share(self, step: int) -> float:
        rising = (step + 1) / self.budget.warmup
        falling = (self.budget.steps - step) / max(1, self.budget.steps - self.budget.warmup)
        return min(1.0, rising, falling)

    def _groups(self) -> Iterator[dict[str, Any]]:
        ours = [p for name, p in self.numbers.items() if name.startswith("structpe.")]
        theirs = [p for name, p in self.numbers.items() if not name.startswith("structpe.")]
        yield from ({"params": ours, "lr": self.budget.position_rate},) * bool(ours)
        yield from ({"params": theirs, "lr": self.budget.rate},) * bool(theirs)

    def _save(self, path: Path) -> None:
        state = {
            "numbers": {name: p.detach() for name, p in self.numbers.items()},
            "curve": self.curve,
            "cpu": self.cpu,
        }
        torch.save({**state, "optimiser": self.optimiser.state_dict(), "schedule": self.schedule.state_dict()}, path)

    def _restore(self, state: Mapping[str, Any]) -> None:
        with torch.no_grad():
            for name, number in self.numbers.items():
                number.copy_(state["numbers"][name])
        self.optimiser.load_state_dict(state["optimiser"])
        self.schedule.load_state_dict(state["schedule"])
        self.curve, self.cpu = state["curve"], state["cpu"]


def _batches(prompts: Sequence[Prompt], size: int, seed: int) -> Iterator[list[int]]:
    """Numbers of texts of like length, in random order, epoch after epoch.

    Raises:
        ValueError: there is no batch of that size.
    """
    if len(prompts) < size:
        raise ValueError(
            f"there are {len(prompts)} graphs to train on, and a batch has {size}; give more, or longer ones"
        )
    drawn = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(prompts), generator=drawn).tolist()
        parts = [order[at : at + 20 * size] for at in range(0, len(order), 20 * size)]
        alike = [sorted(part, key=lambda each: len(prompts[each].ids)) for part in parts]
        groups = [part[at : at + size] for part in alike for at in range(0, len(part) - size + 1, size)]
        for group in torch.randperm(len(groups), generator=drawn).tolist():
            yield groups[group]


def _loss(halves: Halves, prompts: Sequence[Prompt], below: Sequence[Tensor]) -> Tensor:
    """Cross entropy of each unit of the texts, in nats; padding is on the left, so that all texts end together."""
    batch = halves.batch(prompts)
    labels = batch.pop("labels")
    longest = int((labels != IGNORED).sum(1).max())
    logits = halves.logits(batch, below, longest + 1)[:, :-1]
    targets = labels[:, -longest:]
    each = nn.functional.cross_entropy(logits.transpose(1, 2), targets, ignore_index=IGNORED, reduction="none")
    return each[targets != IGNORED]


@torch.no_grad()
def losses(halves: Halves, prompts: Sequence[Prompt], below: Sequence[Tensor], size: int) -> dict[str, float]:
    """Nats per unit of all texts, and their perplexity."""
    halves.model.eval()
    order = sorted(range(len(prompts)), key=lambda each: len(prompts[each].ids))
    parts = [order[at : at + size] for at in range(0, len(order), size)]
    found = [_loss(halves, [prompts[each] for each in part], [below[each] for each in part]) for part in parts]
    nats = torch.cat(found).double().mean().item()
    return {"nats": nats, "perplexity": math.exp(nats)}


@torch.no_grad()
def texts(halves: Halves, prompts: Sequence[Prompt], size: int, longest: int) -> list[str]:
    """What the model writes for each graph, its likeliest unit each time."""
    model, collate = halves.model, halves.collate
    model.eval()
    found: list[str] = []
    for at in range(0, len(prompts), size):
        batch = collate([p.item for p in prompts[at : at + size]])
        ids = model.generate(**batch, max_new_tokens=longest, do_sample=False)[:, batch["input_ids"].shape[1] :]
        found += [text.strip() for text in collate.tokenizer.batch_decode(ids, skip_special_tokens=True)]
    return found


def written(given: Sequence[str], prompts: Sequence[Prompt]) -> dict[str, float]:
    """BLEU and chrF++ of texts."""
    found = score(given, [[p.text] for p in prompts])
    return {"bleu": found.bleu, "chrf": found.chrf}
