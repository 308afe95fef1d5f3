"""A signal that asks a training to end lets it end after the step that it is in, with a checkpoint."""

from __future__ import annotations

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from structpe.signals import EndRequest
from structpe.workers import ends_with_its_parent

__all__ = ["Ending"]


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
