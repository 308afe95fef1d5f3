"""Which position models torch.compile and torch.export see through.

    python -m tests.positions.tracing compile [NAME ...]

A separate process, because tests check the shapes in annotations, and such checks cannot be traced.
"""

from __future__ import annotations

import gc
import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor, nn

from structpe.attention import Layout
from structpe.encodings import Encoding
from structpe.nn.context import Context
from structpe.nn.layer import Layer, StackConfig
from structpe.nn.stack import Stack
from structpe.positions import MODELS, Dims, PositionModel, Positions
from tests.positions.cases import TREES, encoded, made

DIMS = Dims(8, 2, 1)
WHOLE = "nope"
"""The model around which all of an encoder is traced: once is enough for parts that are alike."""


class OfTensors(nn.Module):
    """An encoder as a function of tensors only, which can be exported.

    Args:
        encoder: the encoder.
        like: positions that say which tensors are what.
        layout: of the batch, in one bucket.
    """

    def __init__(self, encoder: Stack, like: Mapping[Encoding, Any], layout: Layout) -> None:
        super().__init__()
        self.encoder, self.like, self.layout = encoder, dict(like), layout

    def forward(self, x: Tensor, *tensors: Tensor) -> Tensor:
        rest = iter(tensors)
        each = {encoding: rebuilt(p, rest) for encoding, p in self.like.items()}
        positions = Positions(each, present=self.layout.present[0])
        out, _ = self.encoder.run(x, Context(self.encoder.position, self.layout, [positions]))
        return out


def tensors_of(x: Any) -> list[Tensor]:
    """The tensors of what an encoding says, in the order of their fields."""
    return [x] if isinstance(x, Tensor) else [t for field in fields(x) for t in tensors_of(getattr(x, field.name))]


def rebuilt(like: Any, tensors: Iterator[Tensor]) -> Any:
    """The same of other tensors."""
    if isinstance(like, Tensor):
        return next(tensors)
    return type(like)(*(rebuilt(getattr(like, field.name), tensors) for field in fields(like)))


def compiled(module: nn.Module, given: tuple[Tensor, ...]) -> Tensor:
    """By torch.compile, without a single break of the graph."""
    torch._dynamo.reset()
    out: Tensor = torch.compile(module, backend="eager", fullgraph=True)(*given)
    return out


def exported(module: nn.Module, given: tuple[Tensor, ...]) -> Tensor:
    """By torch.export."""
    out: Tensor = torch.export.export(module, given).module()(*given)
    return out


HOW: dict[str, Callable[[nn.Module, tuple[Tensor, ...]], Tensor]] = {"compile": compiled, "export": exported}


def encoder_around(model: PositionModel, whole: bool) -> Stack:
    """An encoder; unless whole, without norms and feed-forward parts, which no position model touches."""
    encoder = Stack(StackConfig.transformer(DIMS, 8), model).eval()
    for layer in () if whole else encoder.layers:
        assert isinstance(layer, Layer)
        layer.attention_norm = layer.dropout = encoder.norm = encoder.dropout = nn.Identity()  # type: ignore[assignment]
        layer.feedforward = None
    return encoder


def trouble(name: str, how: str) -> str:
    """Why an encoder with this position model cannot be traced; empty where it can, and gives the same numbers."""
    model = made(name, DIMS).float()
    encoder = encoder_around(model, whole=name == WHOLE)
    positions = encoded(model, TREES, torch.float32)
    layout = Layout.of([structure.unit_count for structure in TREES])
    given = (torch.randn(layout.units, 8), *(t for p in positions.values() for t in tensors_of(p)))
    whole = OfTensors(encoder, positions, layout)
    try:
        out = HOW[how](whole, given)
    except Exception as error:  # any error is the answer
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    expected = whole(*given)  # not before: a first call may be the one that is traced
    return "" if torch.allclose(out, expected, rtol=1e-5, atol=1e-5) else "other numbers than without tracing"


def main() -> None:
    """Write the answers as JSON, model by model."""
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    gc.disable()  # tracing makes millions of objects, and the process ends soon
    how, *names = sys.argv[1:]
    print(json.dumps({name: trouble(name, how) for name in names or sorted(MODELS)}))


if __name__ == "__main__":
    main()
