"""Attention along listed pairs and linear attention beside ``dense``: a step forward and backward, one thread.

    python experiments/speed/kernels.py             # 4,096 units, 8 heads of 64; needs 6 GiB

Each line is a process of its own, so that the memory of one is not that of another. Time is CPU time, the least of
three steps; memory is what the process takes at the most, less what it takes before.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import torch

from structpe.attention import attend
from structpe.attention.feature_maps import elu_plus_one
from structpe.terms import Pairs, SparsePairs, Terms

UNITS, HEADS, WIDTH, KEYS = 4096, 8, 64, 8
CASES = [
    ("edges", "pairs"),
    ("dense", "pairs"),
    ("linear", "feature map"),
    ("dense", "feature map"),
    ("linear", "causal feature map"),
    ("dense", "causal feature map"),
]


def main() -> None:
    """Measure every case, or the one that is named."""
    if len(sys.argv) == 3:
        measure(sys.argv[1], sys.argv[2])
        return
    print(f"torch {torch.__version__}, 1 thread, {UNITS:,} units, {HEADS} heads of {WIDTH}, {KEYS} keys per query")
    for kernel, case in CASES:
        subprocess.run([sys.executable, __file__, kernel, case], check=True)


def measure(kernel: str, case: str) -> None:
    """Print the line of one case."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, HEADS, UNITS, WIDTH, requires_grad=True) for _ in range(3))
    terms = terms_of(case)
    attend(q[:, :, :8], k[:, :, :8], v[:, :, :8]).sum().backward()  # gradients are there, libraries are loaded
    before, times = most(), []
    for _ in range(3):
        start = time.process_time()
        attend(q, k, v, terms, kernel).sum().backward()
        times.append(time.process_time() - start)
    print(f"{kernel:8} {case:20} {min(times) * 1e3:8.0f} ms {(most() - before) / 2**20:8.0f} MiB")


def terms_of(case: str) -> Terms:
    """What attention is to be computed."""
    if case != "pairs":
        return Terms(feature_map=elu_plus_one, causal="causal" in case)
    query = torch.arange(UNITS).repeat_interleave(KEYS)
    key = torch.cat([torch.randperm(UNITS)[:KEYS] for _ in range(UNITS)])
    pairs = Pairs(torch.zeros_like(query), query, key)
    bias = SparsePairs(torch.randn(4, HEADS, requires_grad=True), torch.randint(4, key.shape), pairs)
    return Terms(pairs=(pairs,), bias=(bias,))


def most() -> int:
    """Bytes that the process has taken at the most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
