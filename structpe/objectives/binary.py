"""One yes-or-no question."""

from __future__ import annotations

from dataclasses import dataclass

from structpe.errors import ConfigError
from structpe.objectives._answers import Answers

__all__ = ["Binary"]


@dataclass(frozen=True)
class Binary(Answers, name="binary", metrics=("rocauc", "ap")):
    """Binary cross entropy, -y log s(p) - (1 - y) log(1 - s(p)), s the sigmoid.

    Targets: (., 1) floats, 0 or 1, NaN where not known.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.outputs != 1:
            raise ConfigError(f"outputs is {self.outputs}; a binary objective has 1, use multilabel for several")
