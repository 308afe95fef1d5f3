"""Objectives: the targets, loss, answer and metric of each kind of prediction.

Every class of the registry can be imported from here: ``from structpe.objectives import Regression``.
"""

from structpe.objectives.base import LEVELS, OBJECTIVES, Level, Objective
from structpe.objectives.metrics import METRICS, Metric

__all__ = ["LEVELS", "METRICS", "OBJECTIVES", "Level", "Metric", "Objective"]

__getattr__, __dir__ = OBJECTIVES.face()
