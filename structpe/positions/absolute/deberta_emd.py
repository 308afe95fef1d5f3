"""Absolute positions in the queries of the last layer: DeBERTa's enhanced mask decoder (He et al. 2021)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Sources, Spec
from structpe.positions._checks import of_whole
from structpe.positions.absolute._places import Places

__all__ = ["DeBERTaEMD"]


class DeBERTaEMD(PositionModel, name="deberta-emd"):
    """Absolute positions in the queries of the last layer: DeBERTa's enhanced mask decoder (He et al. 2021).

    q_t = W_q (x_t + P[t]) in the last layer; keys and values are projected from x only. P (t_max, d) is learned.

    DeBERTa uses relative positions only, except where it predicts masked words: there it adds absolute ones. Add it to
    ``deberta``; ``deberta-v2``, which has its own attention, does not support it. (He et al. 2021, section 3.2; survey,
    section 4.1.2.)

    The authors' decoder of the masked language model adds P to the output of the layer before the last, and runs the
    last layer, with its own weights, twice over it: what comes out first are the queries of the second run, and keys
    and values stay those of the layer before. Here the last layer runs once, as for any other model, and what is added
    to the queries is not part of its residual sum. Layers here normalise first: P is added to normalised vectors.
    Entries start from N(0, 0.02).

    Args:
        dims: sizes of the Transformer.
        encoding: integers 0, 1, ... per unit.
        length: t_max, number of places.

    Raises:
        PositionError: a batch has a place of ``length`` or more.
    """

    spec = Spec(
        "he2021",
        "sequence",
        Cells("A", "APE", learnable=True, recurring=True, unbound=False, params="t*d"),
        note="a part of the survey's row of DeBERTa, in the last layer only",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), length: int = 512) -> None:
        super().__init__(dims, [of_whole(self.name, encoding)], t=length)
        self.table = nn.Parameter(torch.randn(length, dims.width) * 0.02)

    def prepare(self, positions: Positions) -> Tensor:
        """(b or 1, n, d) the vectors of the queries."""
        queries = Places.of(self.name, self.encodings[0], positions, len(self.table)).queries
        rows = self.table[queries]
        return rows[None] if isinstance(queries, slice) else rows

    def sources(self, sources: Sources, prepared: Tensor, site: Site) -> Sources:
        if site.layer < self.dims.layers - 1:
            return sources
        return Sources(sources.query + prepared, sources.key, sources.value)
