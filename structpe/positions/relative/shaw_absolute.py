"""Vectors for pairs of absolute places, at keys and values (Shaw, Uszkoreit and Vaswani 2018, absolute variant)."""

from __future__ import annotations

import math

import torch

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, Positions, Site, Spec
from structpe.positions._tables import Sharing, Table
from structpe.positions.absolute._places import Places, PlacesModel
from structpe.positions.paths._path_attention import each_pair
from structpe.terms import Lookup, Terms

__all__ = ["ShawAbsolute"]


class ShawAbsolute(PlacesModel, name="shaw-absolute"):
    """Vectors for pairs of absolute places, at keys and values (Shaw, Uszkoreit and Vaswani 2018, absolute variant).

    s_ij = q_i.(k_j + K[t, s]) / sqrt(d_h),  o_i = sum_j w_ij (v_j + V[t, s]),  t, s the places of query and key.

    K and V are tables (t_max t_max, d_h), one pair per layer, shared by the heads; row t t_max + s is that of (t, s).
    Places may be any other integers per unit, such as depths. (Survey, eqs. 9 and 10; Shaw et al. 2018, section 3.1,
    where vectors are of pairs of inputs; relative positions are then a choice of these, ``shaw``. No code of this
    variant is published.) Entries start with the deviation of a Glorot initialisation, as those of ``shaw``.

    Every pair has its own vector, so that tables are large and a structure has a row for each pair. Structures whose
    places are 0, 1, ... share them. Table 1 counts vectors as wide as the model.

    Args:
        dims: sizes of the Transformer.
        encoding: integers 0, 1, ... per unit.
        length: t_max.
        sharing: ``head-wise``, as in ``shaw``.

    Raises:
        PositionError: a length below 1, or a batch with a place of ``length`` or more.
    """

    spec = Spec(
        "shaw2018",
        "sequence",
        Cells("A", "MAM", learnable=True, recurring=True, unbound=False, params="2*t*t*dh*copies"),
        table1=Cells("A", "MAM", learnable=True, recurring=True, unbound=False, params="2*t*t*d*l"),
        note="vectors have the width of a head, as in the code of the relative variant",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Order(), length: int = 64, sharing: Sharing = "head-wise"
    ) -> None:
        super().__init__(dims, encoding, length, t=length, copies=Table.copies(sharing, dims))
        std = math.sqrt(2 / (length * length + dims.head))
        self.keys = Table(dims, length * length, sharing, width=dims.head, std=std)
        self.values = Table(dims, length * length, sharing, width=dims.head, std=std)

    def prepare(self, positions: Positions) -> Lookup:
        """The row of each pair; most pairs have different ones, so that they are not searched for equal ones."""
        places: Places = super().prepare(positions)
        all_places = torch.arange(self.length, device=self.keys.weight.device)[None]
        queries, keys = (all_places[:, p] if isinstance(p, slice) else p for p in (places.queries, places.keys))
        rows = queries[:, :, None] * self.length + keys[:, None, :]
        return each_pair(torch.arange(self.length**2), rows)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(
            key=(prepared.map(lambda _: self.keys.at(site.layer)),),
            value=(prepared.map(lambda _: self.values.at(site.layer)),),
        )
