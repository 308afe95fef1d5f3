"""What an item is that has a target: a graph, a node, a pair of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from structpe.errors import ConfigError
from structpe.registry import Registry
from structpe.structure import Structure

__all__ = ["LEVELS", "Level"]


@dataclass(frozen=True)
class Level:
    """What an item is.

    Attributes:
        name: the word for one of them, in the singular.
        single: whether all items are in one graph.
        count: (graphs, targets) -> the number of items.
    """

    name: str
    single: bool
    count: Callable[[Sequence[Structure], Any], int]


LEVELS: Registry[Level] = Registry("structpe.objectives", "level", ConfigError)
"""Every level by its name."""

for _level in (
    Level("graph", False, lambda graphs, targets: len(graphs)),
    Level("node", True, lambda graphs, targets: graphs[0].size),
    Level("pair", True, lambda graphs, targets: len(targets)),
):
    LEVELS.add(_level.name, _level)
