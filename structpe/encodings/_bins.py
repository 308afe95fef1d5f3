"""Edges of bins of distances, as in the code of the Code Transformer (Zuegner et al. 2021)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Numbers", "edges_of_areas", "edges_of_offsets"]

Numbers = NDArray[np.float64]


def edges_of_areas(distinct: Numbers, bins: int, growth: float | None = None) -> Numbers:
    """(bins + 1,) edges of bins with equal areas, or with areas that grow from bin to bin.

    The area between neighbours x < y is sqrt(y - x), so bins are narrow where there are many distances.

    Args:
        distinct: the distinct distances, ascending.
        bins: number of bins.
        growth: how much larger each area is than the one before; None for equal areas.
    """
    area = np.concatenate([[0.0], np.cumsum(np.diff(distinct) ** 0.5)])
    cuts = np.linspace(0, area[-1], bins + 1)
    if growth is not None and area[-1] > 0:
        first = area[-1] / (growth**bins - 1)
        cuts = first * ((area[-1] + first) / first) ** (cuts / area[-1]) - first
    return np.interp(cuts, area, distinct)


def edges_of_offsets(
    distinct: Numbers, pairs: NDArray[np.int64], edges: int, fixed: int, growth: float | None
) -> Numbers:
    """(edges,) edges of integers: ``fixed`` of them exact, the others by area.

    Args:
        distinct: the distinct integers, ascending; more than ``edges``.
        pairs: number of pairs with each integer.
        edges: number of edges.
        fixed: how many integers around zero are edges; they start at zero if none is negative.
        growth: as in :func:`edges_of_areas`, away from zero; not used if no integer is negative.
    """
    if edges <= fixed:
        return edges_of_areas(distinct, edges - 1)
    if distinct[0] >= 0:
        rest = distinct[distinct > fixed]
        coarse = distinct[-1:] if edges - fixed == 1 else edges_of_areas(rest, edges - fixed - 1)
        return np.concatenate([np.arange(fixed), coarse])
    low, high = -(fixed // 2), -(-fixed // 2)
    below, above = distinct < low, distinct >= high
    outer = pairs[below].sum() + pairs[above].sum()
    under = int(np.floor(pairs[below].sum() / outer * (edges - fixed)))
    over = int(np.ceil(pairs[above].sum() / outer * (edges - fixed)))
    lower = -_outer(-distinct[below][::-1], under, growth)[::-1]
    return np.concatenate([lower, np.arange(low, high), _outer(distinct[above], over, growth)])


def _outer(distinct: Numbers, bins: int, growth: float | None) -> Numbers:
    """(bins,) the upper edges of bins of distances above the exact ones."""
    if bins < 2:
        return distinct[-1:] if bins else distinct[:0]
    return edges_of_areas(distinct, bins, growth)[1:]
