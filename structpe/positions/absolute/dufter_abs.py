"""A learned scalar for each pair of places (Dufter, Schmitt and Schuetze 2020)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, Site, Spec
from structpe.positions._tables import Sharing, Table
from structpe.positions.absolute._places import Places, PlacesModel
from structpe.terms import Terms

__all__ = ["DufterAbsolute"]


class DufterAbsolute(PlacesModel, name="dufter-abs"):
    """A learned scalar for each pair of places (Dufter, Schmitt and Schuetze 2020).

    s_ij += P[t, s], P (n, n) learned: each pair of places has its own number, and no place has a vector.

    (Dufter et al. 2020, section 2, direct position interactions; survey, section 4.1.2.) As in the authors' code the
    number is added after the scale. That code has one head; here each head has its own P, unless shared.

    Args:
        dims: sizes of the Transformer.
        encoding: integers 0, 1, ... per unit.
        length: n, number of places.
        sharing: which layers and heads have the same P.

    Raises:
        PositionError: a batch has a place of ``length`` or more, or the encoding gives a vector per unit.
    """

    spec = Spec(
        "dufter2020", "sequence", Cells("A", "MAM", learnable=True, recurring=True, unbound=False, params="n*n*copies")
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), length: int = 128, sharing: Sharing = "none") -> None:
        super().__init__(dims, encoding, length, n=length, copies=Table.copies(sharing, dims))
        self.table = Table(dims, length * length, sharing)
        nn.init.normal_(self.table.weight, std=length**-0.5)

    def terms(self, prepared: Places, site: Site) -> Terms:
        of_pairs = self.table.at(site.layer).view(self.length, self.length, -1)
        return Terms(bias=(_chosen(of_pairs, prepared.queries, prepared.keys),))


def _chosen(of_pairs: Tensor, queries: Tensor | slice, keys: Tensor | slice) -> Tensor:
    """(b or 1, h or 1, n, m) from (n, n, h or 1)."""
    if isinstance(queries, slice) or isinstance(keys, slice):
        return of_pairs[queries, keys].permute(2, 0, 1)[None]
    return torch.movedim(of_pairs[queries[:, :, None], keys[:, None]], 3, 1)
