"""Several position models at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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

    Args:
        models: the summands; an empty list means no position information.

    Raises:
        PositionError: one was built for other sizes; two of them have their own attention, or one has and another
            changes what is projected.
    """

    def __init__(self, dims: Dims, models: Sequence[PositionModel]) -> None:
        super().__init__(dims, tuple(dict.fromkeys(e for model in models for e in model.encodings)))
        self.models = nn.ModuleList(models)
        parts = list(_parts(models))
        if other := [model for model in parts if model.dims != dims]:
            raise PositionError(
                f"{other[0].name} was built for {other[0].dims}, the sum is for {dims}; build both for one Transformer"
            )
        if len(blocks := [model.name for model in parts if model.own_attention]) > 1:
            raise PositionError(f"{' and '.join(blocks)} have their own attention; only one model of a sum may")
        if blocks and (lost := [model.name for model in parts if "sources" in model.sites]):
            raise PositionError(
                f"{blocks[0]} has its own attention, which ignores what {' and '.join(lost)} would change in queries "
                f"and keys; leave one of them out"
            )

    def prepare(self, positions: Positions) -> list[Any]:
        return [model.prepare(positions) for model in self]

    def inputs(self, x: Tensor, prepared: list[Any]) -> Tensor:
        for model, mine in self._pairs(prepared):
            x = model.inputs(x, mine)
        return x

    def layer(self, x: Tensor, prepared: list[Any], site: Site) -> Tensor:
        for model, mine in self._pairs(prepared):
            x = model.layer(x, mine, site)
        return x

    def sources(self, sources: Sources, prepared: list[Any], site: Site) -> Sources:
        for model, mine in self._pairs(prepared):
            sources = model.sources(sources, mine, site)
        return sources

    def terms(self, prepared: list[Any], site: Site) -> Terms:
        return sum((m.terms(p, site) for m, p in self._pairs(prepared)), Terms())

    @property
    def sites(self) -> frozenset[str]:
        """Those at which one of the summands acts."""
        return frozenset().union(*(model.sites for model in self))

    @property
    def own_attention(self) -> bool:
        """Whether one of the summands has its own attention."""
        return any(model.own_attention for model in self)

    def attend(self, x: Tensor, prepared: list[Any], site: Site, terms: Terms) -> tuple[Tensor, list[Any]]:
        which, block = next((i, model) for i, model in enumerate(self) if model.own_attention)
        out, mine = block.attend(x, prepared[which], site, terms)
        return out, [*prepared[:which], mine, *prepared[which + 1 :]]

    @property
    def causal(self) -> bool:
        """Whether a decoder may use all of the summands."""
        return all(model.causal for model in self)

    def claimed_params(self) -> int:
        """The formulas of the summands, added."""
        return sum(model.claimed_params() for model in self)

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


def _parts(models: Iterable[PositionModel]) -> Iterator[PositionModel]:
    """The models of a sum and of the sums in it."""
    for model in models:
        if isinstance(model, Sum):
            yield from _parts(model)
        else:
            yield model
