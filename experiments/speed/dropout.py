"""What dropout takes on a CPU: here, and in PyTorch, which draws a number for each element.

    python experiments/speed/dropout.py
    python experiments/speed/dropout.py --write      # and keep it: the tables of docs/speed.md

1. Elements: ``x`` to ``dropout(x)`` and its gradient.
2. Attention with dropout of its weights, forward and backward: PyTorch's ``scaled_dot_product_attention``, the kernels
   ``small`` and ``tiled``, and which of them ``auto`` takes. Without dropout all outputs are compared first.

One thread; CPU time, medians of rounds in which the ways take turns. Prints Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial

import torch
from timing import medians, shown
from torch import Tensor
from torch.nn import functional

from structpe.attention import attend
from structpe.attention.attend import watching
from structpe.dropout import dropout
from structpe.terms import Terms

ELEMENTS = (8_192, 65_536, 1_000_000, 10_000_000)
PROBABILITIES = (0.1, 0.5)
SHAPES = ((128, 4, 25, 16), (64, 4, 150, 24), (16, 4, 256, 32), (8, 4, 512, 64), (1, 8, 2048, 64))
KERNELS = ("small", "tiled")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="the smallest sizes, to try the script")
    parser.add_argument("--write", action="store_true", help="keep the tables")
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    shown("dropout", tables(1 if given.quick else None, 1 if given.quick else given.rounds), given.write)


def tables(sizes: int | None, rounds: int) -> Iterator[str]:
    """Their lines, of the first sizes, or of all."""
    yield "| elements | probability | PyTorch, ns each | here, ns each | ratio |\n|--:|--:|--:|--:|--:|"
    for count in ELEMENTS[:sizes]:
        for p in PROBABILITIES:
            ways = {"theirs": elements(functional.dropout, count, p), "ours": elements(dropout, count, p)}
            took = medians(ways, rounds)
            each = {name: seconds / count * 1e9 for name, seconds in took.items()}
            ratio = each["theirs"] / each["ours"]
            yield f"| {count:,} | {p} | {each['theirs']:.1f} | {each['ours']:.1f} | {ratio:.2f} |"
    yield "\n| structures, heads, units, width | p | PyTorch, ms | `small`, ms | `tiled`, ms | `auto` takes |"
    yield "|---|--:|--:|--:|--:|---|"
    for shape in SHAPES[:sizes]:
        for p in PROBABILITIES:
            yield attention(shape, p, rounds)


def elements(way: Callable[[Tensor, float], Tensor], count: int, p: float) -> Callable[[], object]:
    """Dropout of so many numbers, and its gradient."""
    x, upstream = torch.randn(count, requires_grad=True), torch.randn(count)
    return lambda: torch.autograd.grad(way(x, p), x, upstream)


def attention(shape: tuple[int, int, int, int], p: float, rounds: int) -> str:
    """A row of the second table.

    Raises:
        AssertionError: without dropout the outputs differ.
    """
    q, k, v = leaves = [torch.randn(shape, requires_grad=True) for _ in range(3)]
    there = torch.arange(shape[2]) < torch.randint(shape[2] // 2, shape[2], (shape[0], 1))
    mask = there[:, None, None]

    def theirs(p: float) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p)

    def ours(kernel: str, p: float) -> Tensor:
        return attend(q, k, v, Terms(mask=(mask,)), kernel, p)

    def step(way: Callable[[float], Tensor]) -> list[Tensor]:
        return list(torch.autograd.grad(way(p).sum(), leaves))

    for kernel in KERNELS:
        torch.testing.assert_close(theirs(0.0), ours(kernel, 0.0), rtol=1e-4, atol=1e-5)
    with watching() as chosen:
        ours("auto", p)
    ways = {"theirs": theirs, **{kernel: partial(ours, kernel) for kernel in KERNELS}}
    took = medians({name: partial(step, way) for name, way in ways.items()}, rounds)
    ms = " | ".join(f"{took[name] * 1e3:.1f}" for name in ways)
    return f"| {', '.join(map(str, shape))} | {p} | {ms} | `{chosen[0].kernel}` |"


if __name__ == "__main__":
    main()
