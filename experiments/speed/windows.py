"""A sliding window in a long text: by strips of keys, along the list of its pairs, and attention to all units.

    python experiments/speed/windows.py             # 4,096 units, 8 heads of 64; needs 6 GiB

The ways take turns in one process with one thread; time is CPU time, forward and backward, the least of three turns.
"""

from __future__ import annotations

import time

import torch
from torch import Tensor

from structpe.attention import attend
from structpe.terms import Pairs, Terms

UNITS, HEADS, WIDTH, REACH = 4096, 8, 64, 128


def main() -> None:
    """Compare the ways, then time them."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, HEADS, UNITS, WIDTH, requires_grad=True) for _ in range(3))
    windowed = Terms(pairs=(window(),))
    ways = {"band": windowed, "edges": windowed, "sdpa": Terms()}
    torch.testing.assert_close(*(attend(q, k, v, windowed, kernel) for kernel in ("band", "edges")))
    times: dict[str, list[float]] = {kernel: [] for kernel in ways}
    for _ in range(3):
        for kernel, terms in ways.items():
            times[kernel].append(step(q, k, v, terms, kernel))
    print(f"torch {torch.__version__}, 1 thread, {UNITS:,} units, {HEADS} heads of {WIDTH}; {2 * REACH + 1} keys each")
    for kernel, each in times.items():
        print(f"{kernel:6} {min(each):6.2f} s")


def window() -> Pairs:
    """The pairs of units at most ``REACH`` apart."""
    query = torch.arange(UNITS)[:, None].expand(-1, 2 * REACH + 1)
    key = query + torch.arange(-REACH, REACH + 1)
    inside = (key >= 0) & (key < UNITS)
    return Pairs(torch.zeros_like(query[inside]), query[inside], key[inside])


def step(q: Tensor, k: Tensor, v: Tensor, terms: Terms, kernel: str) -> float:
    """Seconds of one forward and backward pass."""
    start = time.process_time()
    torch.autograd.grad(attend(q, k, v, terms, kernel).square().sum(), (q, k, v))
    return time.process_time() - start


if __name__ == "__main__":
    main()
