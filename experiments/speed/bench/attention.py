"""The third table: every position model of the registry, in one attention beside attention without positions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

import torch
from peak import extra
from samples import of_units
from tables import MISSING, Row, Table, number
from torch import Tensor, nn
from turns import medians

from structpe.attention import Layout
from structpe.errors import StructPEError
from structpe.nn.layer import Attention, Context, OwnAttention
from structpe.positions import MODELS, Dims, PositionModel, Positions, Site, build
from structpe.positions.batch import encode
from structpe.structure import Structure

__all__ = ["TABLE"]

DIMS = Dims(width=64, heads=4, layers=1)
SIZES = ((64, 24), (8, 128), (1, 512))
"""Structures of a batch, and units of each."""
LONG, LARGE = 0.5, 400.0
"""Seconds and MiB of a step above which the next size, whose pairs are some four times as many, is not measured."""
ONCE = 2.0
"""Seconds of a step that is measured once."""
NONE, WITH = "none", "with"
SITE = Site(layer=0, training=True)
Step = Callable[[], None]


class Around(nn.Module):
    """One attention, its projections and a position model: nothing else, so that the ratio shows positions.

    Args:
        position: the model; it is asked at every site, as an encoder asks it.
    """

    def __init__(self, position: PositionModel) -> None:
        super().__init__()
        self.position = position
        self.attention = OwnAttention() if position.own_attention else Attention(DIMS)

    def forward(self, x: Tensor, positions: Positions) -> Tensor:
        """(b, n, d) to (b, n, d)."""
        context = Context(self.position, Layout.full(*x.shape[:2]), [positions])
        rows = context.before(context.inputs(x.flatten(0, 1)), SITE)
        return self.attention(rows, context, SITE).view_as(x)


def _step(config: str | list[str], structures: Sequence[Structure]) -> Step:
    """Forward and backward; the encoding was done before, as it is in training.

    Raises:
        StructPEError: the model cannot be built, or does not take these graphs.
    """
    torch.manual_seed(0)
    position = build(config, DIMS, fit=structures)
    net = Around(position)
    positions = encode(structures, position.encodings).to(torch.device("cpu"), torch.float32)
    x = torch.randn(len(structures), structures[0].unit_count, DIMS.width, requires_grad=True)

    def step() -> None:
        net(x, positions).sum().backward()
        net.zero_grad()
        x.grad = None

    return step


@cache
def _without(size: tuple[int, int], graphs: str) -> Step:
    """The step without a position model."""
    return _step([], of_units(*size)[graphs])


def _takes(name: str, size: tuple[int, int]) -> tuple[str, Step, float, float]:
    """On which graphs of this size, the step, and what it takes the first time: seconds, MiB.

    A model is measured on the first that it takes: those of images take grids only.

    Raises:
        StructPEError: it takes none; why not the first.
    """
    refused: list[StructPEError] = []
    for graphs, structures in of_units(*size).items():
        try:
            step, start = _step(name, structures), time.thread_time()
            memory = extra(step)
        except StructPEError as error:
            refused.append(error)
        else:
            return graphs, step, time.thread_time() - start, memory
    raise refused[0]


def _measure(name: str, rounds: int) -> Iterator[Sequence[str]]:
    """One line: milliseconds, and how many times as long as without positions; or why it cannot.

    What takes long or much memory is not measured on the next size.
    """
    cells, on = [], ""
    for size in SIZES:
        try:
            graphs, step, seconds, memory = _takes(name, size)
        except StructPEError as error:
            on += f"; {size[1]} units: {error}" if on else str(error)
            break
        on = on or graphs
        took = medians({NONE: _without(size, graphs), WITH: step}, rounds) if seconds < ONCE else {WITH: seconds}
        none = took.get(NONE) or medians({NONE: _without(size, graphs)}, rounds)[NONE]
        cells += [number(took[WITH] * 1e3), number(took[WITH] / none)]
        if seconds > LONG or memory > LARGE:
            break
    cells += [MISSING] * (2 * len(SIZES) - len(cells))
    yield [name, MODELS[name].spec.structure, on, *cells]


TABLE = Table(
    "every-model",
    "Every position model in one attention",
    ("model", "made for", "on", *(cell for b, n in SIZES for cell in (f"{b} of {n}, ms", f"{b} of {n} / none"))),
    [Row(name, "units of each size", partial(_measure, name)) for name in MODELS],
    rounds=3,
)
