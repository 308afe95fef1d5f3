"""A training in a process of its own, which writes down what it sees, and kills itself with signal 9 when told to.

``python -m tests.tasks.graph_to_text.survivor CONFIG FOLDER [collate N | write N]``: the kill comes when the N-th batch
of the process is collated, or when its N-th checkpoint is written but does not have its name yet.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from structpe.data.batch import Batch
from structpe.data.prepare import Preparer, StructureWithText
from structpe.tasks.runs import load_config, train
from structpe.tasks.training import checkpoint
from structpe.tasks.training.lightning_module import Checkpoints
from tests.tasks.graph_to_text.trial import is_trial

FOLDER = Path(sys.argv[2])
WHEN, NUMBER = (sys.argv[3], int(sys.argv[4])) if len(sys.argv) > 3 else ("never", 0)

collate, write, end = Preparer.collate, checkpoint.atomic_write_folder, Checkpoints.on_train_batch_end
count = {"collate": 0, "write": 0}


def rank() -> int:
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def happens(what: str) -> None:
    count[what] += 1
    if (what, count[what]) == (WHEN, NUMBER):
        os.kill(os.getpid(), signal.SIGKILL)


def told_collate(self: Preparer, examples: Sequence[StructureWithText], **how: Any) -> Batch:
    if is_trial():
        return collate(self, examples, **how)
    happens("collate")
    with (FOLDER / f"ids-{rank()}.txt").open("a") as file:
        print(*(example.id for example in examples), file=file)
    return collate(self, examples, **how)


def told_write(path: Path, fill: Any) -> None:
    def told(hidden: Path) -> None:
        fill(hidden)
        happens("write")

    write(path, told)


def told_end(self: Checkpoints, trainer: Any, module: Any, *rest: Any) -> None:
    end(self, trainer, module, *rest)
    digest = hashlib.sha256()
    for tensor in module.model.state_dict().values():
        digest.update(tensor.numpy().tobytes())
    (FOLDER / f"weights-{rank()}.txt").write_text(digest.hexdigest())


told_collate.__name__ = "collate"  # a method is pickled by the name of its function
# At the top, for the processes of several devices import this module anew.
Preparer.collate = told_collate  # type: ignore[method-assign]
checkpoint.atomic_write_folder = told_write
Checkpoints.on_train_batch_end = told_end  # type: ignore[method-assign]

if __name__ == "__main__":
    train(load_config(sys.argv[1]))
