"""Attention kernels: how attention is computed. One file per kernel; the registry finds them."""

from structpe.attention._buckets import HeadPlaces, attend_buckets, buckets_suit
from structpe.attention._few import UNITS as FEW_UNITS
from structpe.attention.base import KERNELS, Kernel, attend

__all__ = ["FEW_UNITS", "KERNELS", "HeadPlaces", "Kernel", "attend", "attend_buckets", "buckets_suit"]

len(KERNELS)  # loads them now: torch.compile may see the first call of attend, and sees through no import
