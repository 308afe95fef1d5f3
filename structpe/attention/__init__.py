"""Attention kernels: how attention is computed. A kernel is a file; the registry finds them."""

from structpe.attention.attend import KERNELS, Call, Kernel, KernelChoice, attend, attend_ragged, watching
from structpe.attention.layout import Layout
from structpe.attention.probing import Probe, disable, enable, probe
from structpe.attention.reference import additive, weights

__all__ = [
    "KERNELS",
    "Call",
    "Kernel",
    "KernelChoice",
    "Layout",
    "Probe",
    "additive",
    "attend",
    "attend_ragged",
    "disable",
    "enable",
    "probe",
    "watching",
    "weights",
]

len(KERNELS)  # loads them now: torch.compile may see the first call of attend, and sees through no import
