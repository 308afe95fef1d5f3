"""Offsets in buckets that widen with distance: shared by T5, TUPE and DeBERTa's later versions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.errors import PositionError
from structpe.positions import Dims
from structpe.positions._checks import of_arity
from structpe.positions._pair_tables import PairTable
from structpe.positions._rows import Rows
from structpe.positions._tables import Sharing

__all__ = ["BucketBias", "Buckets", "bucket", "log_bucket"]


@dataclass(frozen=True)
class Buckets:
    """The row of a table for each value: T5's buckets for offsets, then those of the code points.

    Args:
        model: name of the position model, for error messages.
        encoding: signed integers per pair.
        count: B, number of buckets for offsets.
        farthest: D; from here on all distances share the last bucket.
        bidirectional: whether keys ahead are distinguished.

    Raises:
        PositionError: too few buckets, an odd number of them for two directions, or a farthest that is not beyond those
            with one distance each.
    """

    model: str
    encoding: Encoding
    count: int
    farthest: int
    bidirectional: bool

    def __post_init__(self) -> None:
        of_arity(self.model, self.encoding, 2)
        sides, least = (2, "an even number of 4") if self.bidirectional else (1, "2")
        exact = self.count // sides // 2
        if exact < 1 or self.count % sides or self.farthest <= exact:
            raise PositionError(
                f"position model {self.model!r} needs {least} buckets or more, and farthest above "
                f"the {max(exact, 1)} that are exact; given are {self.count} buckets and farthest {self.farthest}"
            )

    @property
    def size(self) -> int:
        """Number of rows, R."""
        return self._rows.size

    def of(self, values: Tensor) -> Tensor:
        """Row of each value."""
        return self._rows.of(values, lambda r: bucket(r, self.count, self.farthest, self.bidirectional))

    @property
    def _rows(self) -> Rows:
        return Rows(self.encoding, self.count)


class BucketBias(PairTable):
    """T5's bias, one learned scalar per head and bucket."""

    bidirectional: ClassVar[bool] = True
    """Whether keys ahead of the query have their own buckets."""

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Offset(),
        buckets: int = 32,
        farthest: int = 128,
        sharing: Sharing = "layer-wise",
    ) -> None:
        rows = Buckets(self.name, encoding, buckets, farthest, self.bidirectional)
        super().__init__(dims, encoding, rows, sharing)


def bucket(offsets: Tensor, buckets: int, farthest: int, bidirectional: bool) -> Tensor:
    """T5's bucket of each signed offset, key minus query; int64 of the same shape.

    Of B buckets in two directions, C = B/2 are for r > 0 and C for the others; in one direction C = B, and every key
    ahead is in bucket 0. e = C/2, rounded down, have one distance each::

        bucket(r) = |r|                                                  for |r| < e
                    min(e + floor(log(|r|/e) / log(D/e) (C - e)), C - 1) otherwise;     + C for r > 0
    """
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


def log_bucket(offsets: Tensor, buckets: int, farthest: int) -> Tensor:
    """DeBERTa's bucket of each signed offset; it has the sign of the offset. int64 of the same shape.

    With half = buckets / 2, rounded down::

        bucket(r) = r                                                                          for |r| <= half
                    sgn(r) (half + ceil(log(|r|/half) / log((farthest - 1)/half) (half - 1)))  otherwise,
                    |r| being farthest - 1 at most

    Offsets beyond farthest - 1 either way share its bucket, 2 half - 1, as in the authors' code, which looks buckets up
    in a table. (Copies of that code that compute them do not clip: an offset far back then gets its own row.)
    """
    half = buckets // 2
    offsets = offsets.clamp(1 - farthest, farthest - 1)
    # float64, as in the authors' numpy: what is rounded up must not be a little above a whole number.
    far = offsets.abs().clamp(min=half).double()
    growth = torch.log(far / half) / math.log((farthest - 1) / half) * (half - 1)
    return torch.where(offsets.abs() <= half, offsets.long(), offsets.sign().long() * (half + growth.ceil().long()))
