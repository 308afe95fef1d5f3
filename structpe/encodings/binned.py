"""Distances in a few bins per structure, exact near zero and coarse far away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structpe.encodings.base import ENCODINGS, UNREACHABLE, WITHIN, Column, Encoded, Encoding, check_all_pairs
from structpe.encodings.columns import narrow
from structpe.errors import EncodingError
from structpe.structure import Structure

__all__ = ["Binned", "Numbers", "edges_of_areas", "edges_of_offsets"]


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


_FAR = 1000
"""Offsets of this size or more count as unreachable, as in the authors' code."""


@dataclass(frozen=True)
class Binned(Encoding, name="binned"):
    """Distances in a few bins per structure, exact near zero and coarse far away.

    The bin of each pair's distance, float32: the edge of the bin that is farther from zero.

    Each structure has its own bins, computed from all its pairs: ``bins`` of them, including that of UNREACHABLE
    (Zuegner et al. 2021, appendix, and their code). If there are fewer distinct integers than bins, they stay
    unchanged. Otherwise ``fixed`` integers have a bin each: for 9 those from -4 to 4, or from 0 to 8 if none is
    negative. The remaining bins are shared between lower and higher distances in proportion to their pairs; lower ones
    that are too few for a bin are UNREACHABLE. Bins have equal areas, where the area between neighbouring distances
    x < y is sqrt(y - x); if a distance is negative, areas grow by ``growth`` away from zero. Units of one node at
    offset k count as k. Real numbers, such as ``personalized-pagerank``, have bins of equal area only.

    Args:
        of: an encoding of one number per pair; or its name, or a mapping with its name and options.
        bins: number of bins; fewer only if a structure has fewer distances.
        fixed: how many integers around zero have a separate bin.
        growth: how much larger each area is than the one before; None for equal areas.

    Raises:
        EncodingError: fewer than 3 bins, a negative number of fixed ones, a growth of 1 or less, or an encoding
            without one number per pair.
    """

    arity = 2
    real = True
    recurs = True
    codes = ("unreachable",)

    of: Encoding = field(default_factory=lambda: ENCODINGS["undirected-distance"]())
    bins: int = 32
    fixed: int = 9
    growth: float | None = 1.3

    def __post_init__(self) -> None:
        if self.bins < 3 or self.fixed < 0 or (self.growth is not None and not 1 < self.growth < np.inf):
            raise EncodingError(
                f"encoding {self.name!r} needs 3 bins or more, 0 fixed ones or more, and a growth above 1, or None; "
                f"given are {self.bins} bins, {self.fixed} fixed and growth {self.growth}"
            )
        if self.of.arity != 2 or self.of.sparse:
            raise EncodingError(f"encoding {self.name!r} needs one number for each pair; {self.of.name!r} has none")

    def many(self, structures: Sequence[Structure]) -> Column:
        check_all_pairs(self, structures)
        found = zip(structures, self.of.many(structures), strict=True)
        return Column.of([self._binned(structure, encoded) for structure, encoded in found], self)

    def _binned(self, structure: Structure, encoded: Encoded) -> Encoded:
        values, index = _steps(encoded.distinct), encoded.index
        if index is None or values.ndim != 1:
            raise self.error(structure, f"it needs one number for each pair; {self.of.name!r} has several")
        used = np.bincount(index.reshape(-1), minlength=len(values)) > 0  # nodes without units have values too
        values, where = np.unique(values[used], return_inverse=True)
        index = where.reshape(-1)[(np.cumsum(used) - 1)[index]]
        pairs = np.bincount(index.reshape(-1), minlength=len(values))
        plain = values < UNREACHABLE // 2
        binned = values.astype(np.float64)
        if values.dtype.kind in "iu":
            near = plain & (np.abs(values) < _FAR)
            binned[plain & ~near] = UNREACHABLE
            binned[near] = self._of_offsets(binned[near], pairs[near])
        elif plain.any():
            missing = bool((values == UNREACHABLE).any())
            binned[plain] = _upper(binned[plain], edges_of_areas(binned[plain], self.bins - 1 - missing))
        distinct, where = np.unique(binned.astype(np.float32), return_inverse=True)
        return Encoded(distinct, narrow(where.reshape(-1)[index]))

    def fit(self, structures: Sequence[Structure]) -> Encoding:
        return replace(self, of=self.of.fit(structures))

    @property
    def learns(self) -> bool:
        return self.of.learns

    def options(self) -> dict[str, Any]:
        return {**super().options(), "of": {"name": self.of.name, **self.of.options()}}

    def _of_offsets(self, distinct: Numbers, pairs: NDArray[np.int64]) -> Numbers:
        if len(distinct) + 1 < self.bins:
            return distinct
        edges = edges_of_offsets(distinct, pairs, self.bins - 1, self.fixed, self.growth)
        down = _upper(-distinct, -edges[edges < 0][::-1])
        return np.where(
            distinct >= 0, _upper(distinct, edges[edges >= 0]), np.where(down < UNREACHABLE, -down, UNREACHABLE)
        )


def _steps(values: NDArray[Any]) -> NDArray[Any]:
    """Replace WITHIN + k by k: real numbers may be converted to half precision, which cannot store special values."""
    return np.where(values > UNREACHABLE + UNREACHABLE // 2, values - WITHIN, values)


def _upper(values: Numbers, edges: Numbers) -> Numbers:
    """The smallest edge that is at least each value; UNREACHABLE above the largest edge."""
    # Both in float32, as in the authors' code: an edge that equals a value up to rounding is that value.
    edges = np.append(edges, UNREACHABLE).astype(np.float32)
    upper: Numbers = edges[np.searchsorted(edges, values.astype(np.float32), side="left")].astype(np.float64)
    return upper
