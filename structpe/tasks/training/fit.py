"""Training with Lightning, resumed from the newest checkpoint if there is one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import Logger, TensorBoardLogger
from lightning.pytorch.strategies import DDPStrategy

from structpe.system.printing import on_terminal, say
from structpe.system.processes import EndRequest, busy
from structpe.system.workers import ends_with_its_parent
from structpe.tasks.training import checkpoint
from structpe.tasks.training.batches import Batches
from structpe.tasks.training.config import HardwareConfig, TrainingConfig
from structpe.tasks.training.folder import number
from structpe.tasks.training.lightning_module import (
    Checkpoints,
    FolderCheckpoints,
    Metrics,
    Seeds,
    Sharded,
    TaskModule,
    Validation,
    ends_step,
)
from structpe.tasks.training.reporting import Bar, Cost, CsvLog, Silence, extra_loggers, silenced
from structpe.tasks.training.result import WEIGHTS, Result
from structpe.tasks.training.task import Task

__all__ = ["StopOnSignal", "fit", "result"]


class StopOnSignal(Callback):
    """Stop training after the current step when a signal arrives. It runs before the callback that writes checkpoints.

    On several devices, which would all have to stop at the same step, a signal ends the training at once and the newest
    checkpoint remains. The processes of devices end with the process that started them.
    """

    def __init__(self) -> None:
        # Created before Lightning installs its own handler: a second signal must act as before the training.
        self.asked = EndRequest("the training ends after this step, with a checkpoint; once more ends it at once")

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if trainer.world_size > 1:  # in a process of each device
            ends_with_its_parent()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.world_size == 1:
            self.asked.__enter__()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self.asked.number and ends_step(trainer, batch_idx):  # in the middle of a step there is no checkpoint
            trainer.should_stop = True

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.asked.__exit__()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self.asked.__exit__()


PRECISIONS: dict[str, Literal["32-true", "bf16-mixed"]] = {"float32": "32-true", "bf16-mixed": "bf16-mixed"}


def fit(
    task: Task,
    batches: Batches[Any, Any],
    config: TrainingConfig,
    folder: Path,
    also: Sequence[Callback] = (),
    fresh: bool = False,
    run: str = "",
) -> None:
    """Train to the end, from the newest checkpoint in ``folder``.

    Args:
        task: the model and its loss.
        batches: of the training split; their number is ``config.steps`` times ``config.accumulate``.
        config: the configuration of the training.
        folder: for checkpoints, weights and logs.
        also: further callbacks, called after each step before its checkpoint is written.
        fresh: begin at step 0 even if ``folder`` has checkpoints: another machine may not have removed them yet.
        run: identity of the run, which is written with the weights.

    Raises:
        ConfigError: a logger cannot be made.
        StoreError: all checkpoints are damaged, they belong to other data, or the weights belong to another run.
        StructPEError: training has diverged, and weights are not finite.
        KeyboardInterrupt, SystemExit: a signal ended the training; a checkpoint of the last step is written.
    """
    if warning := busy(1):
        say(warning)
    start = None if fresh else checkpoint.newest(folder / "checkpoints", say)
    step = 0 if start is None else int(start.name.removeprefix("step-"))
    if start is not None:
        say(f"going on after step {step}")
    log, stop = CsvLog(folder / "metrics.csv", step), StopOnSignal()
    if number(config.hardware) == 0:
        log.begin()
    board = TensorBoardLogger(folder, name="tensorboard", version="", purge_step=step + 1)
    bar = on_terminal()
    callbacks = [
        Silence(),
        Seeds(config.seed),
        Cost(),
        Metrics(config.logs.every, batches.plan.per_epoch, None if bar else say),
        Validation(folder / WEIGHTS, config.validation, say, run),
        *also,
        stop,
        Checkpoints(folder / "checkpoints", config.checkpoint_every),
        *([Bar()] if bar else []),
    ]
    with silenced():
        trainer = _trainer(task, config, folder, [log, board, *extra_loggers(config.logs.loggers)], callbacks)
        trainer.fit(TaskModule(task, config, batches.of), ckpt_path=start)
    if stop.asked.number:
        say(f"{folder}: a checkpoint is written after step {trainer.global_step}; the same command goes on with it")
        stop.asked.end()


def _trainer(
    task: Task, config: TrainingConfig, folder: Path, loggers: list[Logger], callbacks: list[Callback]
) -> Trainer:
    hardware = config.hardware
    return Trainer(
        accelerator=hardware.accelerator,
        devices=hardware.devices,
        num_nodes=hardware.nodes,
        strategy="auto" if hardware.processes == 1 else _on_several(task, hardware),
        precision=PRECISIONS[hardware.precision],
        max_steps=config.steps,
        max_epochs=-1,
        accumulate_grad_batches=config.accumulate,
        gradient_clip_val=config.optimiser.clip or None,
        deterministic=hardware.deterministic,
        logger=loggers,
        callbacks=callbacks,
        plugins=[FolderCheckpoints(), ThisMachine(number(hardware))],
        default_root_dir=folder,
        log_every_n_steps=1,
        # Validation and checkpoints are our own callbacks; the plan decides the order of batches.
        limit_val_batches=0,
        num_sanity_val_steps=0,
        enable_checkpointing=False,
        use_distributed_sampler=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


class ThisMachine(LightningEnvironment):
    """Start the processes of this machine, and find those of others by MASTER_ADDR and MASTER_PORT.

    The program that started the command, such as Slurm or torchrun, starts one process on each machine.

    Args:
        number: number of this machine, from 0.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    @property
    def creates_processes_externally(self) -> bool:
        return True

    def node_rank(self) -> int:
        return self._number


def _on_several(task: Task, config: HardwareConfig) -> DDPStrategy:
    if config.strategy == "fsdp":
        return Sharded(start_method="spawn")  # also for one device: the model of this process stays complete
    how: Literal["spawn", "popen"] = "spawn" if config.devices > 1 else "popen"  # popen starts no process
    return DDPStrategy(start_method=how, find_unused_parameters=not task.uses_all)


def result(folder: Path, config: TrainingConfig, per_epoch: int) -> Result:
    """The result of a training, from its last checkpoint, as several devices train in other processes than this."""
    last = checkpoint.newest(folder / "checkpoints")
    assert last is not None
    state = checkpoint.load(last)
    validation = state["callbacks"]["Validation"]
    steps = state["global_step"]
    early, epochs = steps < config.steps, steps * config.accumulate / per_epoch
    costs = state["callbacks"].get("Cost", {})
    return Result(steps, validation["best_step"], validation["best"], early, **costs, epochs=epochs)
