"""One layer of attention with a position model and random parameters, for figures without training."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from structpe.pictures.head_patterns import refuse_own_attention
from structpe.positions import Dims, PositionModel, Site, Sources
from structpe.positions.batch import encode
from structpe.positions.build import Config, build
from structpe.structure import Structure, path
from structpe.terms import Terms

__all__ = ["Setting", "first_layer", "model_of", "sequence"]

BERT_LAYER = Dims(width=768, heads=12, layers=1)


@dataclass(frozen=True)
class Setting:
    """The layer and the input of a measurement; by default a layer of BERT-base.

    Attributes:
        dims: sizes of the Transformer, whose projections are random.
        places: length of the sequence.
        content: factor of the units' random vectors; 0 for positions only.
        seed: seed of all random numbers.
        structure: a structure instead of the sequence.
        same: whether all units have the same random vector; pairs then differ only by their positions.
    """

    dims: Dims = BERT_LAYER
    places: int = 256
    content: float = 1.0
    seed: int = 0
    structure: Structure | None = None
    same: bool = False

    @property
    def read(self) -> Structure:
        """The structure, or the sequence."""
        return sequence(self.places) if self.structure is None else self.structure


@torch.no_grad()
def first_layer(position: Config, setting: Setting) -> tuple[Tensor, Tensor, Terms]:
    """Queries and keys (1, h, n, d_h) of the first layer, and the terms of its attention.

    There is no normalisation: with vectors P added to the input and no content, the scores are P W_Q W_K^T P^T.

    Raises:
        PictureError: the model has its own attention.
        EncodingError, PositionError: the model does not fit the structure.
    """
    model, dims, structure = model_of(position, setting), setting.dims, setting.read
    refuse_own_attention(model)
    positions = encode([structure], model.encodings).to(torch.device("cpu"), torch.float64)
    prepared, site = model.prepare(positions), Site(0)
    generator = torch.Generator().manual_seed(setting.seed + 1)
    shape = (1, structure.unit_count, dims.width)
    x = setting.content * torch.randn(shape, generator=generator, dtype=torch.float64)
    x = x[:, :1].expand(shape) if setting.same else x
    x = model.layer(model.inputs(x, prepared), prepared, site)
    of = model.sources(Sources(x, x, x), prepared, site)
    weights = torch.randn(2, dims.width, dims.width, generator=generator, dtype=torch.float64) * dims.width**-0.5
    q, k = (
        (each @ w).view(*each.shape[:2], dims.heads, -1).transpose(1, 2)
        for each, w in zip((of.query, of.key), weights, strict=True)
    )
    return q, k, model.terms(prepared, site)


def model_of(position: Config, setting: Setting) -> PositionModel:
    """Build a model with random parameters, instead of its initial ones.

    Every parameter is normally distributed, with a deviation of 1/sqrt of the size of its last axis.
    """
    model = build(position, setting.dims, fit=[setting.read])
    generator = torch.Generator().manual_seed(setting.seed)
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * parameter.shape[-1] ** -0.5
    return model.double().eval()


def sequence(places: int) -> Structure:
    """A path with labels and a root, which encodings of trees and graphs need."""
    line = path([f"w{i}" for i in range(places)])
    return replace(line, relations=("next",) * (places - 1), root=0)
