"""Attention kernels: how attention is computed. One file per kernel; the registry finds them."""

from structpe.attention._ragged_tmp import attend_ragged
from structpe.attention.base import KERNELS, Kernel, attend
from structpe.attention.layout import Layout

__all__ = ["KERNELS", "Kernel", "Layout", "attend", "attend_ragged"]
len(KERNELS)
