"""What attention takes on a GPU where a head's width is no multiple of 8, beside PyTorch's own on the same numbers.

    python experiments/speed/widths.py
    python experiments/speed/widths.py --device cpu --rounds 2 --structures 2   # tries the script

Structures of 300 places, of which some are padding, 4 heads, attention dropout of .5: a bucket of peptides. PyTorch's
kernels that keep no scores refuse such widths, so that it computes and keeps all of them; ours are padded with zeros.
Forward and backward, medians of rounds in which the ways take turns; the memory is the most that one way holds. Without
dropout outputs and gradients are compared first. Prints Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import torch
from timing import medians
from torch import Tensor
from torch.nn import functional

from structpe.attention import attend
from structpe.terms import Terms

HEADS, UNITS, DROPOUT = 4, 300, 0.5
CLOSE = {torch.float32: 1e-4, torch.bfloat16: 5e-2}


def main() -> None:
    """Compare, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", type=torch.device, default=torch.device("cuda"))
    parser.add_argument("--structures", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    print("| width of a head | dtype | PyTorch's, ms | ours, ms | ratio | PyTorch's, MiB | ours, MiB |")
    print("|---|---|--:|--:|--:|--:|--:|", flush=True)
    for dtype in CLOSE:
        for width in (16, 19, 23, 24):
            print(row(width, dtype, given.device, given.structures, given.rounds), flush=True)


def row(width: int, dtype: torch.dtype, device: torch.device, structures: int, rounds: int) -> str:
    """A line of the table.

    Raises:
        AssertionError: the two differ.
    """
    generator = torch.Generator().manual_seed(0)
    shape = (structures, HEADS, UNITS, width)
    q, k, v, weights = (torch.randn(shape, generator=generator).to(device, dtype) for _ in range(4))
    leaves = [x.requires_grad_() for x in (q, k, v)]
    there = torch.arange(UNITS) < torch.randint(UNITS // 2, UNITS, (structures, 1), generator=generator)
    mask = there[:, None, None].to(device)

    def theirs(dropout: float) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)

    def ours(dropout: float) -> Tensor:
        return attend(q, k, v, Terms(mask=(mask,)), "sdpa", dropout)

    def step(way: Callable[[float], Tensor], dropout: float) -> list[Tensor]:
        out = way(dropout)
        return [out.detach(), *torch.autograd.grad((out * weights).sum(), leaves)]

    for a, b in zip(step(theirs, 0.0), step(ours, 0.0), strict=True):
        torch.testing.assert_close(a, b, rtol=CLOSE[dtype], atol=CLOSE[dtype] * float(b.abs().max()))
    ways: dict[str, Callable[[], object]] = {
        "theirs": partial(step, theirs, DROPOUT),
        "ours": partial(step, ours, DROPOUT),
    }
    held = {name: most(way, device) for name, way in ways.items()}
    took = medians(ways, rounds, device, warm=2)
    cells = [width, str(dtype).removeprefix("torch."), f"{took['theirs'] * 1e3:.2f}", f"{took['ours'] * 1e3:.2f}"]
    cells += [f"{took['theirs'] / took['ours']:.2f}", held["theirs"], held["ours"]]
    return f"| {' | '.join(map(str, cells))} |"


def most(way: Callable[[], object], device: torch.device) -> str:
    """MiB that a step holds at most; unknown on a CPU."""
    if device.type != "cuda":
        return "-"
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    way()
    return str(torch.cuda.max_memory_allocated(device) >> 20)


if __name__ == "__main__":
    main()
