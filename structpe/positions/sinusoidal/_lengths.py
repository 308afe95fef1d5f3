"""Sinusoids of a place and a length, as the authors of length-aware positions coded them (Takase and Okazaki 2019)."""

from __future__ import annotations

from torch import Tensor

from structpe.positions.sinusoidal._sinusoids import timing

__all__ = ["difference", "ratio"]


def difference(places: Tensor, lengths: Tensor, width: int) -> Tensor:
    """(b, n, width) row l + 1 - t of the table of sinusoids, whose row 1 is zero: in fairseq it stands for padding."""
    rows = lengths + 1 - places
    return timing(rows, width) * (rows != 1)[..., None]


def ratio(places: Tensor, lengths: Tensor, width: int) -> Tensor:
    """(b, n, width) row t + 2 of a table of sinusoids whose frequencies are powers of l and not of 10000."""
    return timing(places + 2, width, lengths.clamp(min=1))
