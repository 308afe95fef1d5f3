"""How examples of the splits are made at each level: one file per level."""

from structpe.tasks.prediction.sources.base import SOURCES, Data, Source

__all__ = ["SOURCES", "Data", "Source"]
