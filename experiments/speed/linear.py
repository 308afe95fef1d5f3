"""What linear attention takes on a CPU with elu + 1: here, with PyTorch's elu, and its matrix products alone.

    python experiments/speed/linear.py
    python experiments/speed/linear.py --write      # and keep it: the table of docs/speed.md

Forward and backward; queries, keys and values are views of one tensor, as in a layer. The outputs of both ways are
compared first. The products are the floor: q (k^T v) for features that are there already, and their gradients.

One thread; CPU time, medians of rounds in which the ways take turns. Prints Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from timing import medians, shown
from torch import Tensor
from torch.nn import functional

from structpe.attention import attend
from structpe.attention.feature_maps import elu_plus_one
from structpe.terms import Terms

SHAPES = ((1, 4, 2_000, 16), (1, 4, 10_000, 16), (1, 8, 2_000, 32), (64, 4, 150, 24))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--quick", action="store_true", help="the smallest size, to try the script")
    parser.add_argument("--write", action="store_true", help="keep the table")
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rounds = 1 if given.quick else given.rounds
    shown("linear", table(SHAPES[: 1 if given.quick else None], rounds), given.write)


def table(shapes: Sequence[tuple[int, int, int, int]], rounds: int) -> Iterator[str]:
    """Its lines."""
    yield "| structures, heads, units, width | PyTorch's elu, ms | here, ms | ratio | products alone, ms |"
    yield "|---|--:|--:|--:|--:|"
    for shape in shapes:
        yield row(shape, rounds)


def row(shape: tuple[int, int, int, int], rounds: int) -> str:
    """A row of the table.

    Raises:
        AssertionError: the outputs differ.
    """
    b, h, n, d = shape
    x = torch.randn(b, n, 3 * h * d, requires_grad=True)
    upstream = torch.randn(b, h, n, d)

    def heads() -> list[Tensor]:
        return [part.unflatten(-1, (h, d)).transpose(1, 2) for part in x.chunk(3, -1)]

    def linear(feature_map: Callable[[Tensor], Tensor]) -> Tensor:
        return attend(*heads(), Terms(feature_map=feature_map), kernel="linear")

    def products() -> Tensor:
        q, k, v = heads()
        return q @ (k.transpose(-1, -2) @ v)

    ways = {"theirs": lambda: linear(theirs), "ours": lambda: linear(elu_plus_one), "floor": products}
    torch.testing.assert_close(ways["ours"](), ways["theirs"]())

    def step(way: Callable[[], Tensor]) -> object:
        return torch.autograd.grad(way(), x, upstream)

    took = medians({name: partial(step, way) for name, way in ways.items()}, rounds)
    ms = {name: 1e3 * seconds for name, seconds in took.items()}
    ratio = ms["theirs"] / ms["ours"]
    sizes = ", ".join(f"{size:,}" for size in shape)
    return f"| {sizes} | {ms['theirs']:.1f} | {ms['ours']:.1f} | {ratio:.2f} | {ms['floor']:.1f} |"


def theirs(x: Tensor) -> Tensor:
    """Elu + 1 as it is usually written."""
    return functional.elu(x) + 1


if __name__ == "__main__":
    main()
