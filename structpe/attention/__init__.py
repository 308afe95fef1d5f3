"""Attention kernels: how attention is computed. One file per kernel; the registry finds them."""

from structpe.attention.base import KERNELS, Kernel, attend

__all__ = ["KERNELS", "Kernel", "attend"]
