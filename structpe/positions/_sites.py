"""The sites at which a position model acts, and what it returns there."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from structpe.terms import Terms

__all__ = ["SITES", "Site", "Sources"]


@dataclass(frozen=True)
class Site:
    """Where a position model acts.

    Attributes:
        layer: number of the layer, from 0.
        training: whether this is a training step, in which some models draw at random.
    """

    layer: int
    training: bool = False


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
