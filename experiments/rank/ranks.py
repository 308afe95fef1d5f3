"""The scores of attention on a sequence, as any position model of the registry makes them, and their rank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

import structpe
from structpe.encodings import Encoding
from structpe.errors import StructPEError
from structpe.positions import Dims, PositionModel, Site, Sources, build
from structpe.structure import Structure, path

__all__ = ["Ranks", "Setting", "rank", "ranks", "scores", "singular_values"]

TOLERANCE = 1e-9
"""Singular values below this part of the largest count as zero; rounding leaves 1e-15 or so."""


BERT_LAYER = Dims(width=768, heads=12, layers=1)


@dataclass(frozen=True)
class Setting:
    """Where scores are measured; by default in a layer of BERT-base.

    Attributes:
        dims: sizes of the Transformer, whose projections are random.
        places: length of the sequence.
        content: factor of the units' random vectors; 0 leaves what positions say alone.
        seed: of everything random.
    """

    dims: Dims = BERT_LAYER
    places: int = 256
    content: float = 1.0
    seed: int = 0


@dataclass(frozen=True)
class Ranks:
    """Of what positions say alone, and of all scores; None, and why, where there is no matrix of scores."""

    position: int | None
    whole: int | None
    why: str = ""


def ranks(position: Any, setting: Setting = Setting()) -> Ranks:
    """The largest ranks that a head has."""
    try:
        alone = rank(scores(position, replace(setting, content=0.0)))
        return Ranks(alone, rank(scores(position, setting)))
    except StructPEError as error:
        return Ranks(None, None, str(error))


@torch.no_grad()
def scores(position: Any, setting: Setting) -> Tensor:
    """(h, n, n) the scores of the first layer, less the mean of each row, which the softmax does not see.

    They are the logarithm of what attention gives when the values are unit vectors, however a model brings it about.

    Args:
        position: plain data that :func:`structpe.positions.build` understands.
        setting: where.

    Raises:
        StructPEError: the model does not run on a sequence, or its attention is no softmax over all pairs.
    """
    model, dims, n = model_of(position, setting), setting.dims, setting.places
    if model.own_attention:
        raise StructPEError("an attention of its own")
    positions = structpe.encode([sequence(n)], model.encodings).to(torch.device("cpu"), torch.float64)
    prepared, site = model.prepare(positions), Site(0)
    generator = torch.Generator().manual_seed(setting.seed + 1)
    x = setting.content * torch.randn(1, n, dims.width, generator=generator, dtype=torch.float64)
    x = model.layer(model.inputs(x, prepared), prepared, site)
    of = model.sources(Sources(x, x, x), prepared, site)
    weights = torch.randn(2, dims.width, dims.width, generator=generator, dtype=torch.float64) * dims.width**-0.5
    q, k = (
        (each @ w).unflatten(-1, (dims.heads, -1)).transpose(1, 2)
        for each, w in zip((of.query, of.key), weights, strict=True)
    )
    return _centred(q, k, replace(model.terms(prepared, site), value=()))


def _centred(q: Tensor, k: Tensor, terms: structpe.Terms) -> Tensor:
    if other := terms.used() & {"feature_map", "projection", "pairs", "mask", "causal"}:
        raise StructPEError(f"no softmax over all pairs: {', '.join(sorted(other))}")
    _, heads, n, width = k.shape
    unit = torch.eye(n, dtype=q.dtype).expand(1, heads, n, n).split(width, dim=-1)
    padded = [functional.pad(columns, (0, width - columns.shape[-1])) for columns in unit]
    weights = torch.cat([structpe.attend(q, k, columns, terms) for columns in padded], dim=-1)[0, ..., :n]
    logs = weights.log()
    if not logs.isfinite().all():
        raise StructPEError("a weight of attention is zero")
    return logs - logs.mean(-1, keepdim=True)


def model_of(position: Any, setting: Setting) -> PositionModel:
    """The model that plain data describes, with random parameters: what it can say, not what it says at first."""
    model = build(position, setting.dims)
    if isinstance(position, str):
        line = [sequence(setting.places)]
        fitted = {k: v.fit(line) if isinstance(v, Encoding) else v for k, v in model.options().items()}
        model = type(model)(setting.dims, **fitted)
    generator = torch.Generator().manual_seed(setting.seed)
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * parameter.shape[-1] ** -0.5
    return model.double().eval()


def sequence(places: int) -> Structure:
    """A path with what the encodings of trees and graphs ask for: labels, and a root."""
    line = path([f"w{i}" for i in range(places)])
    return replace(line, relations=("next",) * (places - 1), root=0)


def singular_values(matrices: Tensor) -> Tensor:
    """(h, n) of each head, as parts of the largest; zeros where all are."""
    values = torch.linalg.svdvals(matrices)
    largest = values[:, :1]
    return torch.where(largest > TOLERANCE, values / largest.clamp(min=TOLERANCE), 0)


def rank(matrices: Tensor) -> int:
    """The largest rank of a head."""
    return int((singular_values(matrices) > TOLERANCE).sum(-1).max())
