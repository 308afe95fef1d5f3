"""Several position models at once, each in all layers or in some of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

from torch import Tensor, nn

from structpe.errors import PositionError
from structpe.positions._batch import Positions
from structpe.positions._dims import Dims
from structpe.positions._sites import Site, Sources
from structpe.positions.base import PositionModel
from structpe.terms import Terms

__all__ = ["Sum"]


class Sum(PositionModel):
    """Several position models at once: each acts on the inputs in turn, and their terms are added.

    A summand may act in some layers only, so that a sum is also a schedule of position models: rotary positions in
    three layers of four, say. It is then built for a Transformer of so many layers, the first of which is the first of
    these. What it does at the input, before all layers, it does in any case.

    Args:
        dims: sizes of the Transformer.
        models: the summands; an empty list means no position information.
        layers: for each summand the layers in which it acts, None for all; by default all of them in all layers.

    Raises:
        PositionError: one was built for other sizes; layers do not exist, or one acts at the input only; in one layer,
            two of them have their own attention, or one has and another changes what is projected.
    """

    def __init__(
        self,
        dims: Dims,
        models: Sequence[PositionModel],
        layers: Sequence[Sequence[int] | None] | None = None,
    ) -> None:
        super().__init__(dims, tuple(dict.fromkeys(e for model in models for e in model.encodings)))
        self.models = nn.ModuleList(models)
        given = repeat(None, len(models)) if layers is None else layers
        self.layers = tuple(None if each is None else tuple(each) for each in given)
        for model, own in zip(models, self.layers, strict=True):
            _check_layers(model, own, dims)
        for layer in range(dims.layers):
            _check_attention(list(_parts(self, layer)))

    def prepare(self, positions: Positions) -> list[Any]:
        return [model.prepare(positions) for model in self]

    def inputs(self, x: Tensor, prepared: list[Any]) -> Tensor:
        for model, mine in self._pairs(prepared):
            x = model.inputs(x, mine)
        return x

    def layer(self, x: Tensor, prepared: list[Any], site: Site) -> Tensor:
        for model, mine, own in self._at(prepared, site):
            x = model.layer(x, mine, own)
        return x

    def sources(self, sources: Sources, prepared: list[Any], site: Site) -> Sources:
        for model, mine, own in self._at(prepared, site):
            sources = model.sources(sources, mine, own)
        return sources

    def terms(self, prepared: list[Any], site: Site) -> Terms:
        return sum((model.terms(mine, own) for model, mine, own in self._at(prepared, site)), Terms())

    @property
    def sites(self) -> frozenset[str]:
        """Those at which one of the summands acts."""
        return frozenset().union(*(model.sites for model in self))

    def replaces(self, layer: int) -> bool:
        """Whether a summand has its own attention in this layer."""
        return any(model.replaces(own) for model, own in self.acting(layer))

    def attend(self, x: Tensor, prepared: list[Any], site: Site, terms: Terms) -> tuple[Tensor, list[Any]]:
        which, block, own = next(
            (i, model, own)
            for i, (model, layers) in enumerate(zip(self, self.layers, strict=True))
            if (own := _own(site.layer, layers)) is not None and model.replaces(own)
        )
        out, mine = block.attend(x, prepared[which], replace(site, layer=own), terms)
        return out, [*prepared[:which], mine, *prepared[which + 1 :]]

    @property
    def causal(self) -> bool:
        """Whether a decoder may use all of the summands."""
        return all(model.causal for model in self)

    def claimed_params(self) -> int:
        """The formulas of the summands, added."""
        return sum(model.claimed_params() for model in self)

    def acting(self, layer: int) -> Iterator[tuple[PositionModel, int]]:
        """The summands that act in a layer, and the number that this layer has for each."""
        for model, layers in zip(self, self.layers, strict=True):
            if (own := _own(layer, layers)) is not None:
                yield model, own

    def _at(self, prepared: list[Any], site: Site) -> Iterator[tuple[PositionModel, Any, Site]]:
        """The summands that act in the layer of a site, what each prepared, and the site as each knows it."""
        for (model, mine), layers in zip(self._pairs(prepared), self.layers, strict=True):
            if (own := _own(site.layer, layers)) is not None:
                yield model, mine, replace(site, layer=own)

    def _pairs(self, prepared: list[Any]) -> Iterator[tuple[PositionModel, Any]]:
        """Each summand, and what it prepared."""
        if not isinstance(prepared, list):
            raise PositionError(
                f"a sum of position models takes the list that its prepare returns; given is "
                f"{type(prepared).__name__}; call prepared = model.prepare(structpe.encode(structures, "
                f"model.encodings))"
            )
        return zip(self, prepared, strict=True)

    def __iter__(self) -> Iterator[PositionModel]:
        """The summands."""
        for model in self.models:
            assert isinstance(model, PositionModel)
            yield model


def _own(layer: int, layers: tuple[int, ...] | None) -> int | None:
    """The number of a layer among those in which a model acts; None if it does not act there."""
    if layers is None:
        return layer
    return layers.index(layer) if layer in layers else None


def _parts(model: PositionModel, layer: int) -> Iterator[tuple[PositionModel, int]]:
    """The models that act in a layer, those of sums in a sum too."""
    if isinstance(model, Sum):
        for each, own in model.acting(layer):
            yield from _parts(each, own)
    else:
        yield model, layer


def _check_layers(model: PositionModel, layers: tuple[int, ...] | None, dims: Dims) -> None:
    if layers is not None:
        if not layers or list(layers) != sorted({layer for layer in layers if 0 <= layer < dims.layers}):
            raise PositionError(
                f"position model {model.name!r} is to act in layers {list(layers)}; give some of 0 to "
                f"{dims.layers - 1}, each once and in order"
            )
        if model.sites <= {"inputs"} and model.sites:
            raise PositionError(
                f"position model {model.name!r} acts at the input only, before all layers; leave in_layers out"
            )
        dims = replace(dims, layers=len(layers))
    if model.dims != dims:
        raise PositionError(
            f"{model.name} was built for {model.dims}, the sum is for {dims}; build both for one Transformer"
        )


def _check_attention(parts: list[tuple[PositionModel, int]]) -> None:
    """Check what acts in one layer: each model, and the number that the layer has for it."""
    if len(blocks := [model.name for model, own in parts if model.replaces(own)]) > 1:
        raise PositionError(f"{' and '.join(blocks)} have their own attention; only one model of a sum may")
    if blocks and (lost := [model.name for model, _ in parts if "sources" in model.sites]):
        raise PositionError(
            f"{blocks[0]} has its own attention, which ignores what {' and '.join(lost)} would change in queries "
            f"and keys; leave one of them out"
        )
