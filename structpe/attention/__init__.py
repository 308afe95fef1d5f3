"""Attention kernels: how attention is computed. A kernel is a file; the registry finds them.

A kernel is a function such as ``dense``, with the same results: tests compare its values and gradients. It needs only
the fields of ``Terms`` that it supports, but of these all cases:

* a bias is a lookup, listed pairs, or a tensor whose axes may be 1; -inf in it masks the pair
* a query that may attend to nothing has zeros and gives no gradient
* there may be no query and no key, and more or fewer queries than keys
* scores, and their sums with terms, are of float32 at least; the result has the dtype of the values

``gather`` makes tensors of terms: ``without_lists``, ``gather_scalars`` and ``masks``, or ``folded`` for all at once.
"""

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
