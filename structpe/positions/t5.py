"""T5's relative bias in logarithmic buckets (Raffel et al. 2020)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.errors import PositionError
from structpe.positions._rows import Rows, Sharing, Table, of_arity, offsets
from structpe.positions.base import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.terms import Lookup, Terms

__all__ = ["T5", "bucket"]


class T5(PositionModel, name="t5"):
    """s_ij += b[bucket(r_ij)], one scalar per head and bucket; the table is shared by all layers.

    r_ij = s - t (key minus query) or any other encoding of pairs by signed integers. Of B buckets, C = B/2 are for
    r > 0 and C for the others; e = C/2, rounded down, of each are exact::

        bucket(r) = |r|                                                  for |r| < e
                    min(e + floor(log(|r|/e) / log(D/e) (C - e)), C - 1) otherwise;     + C for r > 0

    In one direction (a decoder's) C = B, nothing is added, and every key ahead is in bucket 0. Pairs without a path and
    units of one node have rows of their own, where the encoding has such pairs. (Raffel et al. 2020, section 2.1.)

    T5's own attention has no 1/sqrt(d_h); that is not part of the position model: add ``Terms(scale=sqrt(d_h))``.
    Table 1 counts one scalar per offset, (2t-1)h; the authors' code has buckets.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        buckets: B; 4 or more and even where keys ahead are told apart, 2 or more otherwise.
        farthest: D, above e; from here on all distances share the last bucket.
        bidirectional: whether keys ahead are told apart.
        sharing: ``layer-wise`` as in T5; ``none`` is T5 unshared.

    Raises:
        PositionError: other buckets, a farthest that is not above e, or no single integer per pair.
    """

    spec = Spec(
        cite="raffel2020",
        structure="sequence",
        cells=Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="(2*t-1)*h"),
        note="the code has a row per bucket, not per offset",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Offset(),
        buckets: int = 32,
        farthest: int = 128,
        bidirectional: bool = True,
        sharing: Sharing = "layer-wise",
    ) -> None:
        sides, least = (2, "an even number of 4") if bidirectional else (1, "2")
        exact = buckets // sides // 2
        if exact < 1 or buckets % sides or farthest <= exact:
            raise PositionError(
                f"position model 't5' needs {least} buckets or more, and farthest above "
                f"the {max(exact, 1)} that are exact; given are {buckets} buckets and farthest {farthest}"
            )
        rows = Rows(of_arity(self.name, encoding, 2), buckets)
        super().__init__(dims, [encoding], R=rows.size, copies=Table.copies(sharing, dims))
        self.buckets, self.farthest, self.bidirectional, self.rows = buckets, farthest, bidirectional, rows
        self.table = Table(dims, rows.size, sharing)

    def prepare(self, positions: Positions) -> Lookup:
        """The row of each distinct value: computed once per value, not per pair and layer."""
        of_pairs = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        return of_pairs.map(
            lambda values: self.rows.of(values, lambda r: bucket(r, self.buckets, self.farthest, self.bidirectional))
        )

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(bias=(prepared.map(self.table.at(site.layer).__getitem__),))


def bucket(offsets: Tensor, buckets: int, farthest: int, bidirectional: bool) -> Tensor:
    """Bucket of each signed offset, key minus query; int64 of the same shape. See :class:`T5`."""
    ahead = torch.zeros_like(offsets)
    if bidirectional:
        buckets //= 2
        ahead = (offsets > 0) * buckets
        far = offsets.abs()
    else:
        far = (-offsets).clamp(min=0)
    exact = buckets // 2
    # float32 and truncation, as in mesh-tensorflow: another precision moves offsets at the edge of a bucket.
    growth = torch.log(far.clamp(min=1).float() / exact) / math.log(farthest / exact) * (buckets - exact)
    coarse = (exact + growth.long()).clamp(max=buckets - 1)
    return ahead + torch.where(far < exact, far, coarse)
