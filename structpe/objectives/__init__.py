"""What is learned: targets, the loss, the answer and the metric of each kind, one file each."""

from structpe.objectives.base import LEVELS, OBJECTIVES, Level, Objective
from structpe.objectives.metrics import METRICS, Metric

__all__ = ["LEVELS", "METRICS", "OBJECTIVES", "Level", "Metric", "Objective"]
