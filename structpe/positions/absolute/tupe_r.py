"""Untied absolute positions and a bias per bucket of offsets (Ke, He and Liu 2021, TUPE-R)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset, Order
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import of_all_pairs, of_whole, offsets
from structpe.positions._rows import Rows
from structpe.positions.absolute._untied import Untied, check_layers
from structpe.positions.buckets._offset_buckets import Buckets, bucket
from structpe.terms import Factor, Lookup, Terms

__all__ = ["TUPERelative"]


class TUPERelative(PositionModel, name="tupe-r"):
    """Untied absolute positions and a bias per bucket of offsets (Ke, He and Liu 2021, TUPE-R).

    s_ij = (q_i.k_j + p_i.r_j) / sqrt(2 d_h) + b[bucket(s - t)]:  ``tupe-a``, and a scalar per head and bucket.

    p_i.r_j is that of ``tupe-a``, the first unit, ``[CLS]``, being special. The buckets of s - t, key minus query, are
    T5's in both directions (see ``t5``), except for the first unit: as a query it has bucket B/2, which no offset falls
    into, for all keys and itself; as a key of the others it has bucket B, the one after the last. The table is shared
    by all layers. Any other encodings of single units and of pairs can be used: with depths and distances the root of a
    tree is the special unit. (Ke et al. 2021, section 3; survey, section 4.1.2.)

    As in the authors' code, where the survey differs: buckets instead of a scalar per offset, and the differences
    listed in ``tupe-a``. Pairs without a path and units of one node have their own rows. Entries start from N(0, 0.02).

    Args:
        dims: sizes of the Transformer.
        encoding: integers 0, 1, ... per unit.
        offset: signed integers per pair.
        length: t_max, number of places.
        buckets: B, an even number of 4 or more.
        farthest: from here on all distances share the last bucket.
        layers: how many layers, from the first on, have both terms; None for all.

    Raises:
        PositionError: a length or number of layers below 1, other buckets, or a batch with a place of ``length`` or
            more.
    """

    spec = Spec(
        "ke2021",
        "sequence",
        Cells("B", "MAM", learnable=True, recurring=True, unbound=False, params="(t + 1)*d + 2*(d*d + d) + 2*d + R*h"),
        table1=Cells("B", "MAM", learnable=True, recurring=False, unbound=False, params="2*d*d + t*(d + 2)"),
        note="in the code every layer has the term, with a LayerNorm, biases, and buckets in place of offsets",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        offset: Encoding = Offset(),
        length: int = 512,
        buckets: int = 32,
        farthest: int = 128,
        layers: int | None = None,
    ) -> None:
        each = Buckets(self.name, of_all_pairs(self.name, offset), buckets, farthest, bidirectional=True)
        rows = Rows(offset, buckets + 1)
        super().__init__(dims, [of_whole(self.name, encoding), offset], t=length, R=rows.size)
        self.layers, self.buckets, self.rows = check_layers(self.name, dims, layers), each, rows
        self.places = Untied(self.name, dims, length)
        self.bias = nn.Parameter(torch.randn(rows.size, dims.heads) * 0.02)

    def prepare(self, positions: Positions) -> tuple[Factor, Lookup]:
        """Both terms of a batch, the same for all layers."""
        return self.places(positions, self.encodings[0]), self._of_pairs(positions).map(self.bias.__getitem__).share()

    def terms(self, prepared: tuple[Factor, Lookup], site: Site) -> Terms:
        factor, bias = prepared
        return Terms(factors=(factor,), bias=(bias,), scale=math.sqrt(0.5)) if site.layer < self.layers else Terms()

    def _of_pairs(self, positions: Positions) -> Lookup:
        """The row of each pair: two more rows than there are values, for the first unit as query and as key."""
        of_pairs = offsets(self.name, self.encodings[1], positions[self.encodings[1]]).map(self._row)
        table, rows = of_pairs.table, of_pairs.rows
        as_key, as_query = table.new_tensor([self.buckets.count]), table.new_tensor([self.buckets.count // 2])
        own = torch.arange(len(table), len(table) + 2, device=rows.device).expand(len(rows), -1)
        keys, queries = positions[self.encodings[0]] == 0, positions.queries(self.encodings[0]) == 0
        width = rows.shape[1]
        index = torch.where(keys[:, None, :], width, of_pairs.places())
        index = torch.where(queries[:, :, None], width + 1, index)
        return Lookup(torch.cat([table, as_key, as_query]), torch.cat([rows, own], dim=1), index)

    def _row(self, values: Tensor) -> Tensor:
        each = self.buckets
        return self.rows.of(values, lambda r: bucket(r, each.count, each.farthest, bidirectional=True))
