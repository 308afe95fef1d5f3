"""What happens around a step: its own random numbers, logs, validation, and last the checkpoint.

They run in this order after each step, and all that belongs to a step is done before its checkpoint is written. For the
same reason validation is not Lightning's own loop, which runs after the checkpoint and is entered or skipped on resume
by rules of its own.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from structpe.data.prepare import AFRESH
from structpe.tasks.training import checkpoint
from structpe.tasks.training.averaging import Average
from structpe.tasks.training.config import TrainingConfig
from structpe.tasks.training.learner import Learner
from structpe.tasks.training.sharding import whole
from structpe.tasks.training.task import Task
from structpe.tasks.training.weights import check_finite, gathered, load_weights, save_weights

__all__ = ["Checkpoints", "Metrics", "Seeds", "Validation"]


class Seeds(Callback):
    """Each batch has its own random numbers, which follow from the seed, the device and the number of the batch.

    So there is no state of a generator to be saved, and nothing that was drawn meanwhile, by a validation or by making
    an iterator, can shift what comes after it.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_train_batch_start(self, trainer: Trainer, module: LightningModule, batch: Any, batch_idx: int) -> None:
        seed = int(np.random.SeedSequence([self.seed, trainer.global_rank, batch_idx]).generate_state(1)[0])
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)


class Metrics(Callback):
    """Logs the mean training loss and the learning rate, and tells how training goes.

    Args:
        every: steps between two lines of the log.
        per_epoch: batches of an epoch.
        say: where a line for a person goes; None where a progress bar shows the same.
    """

    def __init__(self, every: int, per_epoch: int, say: Callable[[str], None] | None) -> None:
        self.every, self.per_epoch, self.say = every, per_epoch, say
        self.total, self.count = 0.0, 0
        self._since: tuple[int, float] | None = None

    def state_dict(self) -> dict[str, Any]:
        return {"total": float(self.total), "count": int(self.count)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.total, self.count = state_dict["total"], state_dict["count"]

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        self._since = (trainer.global_step, time.monotonic())

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self.total, self.count = self.total + outputs["total"].double(), self.count + outputs["count"]
        step = trainer.global_step
        if not _stepped(trainer, batch_idx) or step % self.every:
            return
        total, count = _sum(trainer, self.total), _sum(trainer, self.count)
        self.total, self.count = 0.0, 0
        rate = trainer.optimizers[0].param_groups[0]["lr"]
        numbers = {"loss": total / count, "learning_rate": rate, "epoch": (batch_idx + 1) / self.per_epoch}
        _log(trainer, numbers, step)
        self._tell(trainer, numbers)

    def _tell(self, trainer: Trainer, numbers: dict[str, float]) -> None:
        assert self._since is not None
        now, step = time.monotonic(), trainer.global_step
        if self.say is None or not trainer.is_global_zero:
            return
        speed = (step - self._since[0]) / (now - self._since[1])
        left = (trainer.max_steps - step) / speed / 60
        self.say(
            f"step {step} of {trainer.max_steps}  loss {numbers['loss']:.3f}  {speed:.1f} steps/s  "
            f"{left:.0f} min left at most"
        )


class Validation(Callback):
    """Scores the model now and then, keeps the weights of the best, and stops when it gets no better.

    Args:
        weights: file for the weights of the best model; without a validation split, of the last.
        config: steps between validations, the metric that decides, over how many validations weights are averaged, and
            after how many without a better model training stops.
        say: where a line for a person goes.
        run: identity of the run, which the weights are tied to.
    """

    def __init__(self, weights: Path, config: TrainingConfig, say: Callable[[str], None], run: str = "") -> None:
        self.weights, self.say, self.run = weights, say, run
        self.every, self.metric, self.patience = config.validate_every, config.metric, config.patience
        self.average = Average(config.average)
        self.best: dict[str, float] = {}
        self.best_step, self.waited = 0, 0

    def state_dict(self) -> dict[str, Any]:
        kept = [dict(each) for each in self.average.kept]
        return {"best": self.best, "best_step": self.best_step, "waited": self.waited, "kept": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best, self.best_step = state_dict["best"], state_dict["best_step"]
        self.waited = state_dict["waited"]
        self.average.kept.extend(state_dict["kept"])
        if self.best_step:  # that they are damaged is known now rather than when training has ended
            load_weights(self.weights, AFRESH, self.run)

    @property
    def stops(self) -> bool:
        """Whether the model got no better for too long."""
        return 0 < self.patience <= self.waited

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        trainer.should_stop = self.stops  # the checkpoint may be that of the step at which training stopped

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        step = trainer.global_step
        if not _stepped(trainer, batch_idx) or (step % self.every and step != trainer.max_steps):
            return
        assert isinstance(module, Learner)
        self.average.add(module.model)
        with self.average.applied(module.model):
            scores = self._scores(trainer, module)
            better = not scores or not self.best or self._better(scores[self.metric], module.task)
            if better:
                save_weights(module.model, self.weights, trainer.is_global_zero, self.run)
        if scores:
            _log(trainer, {f"dev_{name}": score for name, score in scores.items()}, step)
        self.waited = 0 if better else self.waited + 1
        if better:
            self.best, self.best_step = scores, step
        if scores and trainer.is_global_zero:
            line = "  ".join(f"{name} {score:.4g}" for name, score in scores.items())
            self.say(f"step {step}  on the validation split: {line}" + ("  (best so far)" if better else ""))
        trainer.should_stop = trainer.should_stop or self.stops

    def _better(self, score: float, task: Task) -> bool:
        least = self.metric in task.less_is_better
        return score < self.best[self.metric] if least else score > self.best[self.metric]

    def _scores(self, trainer: Trainer, module: Learner) -> dict[str, float]:
        module.model.eval()
        with torch.no_grad(), trainer.precision_plugin.val_step_context(), whole(module):
            scores = module.task.validate(
                module.device, trainer.global_rank, trainer.world_size, lambda mine: _gather(trainer, mine)
            )
        module.model.train()
        return scores


class Checkpoints(Callback):
    """Writes checkpoints, and removes all but the newest two: should one be damaged, there is the one before.

    Args:
        folder: where they lie.
        every: steps between them.
    """

    def __init__(self, folder: Path, every: int) -> None:
        self.folder, self.every = folder, every

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        if trainer.is_global_zero:
            checkpoint.drop_after(self.folder, trainer.global_step)

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        step = trainer.global_step
        last = step == trainer.max_steps or trainer.should_stop
        if not _stepped(trainer, batch_idx) or (step % self.every and not last):
            return
        assert isinstance(module, Learner)
        check_finite(gathered(module.model))
        trainer.save_checkpoint(self.folder / checkpoint.name(step), weights_only=False)
        if trainer.is_global_zero:
            checkpoint.prune(self.folder, keep=2)


def _stepped(trainer: Trainer, batch_idx: int) -> bool:
    return (batch_idx + 1) % trainer.accumulate_grad_batches == 0


def _log(trainer: Trainer, numbers: dict[str, float], step: int) -> None:
    for logger in trainer.loggers:
        logger.log_metrics(numbers, step)


def _sum(trainer: Trainer, value: Any) -> float:
    return float(sum(_gather(trainer, float(value))))


def _gather(trainer: Trainer, mine: Any) -> list[Any]:
    if trainer.world_size == 1:
        return [mine]
    everyones: list[Any] = [None] * trainer.world_size
    torch.distributed.all_gather_object(everyones, mine)
    return everyones
