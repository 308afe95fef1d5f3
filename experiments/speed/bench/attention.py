"""The third table: every position model of the registry, in one attention beside attention without positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from samples import sample
from tables import MISSING, Row, Table, number
from torch import Tensor, nn
from turns import medians

from structpe.attention import Layout
from structpe.errors import StructPEError
from structpe.nn.layer import Attention, Context, OwnAttention
from structpe.positions import MODELS, Dims, PositionModel, Positions, Site, build
from structpe.positions.batch import encode

__all__ = ["TABLE"]

DIMS = Dims(width=64, heads=4, layers=1)
SAMPLES = ("32 drawn trees", "32 grids of 4 by 6", "32 grids of 2 by 3 by 4")
"""All of 24 units each. A model is measured on the first that it takes: those of images take grids only."""
NONE, WITH = "none", "with"
SITE = Site(layer=0, training=True)


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


def _step(config: str | list[str], graphs: str) -> Callable[[], None]:
    """Forward and backward; the encoding was done before, as it is in training.

    Raises:
        StructPEError: the model cannot be built, or does not take these graphs.
    """
    torch.manual_seed(0)
    structures = sample(graphs)
    position = build(config, DIMS, fit=structures)
    net = Around(position)
    positions = encode(structures, position.encodings).to(torch.device("cpu"), torch.float32)
    x = torch.randn(len(structures), structures[0].unit_count, DIMS.width, requires_grad=True)

    def step() -> None:
        net(x, positions).sum().backward()
        net.zero_grad()
        x.grad = None

    step()
    return step


def _steps(name: str) -> tuple[str, dict[str, Callable[[], None]]]:
    """On which sample, and the steps without and with a position model.

    Raises:
        StructPEError: it takes none of the samples; why not the first.
    """
    refused: list[StructPEError] = []
    for graphs in SAMPLES:
        try:
            return graphs, {NONE: _step([], graphs), WITH: _step(name, graphs)}
        except StructPEError as error:
            refused.append(error)
    raise refused[0]


def _measure(name: str, rounds: int) -> Iterator[Sequence[str]]:
    """One line: milliseconds, and how many times as long as without positions; or why it cannot."""
    structure = MODELS[name].spec.structure
    try:
        graphs, steps = _steps(name)
    except StructPEError as error:
        yield [name, structure, str(error), MISSING, MISSING]
    else:
        took = medians(steps, rounds)
        yield [name, structure, graphs, number(took[WITH] * 1e3), number(took[WITH] / took[NONE])]


TABLE = Table(
    "Every position model in one attention",
    ("model", "made for", "on", "forward and backward, ms", "/ none"),
    [Row(name, "24 units", partial(_measure, name)) for name in MODELS],
    rounds=9,
)
