"""Attention kernels: how attention is computed. One file per kernel; the registry finds them."""

from structpe.attention._dispatch import attend, attend_ragged
from structpe.attention._layout import Layout
from structpe.attention.base import KERNELS, Call, Choice, Kernel, watching

__all__ = ["KERNELS", "Call", "Choice", "Kernel", "Layout", "attend", "attend_ragged", "watching"]

len(KERNELS)  # loads them now: torch.compile may see the first call of attend, and sees through no import
