"""The sites at which a position model acts, and what it returns there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from structpe.terms import Terms

__all__ = ["SITES", "Cache", "Site", "Sources"]


class Cache(Protocol):
    """What a decoder keeps of the units of one layer, such as their keys and values."""

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append those of new units, (b, h, n, width) each, and return those of all units so far."""
        ...


@dataclass(frozen=True)
class Site:
    """Where a position model acts.

    Attributes:
        layer: number of the layer, from 0.
        training: whether this is a training step, in which some models draw at random.
        cache: of the layer, for a model with its own attention in a decoder; None if there are no earlier units.
        dropout: probability that an attention weight is dropped, for a model with its own attention; 0 but in training.
    """

    layer: int
    training: bool = False
    cache: Cache | None = None
    dropout: float = 0.0


@dataclass(frozen=True, eq=False)
class Sources:
    """What an attention projects: the normalised hidden vectors three times, unless a position model changes them.

    Attributes:
        query: (b, n, d) of the units that attend.
        key: (b, c, d) of the units that are attended to; the last n of them are those of the queries. Any before them
            are of an earlier segment.
        value: (b, c, d) of the same units.
    """

    query: Tensor
    key: Tensor
    value: Tensor


SITES: dict[str, type] = {"inputs": Tensor, "layer": Tensor, "sources": Sources, "terms": Terms}
"""What a model returns at each site."""
