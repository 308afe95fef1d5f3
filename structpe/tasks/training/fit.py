"""Training by Lightning, from the newest checkpoint on where there is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import Logger, TensorBoardLogger
from lightning.pytorch.strategies import DDPStrategy
from torch import nn

from structpe.errors import StoreError, undamaged
from structpe.system.printing import on_terminal, say
from structpe.system.processes import EndRequest, busy
from structpe.system.workers import ends_with_its_parent
from structpe.tasks.training import checkpoint
from structpe.tasks.training.batches import Batches
from structpe.tasks.training.config import TrainingConfig
from structpe.tasks.training.folder import number
from structpe.tasks.training.lightning_module import (
    Checkpoints,
    FolderCheckpoints,
    Metrics,
    Seeds,
    Sharded,
    TaskModule,
    Validation,
)
from structpe.tasks.training.reporting import Bar, Cost, CsvLog, Quiet, further, quiet
from structpe.tasks.training.result import KEY, VERSION, WEIGHTS, Result
from structpe.tasks.training.task import Task

__all__ = ["Ending", "check_fit", "fit", "result"]


class Ending(Callback):
    """Stops training after a step once a signal has asked for it. It comes before the callback that writes checkpoints.

    On several devices nothing is heard, as all would have to stop at one step: there a signal ends the training at
    once, and its newest checkpoint is what is left. The processes of devices end with the one that started them.
    """

    def __init__(self) -> None:
        # Created before Lightning installs its own handler: a second signal must do what it did before the training.
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
        if self.asked.number:
            trainer.should_stop = True

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.asked.__exit__()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self.asked.__exit__()


OTHERWISE = "give the config.yaml that they were trained with"


def check_fit(make: Callable[[], nn.Module], path: Path, remedy: str, but: Sequence[str] = ()) -> None:
    """Compare the header of a file of weights with a model without memory: a configuration may ask for any sizes.

    A file that is missing or of another version is left to :func:`structpe.tasks.training.result.load_weights`.

    Args:
        make: the model.
        path: the file.
        remedy: what to do where it is damaged.
        but: with what names of weights begin that may differ.

    Raises:
        StoreError: the file is damaged, or has weights of other names or shapes than the model.
    """
    if (there := _shapes(path, remedy)) is None:
        return
    try:
        with torch.device("meta"):
            draft = make()
    except Exception:  # a model of someone's own may need values to be made, and others raise the same when made
        return
    here = {name: tuple(tensor.shape) for name, tensor in draft.state_dict().items()}
    names = [name for name in {**here, **there} if not name.startswith(tuple(but))]
    wrong = [name for name in names if here.get(name) != there.get(name)]
    if wrong:
        name = wrong[0]
        raise StoreError(
            f"the weights are not those of this model: {name} has {_said(there.get(name))} in the file and "
            f"{_said(here.get(name))} by the configuration, and {len(wrong) - 1} others differ; "
            f"{OTHERWISE}, or {remedy}"
        ).at(path)


def _shapes(path: Path, remedy: str) -> dict[str, tuple[int, ...]] | None:
    """Of each tensor; None if the file is missing or of another version."""
    from safetensors import safe_open

    if not path.is_file():
        return None
    with undamaged(path, remedy), safe_open(path, "pt") as file:
        if (file.metadata() or {}).get(KEY, "").partition(":")[0] != VERSION:
            return None
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


def _said(shape: tuple[int, ...] | None) -> str:
    return "nothing" if shape is None else f"shape {shape}"


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
    """Train to the end, from the newest checkpoint in ``folder`` on.

    Args:
        task: what is trained.
        batches: of the training split; their number is ``config.steps`` times ``config.accumulate``.
        config: how.
        folder: for checkpoints, weights and logs.
        also: further callbacks, called after each step before its checkpoint is written.
        fresh: begin at step 0, whatever lies in ``folder``: another machine may not have emptied it yet.
        run: identity of the run, which the weights are tied to.

    Raises:
        ConfigError: a logger cannot be made.
        StoreError: there are checkpoints, but none is whole, they belong to other data, or weights to another run.
        StructPEError: training has diverged: its weights are no finite numbers any more.
        KeyboardInterrupt, SystemExit: a signal has asked it to end; a checkpoint of its last step is written.
    """
    if warning := busy(1):
        say(warning)
    start = None if fresh else checkpoint.newest(folder / "checkpoints", say)
    step = 0 if start is None else int(start.name.removeprefix("step-"))
    if start is not None:
        say(f"going on after step {step}")
    log, ending = CsvLog(folder / "metrics.csv", step), Ending()
    if number(config) == 0:
        log.begin()
    board = TensorBoardLogger(folder, name="tensorboard", version="", purge_step=step + 1)
    validation = Validation(folder / WEIGHTS, config, say, run)
    callbacks = _callbacks(config, folder, batches.plan.per_epoch, [validation, *also, ending])
    with quiet():
        trainer = _trainer(task, config, folder, [log, board, *further(config.loggers)], callbacks)
        trainer.fit(TaskModule(task, config, batches.of), ckpt_path=start)
    if ending.asked.number:
        say(f"{folder}: a checkpoint is written after step {trainer.global_step}; the same command goes on with it")
        ending.asked.end()


def _trainer(
    task: Task, config: TrainingConfig, folder: Path, loggers: list[Logger], callbacks: list[Callback]
) -> Trainer:
    return Trainer(
        accelerator=config.accelerator,
        devices=config.devices,
        num_nodes=config.nodes,
        strategy="auto" if config.processes == 1 else _on_several(task, config),
        precision=PRECISIONS[config.precision],
        max_steps=config.steps,
        max_epochs=-1,
        accumulate_grad_batches=config.accumulate,
        gradient_clip_val=config.clip or None,
        deterministic=config.deterministic,
        logger=loggers,
        callbacks=callbacks,
        plugins=[FolderCheckpoints(), Machine(number(config))],
        default_root_dir=folder,
        log_every_n_steps=1,
        # Validation and checkpoints are callbacks of our own; the order of batches is the plan's.
        limit_val_batches=0,
        num_sanity_val_steps=0,
        enable_checkpointing=False,
        use_distributed_sampler=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


class Machine(LightningEnvironment):
    """Processes of this machine are started here, and find those of others by MASTER_ADDR and MASTER_PORT.

    Whatever has started the command, such as Slurm or torchrun, starts one process on each machine.

    Args:
        number: which machine this is, from 0.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    @property
    def creates_processes_externally(self) -> bool:
        return True

    def node_rank(self) -> int:
        return self._number


def _on_several(task: Task, config: TrainingConfig) -> DDPStrategy:
    if config.strategy == "fsdp":
        return Sharded(start_method="spawn")  # also for one device: the model here stays whole
    how: Literal["spawn", "popen"] = "spawn" if config.devices > 1 else "popen"  # which starts no process
    return DDPStrategy(start_method=how, find_unused_parameters=not task.uses_all)


def _callbacks(config: TrainingConfig, folder: Path, per_epoch: int, also: list[Callback]) -> list[Callback]:
    bar = on_terminal()
    callbacks = [
        Quiet(),
        Seeds(config.seed),
        Cost(),
        Metrics(config.log_every, per_epoch, None if bar else say),
        *also,
        Checkpoints(folder / "checkpoints", config.checkpoint_every),
    ]
    return [*callbacks, Bar()] if bar else callbacks


def result(folder: Path, config: TrainingConfig, per_epoch: int) -> Result:
    """How a training ended, from its last checkpoint: with several devices, it ran in other processes than this."""
    last = checkpoint.newest(folder / "checkpoints")
    assert last is not None
    state = checkpoint.load(last)
    validation = state["callbacks"]["Validation"]
    steps = state["global_step"]
    early, epochs = steps < config.steps, steps * config.accumulate / per_epoch
    costs = state["callbacks"].get("Cost", {})
    return Result(steps, validation["best_step"], validation["best"], early, **costs, epochs=epochs)
