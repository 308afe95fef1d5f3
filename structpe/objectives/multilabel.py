"""Several yes-or-no questions."""

from __future__ import annotations

from dataclasses import dataclass

from structpe.objectives._answers import Answers

__all__ = ["Multilabel"]


@dataclass(frozen=True)
class Multilabel(Answers, name="multilabel", metrics=("rocauc", "ap")):
    """Binary cross entropy of each label. Targets: (., outputs) floats, 0 or 1, NaN where not known."""
