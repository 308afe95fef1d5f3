"""Attention kernels: how attention is computed. One file per kernel; the registry finds them."""

from structpe.attention._dispatch import attend, attend_ragged
from structpe.attention._layout import Layout
from structpe.attention._written import additive, weights
from structpe.attention.base import KERNELS, Call, Choice, Kernel, watching

__all__ = [
    "KERNELS",
    "Call",
    "Choice",
    "Kernel",
    "Layout",
    "additive",
    "attend",
    "attend_ragged",
    "watching",
    "weights",
]

len(KERNELS)  # loads them now: torch.compile may see the first call of attend, and sees through no import
