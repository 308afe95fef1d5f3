"""What each position model takes in one attention of 128 units, what its products alone take, and four times the pairs.

    python experiments/speed/models.py                        # some fifteen minutes; prints Markdown
    python experiments/speed/models.py --only grit t5         # these models
    python experiments/speed/models.py --write                # and keep it

A training step, forward and backward, of one attention with its projections, width 64, 4 heads; the encoding was done
before. *none* has no position model, and takes turns with it. *Products* are those of the step itself, recorded and
then computed again without anything else: products of matrices, convolutions, matrix functions. Four times the pairs:
4 structures of 128 units are 65,536 pairs, 1 of 512 is 262,144.

One thread; CPU time, medians of rounds. Each model is measured in a process of its own, with the C library's malloc as
it is: nothing large was freed before. Models that take no drawn trees get grids.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from timing import clock, shown
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, str(Path(__file__).parent / "bench"))
from attention import DIMS, SITE
from samples import binary_trees

from structpe.attention import Layout
from structpe.errors import StructPEError
from structpe.nn.layer import Attention, Context, OwnAttention
from structpe.positions import MODELS, PositionModel, Positions, build, by_rows
from structpe.positions.batch import encode
from structpe.structure import Structure
from structpe.transforms import grid

SMALL, LARGE = (4, 128), (1, 512)
"""How many structures of how many units."""
GRIDS = {128: ((8, 16), (4, 4, 8)), 512: ((16, 32), (8, 8, 8))}
TURN, LONGEST = 0.03, 12.0
"""Seconds of a turn at the least, and after which no further round of a model begins."""
PRODUCTS = (
    *("mm", "addmm", "bmm", "baddbmm", "convolution", "convolution_backward", "mkldnn_rnn_layer"),
    *("linalg_matrix_exp", "_linalg_eigh", "linalg_lu_factor_ex", "_linalg_solve_ex"),
    *("_fft_r2c", "_fft_c2r", "_fft_c2c"),
    *("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward"),
)


@dataclass(frozen=True)
class Found:
    """Seconds of a step of a model, of one without, of its products, and of four times the pairs; or why not."""

    step: float = 0.0
    none: float = 0.0
    products: float = 0.0
    larger: float = 0.0
    refused: str = ""


class Products(TorchDispatchMode):
    """Counts the products that are computed, by what they are given."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[tuple[Any, ...]] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ in PRODUCTS:
            options = tuple(sorted((name, _told(each)) for name, each in (kwargs or {}).items()))
            self.found[func, tuple(map(_told, args)), options] += 1
        return func(*args, **(kwargs or {}))

    def seconds(self) -> float:
        """Of all of them: each on numbers of its own, which are drawn before."""
        return sum(_alone(*given) * count for given, count in self.found.items())


@dataclass(frozen=True)
class _Like:
    """What a tensor is like."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype

    def drawn(self) -> Tensor:
        there = 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        return torch.randn(max(there, 1), dtype=self.dtype).as_strided(self.shape, self.strides)


def _told(given: Any) -> Any:
    if isinstance(given, Tensor):
        return _Like(tuple(given.shape), given.stride(), given.dtype)
    return tuple(given) if isinstance(given, list) else given


def _alone(function: Any, args: Sequence[Any], options: Sequence[tuple[str, Any]]) -> float:
    given = [each.drawn() if isinstance(each, _Like) else each for each in args]
    named = {name: each.drawn() if isinstance(each, _Like) else each for name, each in options}
    return turns({"": lambda: function(*given, **named)}, 3, TURN / 10)[""]


class Around(nn.Module):
    """One attention with a norm before, as in a layer.

    Without the norm some scores would be so large that weights are subnormal, with which processors are slow.
    """

    def __init__(self, position: PositionModel) -> None:
        super().__init__()
        self.position, self.norm = position, nn.LayerNorm(DIMS.width)
        self.attention = OwnAttention() if position.own_attention else Attention(DIMS)

    def forward(self, x: Tensor, positions: Positions) -> Tensor:
        """(b, n, d) to (b, n, d)."""
        context = Context(self.position, Layout.full(*x.shape[:2]), [positions])
        rows = self.norm(context.before(context.inputs(x.flatten(0, 1)), SITE))
        return self.attention(rows, context, SITE).view_as(x)


def step_of(name: str, count: int, units: int) -> Callable[[], None]:
    """A training step.

    Raises:
        StructPEError: the model takes none of the structures; why not the trees.
    """
    refused: list[StructPEError] = []
    for structures in (lambda: binary_trees(count, units), *(lambda s=s: [grid(s)] * count for s in GRIDS[units])):
        try:
            return _step(name, structures())
        except StructPEError as error:
            refused.append(error)
    raise refused[0]


def _step(name: str, structures: Sequence[Structure]) -> Callable[[], None]:
    torch.manual_seed(0)
    position = build([] if name == "none" else name, DIMS, fit=structures)
    net = Around(position)
    positions = encode(structures, position.encodings).to(torch.device("cpu"), torch.float32)
    x = torch.randn(len(structures), structures[0].unit_count, DIMS.width, requires_grad=True)

    def step() -> None:
        net(x, positions).sum().backward()
        net.zero_grad(set_to_none=True)
        x.grad = None

    step()
    return step


def turns(ways: dict[str, Callable[[], object]], rounds: int, least: float = TURN) -> dict[str, float]:
    """Seconds of each: medians of rounds, of each the mean of as many runs as fill a turn."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    begun = clock()
    gc.disable()
    for _ in range(rounds):
        for name, run in ways.items():
            runs, start = 0, clock()
            while not runs or clock() - start < least:
                run()
                runs += 1
            took[name].append((clock() - start) / runs)
        if clock() - begun > LONGEST:
            break
    gc.enable()
    return {name: statistics.median(each) for name, each in took.items()}


def measured(name: str, rounds: int, growth: bool) -> Found:
    """All figures of a model."""
    torch.set_num_threads(1)
    try:
        step = step_of(name, *SMALL)
    except StructPEError as error:
        return Found(refused=" ".join(str(error).split()))
    took = turns({"none": step_of("none", *SMALL), "step": step}, rounds)
    larger = 0.0
    if growth:
        with suppress(StructPEError):  # more units than it has places
            larger = turns({"": step_of(name, *LARGE)}, min(rounds, 3))[""]
    by_rows.ONE_BLOCK["cpu"] = sys.maxsize  # products that are computed again for the backward pass do not count
    with Products() as products:
        step()
    return Found(took["step"], took["none"], products.seconds(), larger)


def row(name: str, found: Found) -> str:
    """A row of the table of all models."""
    if found.refused:
        return f"| {name} | {found.refused.replace('|', '/')} | | | |"
    times = [f"{1e3 * found.step:.3g}", f"{found.step / found.none:.2f}", f"{found.products / found.none:.2f}"]
    return f"| {name} | {' | '.join(times)} | {f'{found.larger / found.step:.1f}' if found.larger else ''} |"


def table(names: Sequence[str], rounds: int, growth: bool) -> Iterator[str]:
    """Its lines."""
    yield "| model | ms | / none | products / none | four times the pairs |\n|---|--:|--:|--:|--:|"
    for name in names:
        with multiprocessing.get_context("fork").Pool(1) as one:
            yield row(name, one.apply(measured, (name, rounds, growth)))


def main() -> None:
    """Print the table, and keep it if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", default=list(MODELS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-growth", action="store_true", help="not four times the pairs")
    parser.add_argument("--write", action="store_true", help="keep the table, of which docs/speed.md has the products")
    given = parser.parse_args()
    torch.set_num_threads(1)
    shown("models", table(given.only, given.rounds, not given.no_growth), given.write)


if __name__ == "__main__":
    main()
