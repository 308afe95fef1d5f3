"""What a run of prediction came to."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

from structpe.checksums import read_sealed, sealed_lines
from structpe.errors import undamaged
from structpe.files import atomic_write
from structpe.tasks.training.result import FILE, Result

__all__ = ["Outcome"]


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Attributes:
        metric: name of the official metric.
        valid: its value on the validation split, of the best model; None without a validation split, where the last
            model is kept.
        test: its value on the test split, of the same model, computed once.
        parameters: of the model, all that are trained.
        encoding_seconds: what it took to encode all graphs; 0 where no encoding is asked for.
        training: how the training went.
        versions: of the software, the commit and the machine.
        data: what the benchmark calls its data.
        note: what must be said beside its numbers.
        others: on the test split, the values of further metrics that the objective reports.
    """

    metric: str
    valid: float | None
    test: float
    parameters: int
    encoding_seconds: float
    training: Result
    versions: dict[str, str]
    data: str = ""
    note: str = ""
    others: dict[str, float] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        """Write it; from then on the run is finished."""
        text = sealed_lines(asdict(self))
        atomic_write(folder / FILE, lambda hidden: hidden.write_text(text, encoding="utf-8"))

    @classmethod
    def load(cls, folder: Path) -> Outcome | None:
        """Of a finished run; None where training has not ended."""
        file = folder / FILE
        if not file.exists():
            return None
        with undamaged(file, "remove the folder, and train again"):
            content = read_sealed(file.read_text(encoding="utf-8"))
            return cls(**content | {"training": Result(**content["training"])})

    def __str__(self) -> str:
        valid = "no validation split" if self.valid is None else f"{self.valid:.4g} on the validation split"
        others = "".join(f", {name} {value:.4g}" for name, value in self.others.items())
        return f"{self.metric} {self.test:.4g}{others} on the test split, {valid}"
