"""Graph to text as a task: the loss of a batch, and scores on the validation split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from structpe.tasks.graph_to_text.config import TextConfig
from structpe.tasks.graph_to_text.generator import GraphTextExample, TextModel, by_size
from structpe.tasks.graph_to_text.scores import score
from structpe.tasks.training.task import Gather, Task

__all__ = ["GraphToText"]


class GraphToText(Task):
    """Cross entropy per unit, with label smoothing in training only; BLEU and chrF++ on the validation split.

    BLEU and chrF++ score greedy texts of ``config.dev_texts`` items, which are the same in all runs.

    Args:
        text_model: the model to train.
        dev: the validation split.
        config: label smoothing, selection metric and search.
    """

    pads = True  # texts in the decoder

    def __init__(self, text_model: TextModel, dev: Sequence[GraphTextExample], config: TextConfig) -> None:
        self.text_model, self.model, self.uses_all = text_model, text_model.model, text_model.uses_all
        self.dev, self.config = dev, config
        self.scored = _drawn(len(dev), config.dev_texts) if config.training.validation.metric != "loss" else []

    def loss(self, batch: Any) -> tuple[Tensor, Tensor]:
        return self.text_model.loss(batch, self.config.training.smoothing)

    def rate(self, name: str) -> float:
        return self.text_model.rate(name)

    def validate(self, device: torch.device, share: int, shares: int, gather: Gather) -> dict[str, float]:
        if not self.dev:
            return {}
        batch_size = self.config.training.batch_size
        total, count = 0.0, 0
        for numbers in by_size(self.dev, range(share, len(self.dev), shares), batch_size):
            batch = self.text_model.collate([self.dev[i] for i in numbers]).to(device)
            loss, units = self.text_model.loss(batch, 0.0)
            total, count = total + float(loss), count + int(units)
        mine = self.text_model.write(self.dev, self.scored[share::shares], batch_size, self.config.greedy, device)
        found = gather((total, count, dict(mine)))
        scores = {"loss": sum(total for total, _, _ in found) / sum(count for _, count, _ in found)}
        if self.scored:
            texts = {i: text for _, _, theirs in found for i, text in theirs.items()}
            references = [self.dev[i].texts for i in self.scored]
            whole = score([texts[i] for i in self.scored], references, self.config.lowercase)
            scores |= {"bleu": whole.bleu, "chrf": whole.chrf}
        return scores


def _drawn(size: int, count: int) -> list[int]:
    """Sorted numbers of the items whose texts are scored; the same in every run with this split."""
    if not count or count >= size:
        return list(range(size))
    return sorted(np.random.default_rng(0).permutation(size)[:count].tolist())
