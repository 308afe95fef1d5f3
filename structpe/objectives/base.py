"""An objective: the targets, the loss of training, and the official metric."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool
from numpy.typing import NDArray
from torch import Tensor

from structpe.errors import ConfigError
from structpe.registry import Registered, Registry
from structpe.structure import Structure

__all__ = ["LEVELS", "OBJECTIVES", "Level", "Objective", "by_name"]


@dataclass(frozen=True)
class Level:
    """The kind of the items that are predicted.

    Attributes:
        name: the word for one item.
        single: whether all items are in one graph.
        count: (graphs, targets) -> the number of items.
    """

    name: str
    single: bool
    count: Callable[[Sequence[Structure], Any], int]


LEVELS: Registry[Level] = Registry("structpe.objectives", "level", ConfigError, own=False)
"""Every level by its name."""

for _level in (
    Level("graph", False, lambda graphs, targets: len(graphs)),
    Level("node", True, lambda graphs, targets: graphs[0].size),
    Level("pair", True, lambda graphs, targets: len(targets)),
):
    LEVELS.add(_level.name, _level)


OBJECTIVES: Registry[type[Objective]] = Registry("structpe.objectives", "objective", ConfigError)
"""Every objective by its name."""


@dataclass(frozen=True)
class Objective(Registered, ABC):
    """The targets of predictions, and how predictions are scored.

    Args:
        level: level of the items, a name of :data:`~structpe.objectives.base.LEVELS`.
        outputs: number of numbers, classes, labels, or categories.
        metric: name of the official metric, one of ``metrics``.

    Raises:
        ConfigError: there is no such level, or the metric does not suit the objective.
    """

    level: str
    outputs: int
    metric: str

    registry = OBJECTIVES
    metrics: ClassVar[tuple[str, ...]]
    """Names of the possible metrics, the default first."""

    def __init_subclass__(cls, name: str = "", metrics: tuple[str, ...] = (), **options: Any) -> None:
        super().__init_subclass__(name, **options)
        if metrics:
            cls.metrics = metrics

    def __post_init__(self) -> None:
        """Check the level and the metric."""
        LEVELS[self.level]  # raises for an unknown name
        if self.metric not in self.metrics:
            known = " or ".join(self.metrics)
            raise ConfigError(f"metric is {self.metric!r}; the objective {self.name!r} takes {known}")

    @property
    def numbers(self) -> int:
        """Number of numbers that a model predicts for each item."""
        return self.outputs

    @property
    def reported(self) -> tuple[str, ...]:
        """Names of the metrics that a split is scored by, the official one first."""
        return (self.metric,)

    def check(self, targets: NDArray[Any]) -> None:
        """Check that targets have the shape, type and range that the loss needs.

        Raises:
            ConfigError: they do not.
        """
        if not self._suits(targets):
            low, high = (targets.min(), targets.max()) if targets.size else ("nothing", "nothing")
            found = f"targets have shape {targets.shape} and dtype {targets.dtype}, from {low} to {high}"
            raise ConfigError(f"{found}; {self._needed()} are needed for the objective {self.name!r}")

    @abstractmethod
    def _needed(self) -> str:
        """The valid targets, in words."""

    @abstractmethod
    def _suits(self, targets: NDArray[Any]) -> bool:
        """Whether targets are valid."""

    def known(self, targets: NDArray[Any]) -> Bool[np.ndarray, " c"]:
        """Whether the target of each item is known, at least in part."""
        rows = targets.reshape(len(targets), -1)
        known: NDArray[np.bool_] = rows >= 0 if rows.dtype.kind in "iu" else ~np.isnan(rows)
        return np.asarray(known.any(axis=1))

    def start(self, targets: NDArray[Any]) -> NDArray[np.float64] | None:
        """(``numbers``,) the predictions of a model for all items before training; None for any numbers near 0.

        Args:
            targets: those of the training items, as :meth:`check` wants them.
        """
        del targets
        return None

    @abstractmethod
    def loss(self, predicted: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """The sum of losses over all targets that are known, and their number.

        Args:
            predicted: predictions for c items, (c, ``numbers``).
            target: their targets, as :meth:`check` wants them.
        """

    def answer(self, predicted: Tensor, target: Tensor) -> Tensor:
        """The prediction for the metric, by default that of the model.

        Args:
            predicted: as for :meth:`loss`.
            target: likewise.
        """
        del target
        return predicted

    def columns(self, predicted: Tensor, names: Sequence[str]) -> Mapping[str, NDArray[Any]]:
        """The predictions for c items as columns of a table, by default the numbers themselves.

        Args:
            predicted: as for :meth:`loss`.
            names: of the ``outputs`` numbers, labels or classes.
        """
        return by_name(predicted, names)


def by_name(predicted: Tensor, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """A column (c,) for each column of a matrix (c, names)."""
    return dict(zip(names, predicted.T.cpu().numpy(), strict=True))
