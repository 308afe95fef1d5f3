"""A bar that shows how far training is, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lightning.pytorch import Callback, LightningModule, Trainer

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["Bar"]

EVERY = 10
"""Steps between two looks at the loss: on a GPU each waits for all that was begun."""


class Bar(Callback):
    """Steps done, of all; steps per second; time left; the loss of the last batch.

    Lightning's own bar counts epochs, of which there is one here.
    """

    def __init__(self) -> None:
        self._bar: tuple[Progress, TaskID] | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.is_global_zero:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            text = TextColumn("loss {task.fields[loss]:.3f}")
            columns = (BarColumn(), MofNCompleteColumn(), TextColumn("steps"), TimeRemainingColumn(), text)
            progress = Progress(*columns, console=Console(stderr=True))
            task = progress.add_task("", total=trainer.max_steps, completed=trainer.global_step, loss=float("nan"))
            progress.start()
            self._bar = progress, task

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self._bar is not None:
            progress, task = self._bar
            shown: dict[str, Any] = {} if batch_idx % EVERY else {"loss": float(outputs["total"] / outputs["count"])}
            progress.update(task, completed=trainer.global_step, **shown)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self._stop()

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar[0].stop()
            self._bar = None
