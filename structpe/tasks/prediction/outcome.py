"""The result of a run of prediction."""

from __future__ import annotations

from dataclasses import dataclass, field

from structpe.tasks.training.result import Ended, Result

__all__ = ["Outcome"]


@dataclass(frozen=True)
class Outcome(Ended):
    """The result of a run of prediction.

    Attributes:
        metric: name of the official metric.
        valid: value of the best model on the validation split; None without a validation split, when the last model is
            kept.
        test: value of the same model on the test split, computed once.
        parameters: of the model, all that are trained.
        encoding_seconds: seconds to encode all graphs; 0 if there are no encodings.
        training: the result of training.
        versions: of the software, the commit and the machine.
        data: name of the data in the benchmark.
        note: remark that belongs to its results.
        others: values of the other metrics of the objective on the test split.
    """

    remedy = "remove the folder, and train again"

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

    def __str__(self) -> str:
        valid = "no validation split" if self.valid is None else f"{self.valid:.4g} on the validation split"
        others = "".join(f", {name} {value:.4g}" for name, value in self.others.items())
        return f"{self.metric} {self.test:.4g}{others} on the test split, {valid}"
