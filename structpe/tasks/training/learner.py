"""What is trained, as Lightning sees it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor

from structpe.tasks.training.batches import Batches
from structpe.tasks.training.config import TrainingConfig
from structpe.tasks.training.optimiser import optimiser
from structpe.tasks.training.schedule import factor
from structpe.tasks.training.sharding import clip
from structpe.tasks.training.task import Task

__all__ = ["Learner"]


class Learner(LightningModule):
    """A task and how it is trained.

    The loss of a step is the mean over everything that is counted in all its batches on all devices: those with short
    texts weigh less, so that two devices, and two batches, do what one does with one batch of the same examples::

        gradient = sum_p d(total_p) / sum_p count_p        over the parts p of a step: batches and devices

    Args:
        task: what is trained, and for what.
        config: how.
        batches: the loader of a share of each batch, by the number of the device.
    """

    def __init__(self, task: Task, config: TrainingConfig, batches: Callable[[int], Batches[Any, Any]]) -> None:
        super().__init__()
        self.task, self.config, self.model = task, config, task.model
        self.batches = batches

    def train_dataloader(self) -> Any:
        return self.batches(self.trainer.global_rank)

    def training_step(self, batch: Any, batch_idx: int) -> dict[str, Tensor]:
        total, count = self.task.loss(batch)
        everywhere = count.clone()
        if self.trainer.world_size > 1:
            torch.distributed.all_reduce(everywhere)
        parts = self.trainer.accumulate_grad_batches
        if batch_idx % parts == 0:
            self._first, self._counted = everywhere.clamp(min=1), torch.zeros_like(everywhere)  # nothing may count
        self._counted += everywhere
        # DDP takes the mean of the gradients of the devices, and Lightning that of the batches; what is due is their
        # sum. How much all batches count is known at their end: until then the first stands for all.
        loss = total * (self.trainer.world_size * parts) / self._first
        if self.config.shards and not self.task.uses_all:
            # All devices exchange the same gradients, also of parameters that have no part in the loss of one of them.
            loss = loss + 0.0 * sum(p.sum() for p in self.model.parameters() if p.requires_grad)
        return {"loss": loss, "total": total.detach(), "count": count}

    def on_before_optimizer_step(self, optimizer: Any) -> None:
        """Divide the gradients by what all batches of the step count."""
        if self.trainer.accumulate_grad_batches == 1:
            return
        factor = float(self._first / self._counted.clamp(min=1))
        for p in self.model.parameters():
            if p.grad is not None:
                p.grad *= factor

    def configure_gradient_clipping(
        self, optimizer: Any, gradient_clip_val: Any = None, gradient_clip_algorithm: Any = None
    ) -> None:
        if self.config.shards and gradient_clip_val:
            clip(self.model.parameters(), gradient_clip_val)
        elif not self.config.shards:
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)

    def configure_optimizers(self) -> Any:
        groups: dict[tuple[bool, float], list[Any]] = {}
        for name, p in self.model.named_parameters():
            if p.requires_grad:
                groups.setdefault((p.ndim > 1, self.task.rate(name)), []).append(p)
        filled = [
            {
                "params": groups[decays, rate],
                "weight_decay": self.config.weight_decay if decays else 0.0,
                "lr": self.config.learning_rate * rate,
            }
            for decays, rate in sorted(groups, key=lambda group: (not group[0], group[1]))
        ]
        optimizer = optimiser(filled, self.config)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, partial(factor, config=self.config))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}
