"""How a training ended, and the file with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Self

import msgspec

from structpe.checksums import read_sealed, sealed_lines
from structpe.errors import undamaged
from structpe.files import atomic_text

__all__ = ["FILE", "Ended", "Result"]

FILE = "result.json"


@dataclass(frozen=True)
class Ended:
    """The result of a run, in a file of its folder."""

    remedy: ClassVar[str]
    """What to do if the file is damaged."""

    def save(self, folder: Path, of: Mapping[str, str] | None = None) -> None:
        """Write it; from then on the run is finished.

        Args:
            folder: of the run.
            of: digests of what it is the result of, by their names: the ``run``, the ``weights``.
        """
        atomic_text(folder / FILE, sealed_lines({**asdict(self), "of": dict(of or {})}))

    @classmethod
    def of(cls, folder: Path) -> dict[str, str]:
        """The digests that the file of :meth:`save` holds; those that an older structpe did not write are not there."""
        file = folder / FILE
        if not file.exists():
            return {}
        with undamaged(file, cls.remedy):
            return msgspec.convert(read_sealed(file.read_text(encoding="utf-8")).get("of", {}), dict[str, str])

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """The result in the folder of a run; None if the run is not finished."""
        file = folder / FILE
        if not file.exists():
            return None
        with undamaged(file, cls.remedy):
            return msgspec.convert(read_sealed(file.read_text(encoding="utf-8")), cls)


@dataclass(frozen=True)
class Result(Ended):
    """How a training ended.

    Attributes:
        steps: how many it took.
        best_step: after which of them the model was best.
        best: its scores on the validation split; empty without a split, where the last model is kept.
        stopped_early: whether training stopped because the model got no better.
        step_seconds: median time of a step: forward, backward, update; without making the batch.
        seconds: time that training took in all, validations included; of all processes that worked on it.
        cpu_seconds: of them, time of the CPU, over all threads; without workers that collate, and of one device.
        epochs: how often each training example was seen.
        peak_bytes: most memory that a process that worked on it, or the GPU, had in use.
    """

    remedy = "remove it, and the training goes on from its last checkpoint"

    steps: int
    best_step: int
    best: dict[str, float]
    stopped_early: bool
    step_seconds: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    epochs: float = 0.0
    peak_bytes: int = 0

    def __str__(self) -> str:
        scores = "  ".join(f"{name} {score:.4g}" for name, score in self.best.items())
        why = "as the model got no better" if self.stopped_early else "as many as were asked for"
        return f"{self.steps} steps, {why}; best after {self.best_step}" + (f": {scores}" if scores else "")
