"""Which position models torch.compile and torch.export see through.

    python -m tests.positions.tracing compile|export [NAME ...]

A separate process, because tests check the shapes in annotations, and such checks cannot be traced.

Most time is taken by tracing, line by line. So each model is traced alone, and whole encoders only around a few models,
which together have all kinds of terms.
"""

from __future__ import annotations

import gc
import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._dynamo import guards

from structpe.attention import KERNELS, Layout, watching
from structpe.encodings import Encoding
from structpe.nn.layer import Context, StackConfig
from structpe.nn.stack import Stack
from structpe.positions import MODELS, Dims, PositionModel, Positions, Site, Sources
from structpe.terms import Terms
from tests.positions.cases import TREES, encoded, made

DIMS = Dims(8, 2, 1)
ALIKE = {"bias", "gate", "key", "query", "product", "value"}
"""Terms whose elements are tensors, or of a type of pairs."""
LAYOUT = Layout.of([structure.unit_count for structure in TREES])


class OfTensors(nn.Module):
    """A position model, and what is around it, as a function of tensors only, which can be exported.

    Args:
        model: the position model.
        like: positions that say which tensors are what.
    """

    def __init__(self, model: PositionModel, like: Mapping[Encoding, Any]) -> None:
        super().__init__()
        self.model, self.like = model, dict(like)

    def positions(self, tensors: tuple[Tensor, ...]) -> Positions:
        rest = iter(tensors)
        each = {encoding: rebuilt(p, rest) for encoding, p in self.like.items()}
        return Positions(each, present=LAYOUT.present[0])


class Sites(OfTensors):
    """All sites of a model, and the reference kernel, which reads all terms."""

    def forward(self, x: Tensor, *tensors: Tensor) -> Tensor:
        model, site = self.model, Site(0)
        prepared = model.prepare(self.positions(tensors))
        x = model.layer(model.inputs(x, prepared), prepared, site)
        if model.own_attention:
            x, _ = model.attend(x, prepared, site, Terms())
        else:
            given = model.sources(Sources(x, x, x), prepared, site)
            qkv = (
                each.unflatten(-1, (DIMS.heads, -1)).transpose(1, 2) for each in (given.query, given.key, given.value)
            )
            x = KERNELS["dense"].compute(*qkv, model.terms(prepared, site))
        return x


class Whole(OfTensors):
    """A Transformer encoder, which chooses the kernel."""

    def __init__(self, model: PositionModel, like: Mapping[Encoding, Any]) -> None:
        super().__init__(model, like)
        self.encoder = Stack(StackConfig.transformer(DIMS, 8), model).eval()

    def forward(self, x: Tensor, *tensors: Tensor) -> Tensor:
        out, _ = self.encoder.run(LAYOUT.flat([x]), Context(self.model, LAYOUT, [self.positions(tensors)]))
        return out


def tensors_of(x: Any) -> list[Tensor]:
    """The tensors of what an encoding says, in the order of their fields."""
    if not is_dataclass(x):
        return [x] if isinstance(x, Tensor) else []
    return [t for field in fields(x) if field.init for t in tensors_of(getattr(x, field.name))]


def rebuilt(like: Any, tensors: Iterator[Tensor]) -> Any:
    """The same of other tensors."""
    if isinstance(like, Tensor):
        return next(tensors)
    if not is_dataclass(like):
        return like
    whole: Any = type(like)
    return whole(*(rebuilt(getattr(like, field.name), tensors) for field in fields(like) if field.init))


def compiled(module: nn.Module, given: tuple[Tensor, ...]) -> Tensor:
    """By torch.compile, without a single break of the graph. It is called once, so that it needs no guards."""
    torch._dynamo.reset()
    options = {"guard_filter_fn": torch.compiler.skip_all_guards_unsafe}
    out: Tensor = torch.compile(module, backend="eager", fullgraph=True, options=options)(*given)
    return out


def exported(module: nn.Module, given: tuple[Tensor, ...]) -> Tensor:
    """By torch.export."""
    out: Tensor = torch.export.export(module, given).module()(*given)
    return out


HOW: dict[str, Callable[[nn.Module, tuple[Tensor, ...]], Tensor]] = {"compile": compiled, "export": exported}


def example(name: str, kind: type[OfTensors]) -> tuple[OfTensors, tuple[Tensor, ...]]:
    """A model as a function of tensors, and these."""
    model = made(name, DIMS).float()
    positions = encoded(model, TREES, torch.float32)
    given = (torch.randn(*LAYOUT.shapes[0], 8), *(t for p in positions.values() for t in tensors_of(p)))
    return kind(model, positions), given


def kernels(name: str) -> list[str]:
    """The kernels that serve an encoder around this model."""
    module, given = example(name, Whole)
    with watching() as choices:
        module(*given)
    return sorted({choice.kernel for choice in choices})


def trouble(name: str, how: str, kind: type[OfTensors]) -> str:
    """Why this position model cannot be traced; empty if it can, and gives the same numbers."""
    module, given = example(name, kind)
    try:
        out = HOW[how](module, given)
    except Exception as error:  # any error is the answer
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    expected = module(*given)  # not before: a first call may be the one that is traced
    return "" if torch.allclose(out, expected, rtol=1e-5, atol=1e-5) else "other numbers than without tracing"


def kinds(name: str) -> set[str]:
    """Where a model acts, and its terms, with their types where a term has several."""
    model = made(name, DIMS)
    if model.own_attention:
        return {"own attention"}
    terms = model.terms(model.prepare(encoded(model, TREES)), Site(0))
    given = {field: getattr(terms, field) for field in terms.used()}
    listed = {f"{field} {type(x).__name__}" for field in ALIKE & given.keys() for x in given[field]}
    return listed | (given.keys() - ALIKE) | model.sites


def few(names: Iterable[str]) -> dict[str, list[str]]:
    """Few models that together have all kinds."""
    left = {name: kinds(name) for name in names}
    missing, chosen = set().union(*left.values()), {}
    while missing:
        name = max(left, key=lambda name: len(left[name] & missing))
        missing -= left[name]
        chosen[name] = sorted(left[name])
    return chosen


def main() -> None:
    """Write the answers as JSON: of each model alone, and of encoders around few of them."""
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    gc.disable()  # tracing makes millions of objects, and the process ends soon
    guards.profile_guard_manager = lambda *_: 0.0  # it measures how fast guards are, with caches emptied each time
    how, *chosen = sys.argv[1:]
    names = chosen or sorted(MODELS)
    traced = [name for name in names if not (MODELS[name].spec.not_compiled or MODELS[name].spec.not_exported)]
    whole = few(traced)
    alone = {name: trouble(name, how, Sites) for name in names}
    around = {name: trouble(name, how, Whole) for name in whole}
    # Last, since a first call may be the one that is traced.
    print(json.dumps({"alone": alone, "whole": around, "kernels": {name: kernels(name) for name in whole}}))


if __name__ == "__main__":
    main()
