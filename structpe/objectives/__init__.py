"""What is learned: targets, the loss, the answer and the metric of each kind, one file each."""

from structpe.objectives.base import OBJECTIVES, Objective
from structpe.objectives.levels import LEVELS, Level
from structpe.objectives.metrics import METRICS, Metric

__all__ = ["LEVELS", "METRICS", "OBJECTIVES", "Level", "Metric", "Objective"]
