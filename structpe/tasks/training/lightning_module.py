"""The LightningModule of a task, its callbacks, and training with sharded parameters.

Callbacks run in the order of their list after each step; the last one writes the checkpoint, after everything else that
belongs to the step. Validation is therefore a callback, too: Lightning's own loop runs after the checkpoint, and has
other rules on resume.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.plugins.io import CheckpointIO
from lightning.pytorch.strategies import DDPStrategy
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor

from structpe.data.prepare import TRAIN_AFRESH
from structpe.system.progress import duration
from structpe.tasks.training import checkpoint
from structpe.tasks.training.batches import Batches
from structpe.tasks.training.checkpoint import load, remove, save
from structpe.tasks.training.config import TrainingConfig, ValidationConfig
from structpe.tasks.training.optimiser import factor, optimiser
from structpe.tasks.training.result import check_finite, full, gathered, load_weights, save_weights
from structpe.tasks.training.task import Task

__all__ = [
    "Average",
    "Checkpoints",
    "FolderCheckpoints",
    "Metrics",
    "Seeds",
    "Sharded",
    "TaskModule",
    "Validation",
    "clip",
    "ends_step",
]


class Sharded(DDPStrategy):
    """Each device holds a shard of the parameters, gradients and optimiser states (``torch.distributed.fsdp``).

    For a step and for a validation, the parameters are gathered; gradients are averaged and sharded again. Processes
    and checkpoints are those of DDP: a checkpoint is complete, and either strategy resumes from it. No GPU is needed.
    """

    def configure_ddp(self) -> None:
        """Shard the parameters, where DDP would wrap the model."""
        assert isinstance(self.model, nn.Module)
        mesh = init_device_mesh(self.root_device.type, (self.world_size,))
        # PyTorch cannot shard scalars; each device has them all, as with DDP.
        self._scalars = {p for p in self.model.parameters() if not p.ndim}
        # One group: a task may call any part of its model, and all of its parameters must be there.
        sharded = fully_shard(self.model, mesh=mesh, reshard_after_forward=False, ignored_params=self._scalars)
        if self.root_device.type == "cpu":
            sharded.set_force_sum_reduction_for_comms(True)  # Gloo cannot average
        register_fsdp_forward_method(self.model, "training_step")

    def post_backward(self, closure_loss: Tensor) -> None:
        """Average the gradients of scalars. The average of earlier batches of the step stays the same."""
        assert self.model is not None
        for scalar in (p for p in self.model.parameters() if p in self._scalars and p.requires_grad):
            scalar.grad = torch.zeros_like(scalar) if scalar.grad is None else scalar.grad
            torch.distributed.all_reduce(scalar.grad)
            scalar.grad /= self.world_size

    def lightning_module_state_dict(self) -> dict[str, Any]:
        assert self.lightning_module is not None
        return gathered(self.lightning_module)

    def optimizer_state(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        state: dict[str, Any] = super().optimizer_state(optimizer)
        parts = {number: {name: full(value) for name, value in each.items()} for number, each in state["state"].items()}
        return {**state, "state": parts}

    def load_optimizer_state_dict(self, checkpoint: Mapping[str, Any]) -> None:
        """Load each optimiser's shard of the complete states of a checkpoint."""
        for optimizer, state in zip(self.optimizers, checkpoint["optimizer_states"], strict=True):
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            parts = {
                number: {name: _sharded(value, parameters[number]) for name, value in each.items()}
                for number, each in state["state"].items()
            }
            optimizer.load_state_dict({**state, "state": parts})

    def teardown(self) -> None:
        """Gather the parameters: the trained model is then an ordinary one."""
        model = self.lightning_module
        complete = (
            [] if model is None else [(module, *each) for module in model.modules() for each in _complete(module)]
        )
        super().teardown()  # moves the shards
        for module, name, parameter in complete:
            module.register_parameter(name, parameter)


@contextmanager
def _unsharded(module: nn.Module) -> Iterator[None]:
    """A context in which each device has all parameters of a module."""
    if not isinstance(module, FSDPModule):
        yield
        return
    module.unshard()
    try:
        yield
    finally:
        module.reshard()


def clip(parameters: Iterable[Tensor], most: float) -> None:
    """Clip the norm of the gradients of all parameters, some of which are sharded."""
    given = [p for p in parameters if p.grad is not None]
    parts = [[p for p in given if isinstance(p, DTensor) is shared] for shared in (True, False)]
    norms = [full(nn.utils.get_total_norm([p.grad for p in each])) for each in parts if each]  # type: ignore[misc]
    total = torch.linalg.vector_norm(torch.stack(norms))
    for each in parts:
        nn.utils.clip_grads_with_norm_(each, most, total, foreach=False)


def _complete(module: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """The sharded ones among a module's own parameters, complete and on the CPU."""
    for name, parameter in module.named_parameters(recurse=False):
        if isinstance(parameter, DTensor):
            yield name, nn.Parameter(full(parameter.detach()).cpu(), parameter.requires_grad)


def _sharded(value: Any, parameter: Tensor) -> Any:
    if not isinstance(parameter, DTensor) or not isinstance(value, Tensor) or value.shape != parameter.shape:
        return value
    return distribute_tensor(value.to(parameter.device), parameter.device_mesh, parameter.placements)


class Average:
    """The mean of the weights of a model after several validations, which varies less than the last weights.

    Vaswani et al. 2017, section 6.1, average the last five checkpoints in this way.

    Floating point parameters and buffers are averaged, including running statistics of batch normalisation; other
    buffers are the last ones. Sums are in float64: the mean of equal numbers is that number.

    Args:
        count: number of weights that are kept; with 1 the mean is the model itself, and nothing is kept.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.kept: deque[Mapping[str, Tensor]] = deque(maxlen=count)

    def add(self, model: nn.Module) -> None:
        """Keep the current weights."""
        if self.count > 1:
            self.kept.append({name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()})

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """A context in which the model has the mean of the kept weights; afterwards it has its own, bit by bit."""
        if len(self.kept) < 2:
            yield
            return
        own = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        model.load_state_dict(mean(list(self.kept)))
        try:
            yield
        finally:
            model.load_state_dict(own)


def mean(states: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of the floating point tensors of each name; other tensors are those of the last state."""
    return {
        name: torch.stack([state[name].double() for state in states]).mean(0).to(last.dtype)
        if last.is_floating_point()
        else last
        for name, last in states[-1].items()
    }


class TaskModule(LightningModule):
    """A task and the configuration of its training.

    The loss of a step is the mean over all targets of all its batches on all devices. Two devices, or two accumulated
    batches, are then equivalent to one batch with the same examples::

        gradient = sum_p d(total_p) / sum_p count_p        over the parts p of a step: batches and devices

    Args:
        task: the task.
        config: the configuration of the training.
        batches: the data loader of a device, by its number.
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
            # A batch may contain no target.
            self._first, self._counted = everywhere.clamp(min=1), torch.zeros_like(everywhere)
        self._counted += everywhere
        # DDP averages gradients over devices, and Lightning over batches, but their sum is needed. The count of all
        # batches is known only at the end of the step; until then the count of the first is used.
        loss = total * (self.trainer.world_size * parts) / self._first
        if self.config.hardware.shards and not self.task.uses_all:
            # All devices must exchange the same gradients, including those of parameters that one of them did not use.
            loss = loss + 0.0 * sum(p.sum() for p in self.model.parameters() if p.requires_grad)
        return {"loss": loss, "total": total.detach(), "count": count}

    def on_before_optimizer_step(self, optimizer: Any) -> None:
        """Divide the gradients by the count of all batches of the step."""
        if self.trainer.accumulate_grad_batches == 1:
            return
        factor = float(self._first / self._counted.clamp(min=1))
        for p in self.model.parameters():
            if p.grad is not None:
                p.grad *= factor

    def configure_gradient_clipping(
        self, optimizer: Any, gradient_clip_val: Any = None, gradient_clip_algorithm: Any = None
    ) -> None:
        if self.config.hardware.shards and gradient_clip_val:
            clip(self.model.parameters(), gradient_clip_val)
        elif not self.config.hardware.shards:
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)

    def configure_optimizers(self) -> Any:
        groups: dict[tuple[bool, float], list[Any]] = {}
        for name, p in self.model.named_parameters():
            if p.requires_grad:
                groups.setdefault((p.ndim > 1, self.task.rate(name)), []).append(p)
        filled = [
            {
                "params": groups[decays, rate],
                "weight_decay": self.config.optimiser.weight_decay if decays else 0.0,
                "lr": self.config.optimiser.learning_rate * rate,
            }
            for decays, rate in sorted(groups, key=lambda group: (not group[0], group[1]))
        ]
        optimizer = optimiser(filled, self.config)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, partial(factor, config=self.config))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class Seeds(Callback):
    """Seed the generators before each batch, from the seed, the device and the number of the batch.

    No state of a generator needs to be saved, and random numbers drawn elsewhere, such as in a validation, do not
    change the training.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_train_batch_start(self, trainer: Trainer, module: LightningModule, batch: Any, batch_idx: int) -> None:
        seed = int(np.random.SeedSequence([self.seed, trainer.global_rank, batch_idx]).generate_state(1)[0])
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)


class Metrics(Callback):
    """Logs the mean training loss and the learning rate.

    Args:
        every: steps between two lines of the log.
        per_epoch: batches per epoch.
        say: prints a line of progress; None if there is a progress bar.
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
        if not ends_step(trainer, batch_idx) or step % self.every:
            return
        parts = _gather(trainer, (float(self.total), float(self.count)))
        loss = sum(total for total, _ in parts) / sum(count for _, count in parts)
        self.total, self.count = 0.0, 0
        rate = trainer.optimizers[0].param_groups[0]["lr"]
        _log(trainer, {"loss": loss, "learning_rate": rate, "epoch": (batch_idx + 1) / self.per_epoch})
        if self.say is not None and trainer.is_global_zero:
            self.say(f"step {step} of {trainer.max_steps}  loss {loss:.3f}  {self._speed(trainer)}")

    def _speed(self, trainer: Trainer) -> str:
        assert self._since is not None
        speed = (trainer.global_step - self._since[0]) / (time.monotonic() - self._since[1])
        return f"{speed:.1f} steps/s  {duration((trainer.max_steps - trainer.global_step) / speed)} left at most"


class Validation(Callback):
    """Scores the model regularly, saves the weights of the best one, and stops training if it no longer improves.

    Args:
        weights: file for the weights of the best model, or of the last one without a validation split.
        config: interval, metric, patience, and number of averaged weights.
        say: prints a line for each validation.
        run: identity of the run, which is written with the weights.
    """

    def __init__(self, weights: Path, config: ValidationConfig, say: Callable[[str], None], run: str = "") -> None:
        self.weights, self.say, self.run = weights, say, run
        self.every, self.metric, self.patience = config.every, config.metric, config.patience
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
        if self.best_step:  # find damaged weights now, not at the end of training
            load_weights(self.weights, TRAIN_AFRESH, self.run)

    @property
    def stops(self) -> bool:
        """Whether patience is exhausted."""
        return 0 < self.patience <= self.waited

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        trainer.should_stop = self.stops  # training may have stopped at the step of this checkpoint

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        step = trainer.global_step
        if not ends_step(trainer, batch_idx) or (step % self.every and step != trainer.max_steps):
            return
        assert isinstance(module, TaskModule)
        self.average.add(module.model)
        with self.average.applied(module.model):
            scores = self._scores(trainer, module)
            better = not scores or not self.best or self._better(scores[self.metric], module.task)
            if better:
                save_weights(module.model, self.weights, trainer.is_global_zero, self.run)
        if scores:
            _log(trainer, {f"dev_{name}": score for name, score in scores.items()})
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

    def _scores(self, trainer: Trainer, module: TaskModule) -> dict[str, float]:
        module.model.eval()
        with torch.no_grad(), trainer.precision_plugin.val_step_context(), _unsharded(module):
            scores = module.task.validate(
                module.device, trainer.global_rank, trainer.world_size, lambda mine: _gather(trainer, mine)
            )
        module.model.train()
        return scores


class Checkpoints(Callback):
    """Writes checkpoints, and keeps the newest two, in case one is damaged.

    Args:
        folder: the folder of all checkpoints.
        every: steps between two checkpoints.
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
        if not ends_step(trainer, batch_idx) or (step % self.every and not last):
            return
        assert isinstance(module, TaskModule)
        check_finite(gathered(module.model))
        trainer.save_checkpoint(self.folder / checkpoint.name(step), weights_only=False)
        if trainer.is_global_zero:
            checkpoint.prune(self.folder, keep=2)


def ends_step(trainer: Trainer, batch_idx: int) -> bool:
    """Whether a batch is the last one of its step."""
    return (batch_idx + 1) % trainer.accumulate_grad_batches == 0


def _log(trainer: Trainer, numbers: dict[str, float]) -> None:
    for logger in trainer.loggers:
        logger.log_metrics(numbers, trainer.global_step)


def _gather(trainer: Trainer, mine: Any) -> list[Any]:
    if trainer.world_size == 1:
        return [mine]
    everyones: list[Any] = [None] * trainer.world_size
    torch.distributed.all_gather_object(everyones, mine)
    return everyones


class FolderCheckpoints(CheckpointIO):
    """Writes and reads checkpoints of the trainer with :mod:`structpe.tasks.training.checkpoint`."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        del storage_options
        save(checkpoint, Path(path))

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: Any = None) -> dict[str, Any]:
        del map_location, weights_only
        state: dict[str, Any] = load(Path(path))
        return state

    def remove_checkpoint(self, path: Any) -> None:
        remove(Path(path))
