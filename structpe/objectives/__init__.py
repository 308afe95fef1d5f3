"""Objectives: the targets, loss, answer and metric of each kind of prediction."""

from structpe.objectives.base import LEVELS, OBJECTIVES, Level, Objective
from structpe.objectives.metrics import METRICS, Metric

__all__ = ["LEVELS", "METRICS", "OBJECTIVES", "Level", "Metric", "Objective"]
