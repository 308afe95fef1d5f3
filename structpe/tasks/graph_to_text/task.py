"""Graph to text as a task: the loss of a batch, and scores on the validation split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from structpe.tasks.graph_to_text.config import TextConfig
from structpe.tasks.graph_to_text.generator import Example, Writer, by_size, write
from structpe.tasks.graph_to_text.scores import score
from structpe.tasks.training.task import Gather, Task

__all__ = ["GraphToText"]


class GraphToText(Task):
    """Cross entropy per unit, with label smoothing in training only; BLEU and chrF++ on the validation split.

    These two are of greedy texts of ``config.dev_texts`` items, drawn once and for all runs alike.

    Args:
        writer: what is trained.
        dev: the validation split.
        config: smoothing, the metric that decides, the search.
    """

    pads = True  # texts in the decoder

    def __init__(self, writer: Writer, dev: Sequence[Example], config: TextConfig) -> None:
        self.writer, self.model, self.uses_all = writer, writer.model, writer.uses_all
        self.dev, self.config = dev, config
        self.scored = _drawn(len(dev), config.dev_texts) if config.training.metric != "loss" else []
        self.collate = writer.collate

    def loss(self, batch: Any) -> tuple[Tensor, Tensor]:
        return self.writer.loss(batch, self.config.training.smoothing)

    def rate(self, name: str) -> float:
        return self.writer.rate(name)

    def validate(self, device: torch.device, share: int, shares: int, gather: Gather) -> dict[str, float]:
        if not self.dev:
            return {}
        mine = range(share, len(self.dev), shares)
        total, count = 0.0, 0
        for numbers in by_size(self.dev, mine, self.config.training.batch_size):
            batch = self.collate([self.dev[i] for i in numbers]).to(device)
            loss, units = self.writer.loss(batch, 0.0)
            total, count = total + float(loss), count + int(units)
        found = gather((total, count, self._texts(device, self.scored[share::shares])))
        scores = {"loss": sum(total for total, _, _ in found) / sum(count for _, count, _ in found)}
        if self.scored:
            texts = {i: text for _, _, theirs in found for i, text in theirs.items()}
            references = [self.dev[i].texts for i in self.scored]
            whole = score([texts[i] for i in self.scored], references, self.config.lowercase)
            scores |= {"bleu": whole.bleu, "chrf": whole.chrf}
        return scores

    def _texts(self, device: torch.device, mine: Sequence[int]) -> dict[int, str]:
        batches = by_size(self.dev, mine, self.config.training.batch_size)
        return dict(write(self.writer, self.dev, batches, self.config.greedy, device))


def _drawn(size: int, count: int) -> list[int]:
    """Numbers of the items whose texts are scored, in their order; the same in every run with this split."""
    if not count or count >= size:
        return list(range(size))
    return sorted(np.random.default_rng(0).permutation(size)[:count].tolist())
