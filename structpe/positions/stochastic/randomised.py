"""Randomised positions: in training, a random subsample of the places of longer texts (Ruoss et al. 2023)."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch import Tensor

from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Sources, Spec, build
from structpe.positions._rows import is_plain
from structpe.terms import Lookup, SparsePairs, Terms

__all__ = ["Randomised"]

Inner: TypeAlias = str | dict[str, Any]
"""Plain data of a position model."""


class Randomised(PositionModel, name="randomised"):
    """Randomised positions: in training, a random subsample of the places of longer texts (Ruoss et al. 2023).

    Another position model that is given random places, r_t instead of t, and distances, r_o instead of o.

    In training r are as many places as the longest text has units, drawn anew for each batch from 0..L-1 without
    repetition, and sorted. For distances r_0 = 0, the others are drawn from 1..L-1; an offset -o becomes -r_o. So every
    place of texts of L units is met in training on short ones. (Ruoss et al. 2023, section 3, and their code, which
    draws distances in this way for relative and ALiBi positions too.)

    In evaluation r_t = t floor(L / N), the same for all texts, so that a decoder can use it; N is the number of units
    of the longest text that is expected. There the authors draw as in training. A text of a batch that is shorter than
    the longest gets the first of its places; the authors' batches have one length.

    Whole numbers of any encoding are changed that are places or distances: depths of a tree or distances in a graph
    too. Special values, such as of pairs without a path, stay, and so do places beyond the drawn ones.

    Args:
        dims: sizes of the Transformer.
        model: name of the position model, or a mapping with its options. It must take places up to L.
        length: L.
        longest: N, L at most.

    Raises:
        PositionError: N is above L; a text of training has more than L units; or the model reads real numbers.
    """

    spec = Spec(
        "ruoss2023",
        "sequence",
        Cells("R", "MAM", learnable=False, recurring=True, unbound=True, params="inner"),
        note="cells and parameters are those of the model that is given these places, rotary by default",
    )

    def __init__(self, dims: Dims, model: Inner = "rotary", length: int = 2048, longest: int = 512) -> None:
        if longest > length:
            raise PositionError(
                f"position model {self.name!r} spreads {longest} units over {length} places; give longest={length} at "
                f"most, or a larger length"
            )
        inner = build(model, dims)
        if other := [encoding.name for encoding in inner.encodings if encoding.real or encoding.ragged]:
            raise PositionError(
                f"position model {self.name!r} draws places and distances, whole numbers; {inner.name!r} reads "
                f"{other[0]!r}, which gives others"
            )
        super().__init__(dims, inner.encodings, inner=inner.claimed_params())
        self.inner, self.length, self.stride = inner, length, length // longest

    def prepare(self, positions: Positions) -> Any:
        return self.inner.prepare(positions.replaced({e: self._drawn(positions[e]) for e in self.encodings}))

    def inputs(self, x: Tensor, prepared: Any) -> Tensor:
        return self.inner.inputs(x, prepared)

    def layer(self, x: Tensor, prepared: Any, site: Site) -> Tensor:
        return self.inner.layer(x, prepared, site)

    def sources(self, sources: Sources, prepared: Any, site: Site) -> Sources:
        return self.inner.sources(sources, prepared, site)

    def terms(self, prepared: Any, site: Site) -> Terms:
        return self.inner.terms(prepared, site)

    def attend(self, x: Tensor, prepared: Any, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        return self.inner.attend(x, prepared, site, terms)

    @property
    def sites(self) -> frozenset[str]:
        """Those of the other model."""
        return self.inner.sites

    def replaces(self, layer: int) -> bool:
        """Whether the other model has its own attention there."""
        return self.inner.replaces(layer)

    @property
    def causal(self) -> bool:
        """Whether a decoder may use the other model."""
        return self.inner.causal

    def _drawn(self, given: Any) -> Any:
        """The values of an encoding, each place or offset replaced."""
        if isinstance(given, (Lookup, SparsePairs)):
            return given.map(lambda values: self._changed(values.long(), pairs=True))
        return self._changed(given.long(), pairs=False)

    def _changed(self, values: Tensor, pairs: bool) -> Tensor:
        changed = is_plain(values) & (values.abs() > 0 if pairs else values >= 0)
        size = torch.where(changed, values.abs(), 0)
        if not self.training:
            return torch.where(changed, values * self.stride, values)
        places = self._places(int(size.max()) + 1 if size.numel() else 1, pairs)
        return torch.where(changed, places.to(values.device)[size] * values.sign().where(values != 0, 1), values)

    def _places(self, count: int, pairs: bool) -> Tensor:
        """(count,) r_0, r_1, ..."""
        if count > self.length:
            raise PositionError(
                f"position model {self.name!r} draws from {self.length} places, and a text of this batch has a place "
                f"or distance {count - 1}; build it with length={count} or more"
            )
        drawn = torch.randperm(self.length - pairs)[: count - pairs].sort().values
        return torch.cat([drawn.new_zeros(1), drawn + 1]) if pairs else drawn
