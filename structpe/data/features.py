"""Kinds of features of nodes and edges: columns of categories, or real numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from structpe.errors import ConfigError

__all__ = ["Categories", "Features", "Numbers"]


@dataclass(frozen=True)
class Categories:
    """Columns of integers. Each column has its own embedding; a node's vector is their sum.

    Args:
        sizes: number of categories of each column: its values are 0..size-1.
    """

    sizes: tuple[int, ...]

    @property
    def columns(self) -> int:
        """Number of columns."""
        return len(self.sizes)

    def check(self, values: NDArray[np.generic], what: str) -> None:
        """Check that values are of this kind.

        Raises:
            ConfigError: they are not integers, have the wrong number of columns, or one is out of range.
        """
        _check_columns(self.columns, values, what)
        if values.dtype.kind not in "iu":
            raise ConfigError(f"{what} are categories, so they must be integers; they have dtype {values.dtype}")
        for column, size in enumerate(self.sizes):
            low, high = int(values[:, column].min(initial=0)), int(values[:, column].max(initial=0))
            if low < 0 or high >= size:
                raise ConfigError(
                    f"{what}: column {column} has values from {low} to {high}; it has {size} categories, 0..{size - 1}"
                )


@dataclass(frozen=True)
class Numbers:
    """Vectors of real numbers, mapped linearly.

    Args:
        columns: length of the vectors.
    """

    columns: int

    def check(self, values: NDArray[np.generic], what: str) -> None:
        """Check that values are of this kind.

        Raises:
            ConfigError: they are not numbers, have the wrong number of columns, or one is not finite.
        """
        _check_columns(self.columns, values, what)
        if values.dtype.kind not in "biuf":
            raise ConfigError(f"{what} must be real numbers; they have dtype {values.dtype}")
        if not np.isfinite(values).all():
            raise ConfigError(f"{what} are not all finite; remove or fill NaN and infinity first")


Features: TypeAlias = Categories | Numbers | None
"""None means that there are no features: all nodes, or edges, are alike."""


def _check_columns(columns: int, values: NDArray[np.generic], what: str) -> None:
    if values.ndim != 2 or values.shape[1] != columns:
        raise ConfigError(f"{what} have shape {values.shape}; {columns} numbers are needed for each")
