"""Scalars per bucket of offsets: T5 and what is built on it.

An offset is s - t, key minus query, or any other encoding of pairs. Pairs without a path and units of one node have
rows of their own. T5's attention is not divided by sqrt(d_h); that is not part of a position model: to use its weights
add ``Terms(scale=sqrt(d_h))``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from structpe.encodings.base import UNREACHABLE, Encoding
from structpe.encodings.order import Offset, TripleOffset
from structpe.errors import PositionError
from structpe.positions import Dims, Positions, Site, Spec
from structpe.positions.batch import of_all_pairs
from structpe.positions.tables import BOUND, PairModel, PairTable, Rows, Sharing, Table
from structpe.terms import Lookup, Terms

__all__ = ["T5", "BucketBias", "Buckets", "GLMGlobal", "GLMLocal", "T5Causal", "T5Unshared", "bucket", "log_bucket"]

TABLE1 = BOUND("(2*t-1)*h")


@dataclass(frozen=True)
class Buckets:
    """T5's bucket of each signed offset, as the rule of :class:`Rows`.

    Args:
        model: name of the position model, for error messages.
        count: B, number of buckets.
        max_distance: D; from here on all distances share the last bucket.
        bidirectional: whether keys ahead are distinguished.

    Raises:
        PositionError: too few buckets, an odd number of them for two directions, or a ``max_distance`` that is not
            beyond those with one distance each.
    """

    model: str
    count: int
    max_distance: int
    bidirectional: bool

    def __post_init__(self) -> None:
        sides, least = (2, "an even number of 4") if self.bidirectional else (1, "2")
        exact = self.count // sides // 2
        if exact < 1 or self.count % sides or self.max_distance <= exact:
            raise PositionError(
                f"position model {self.model!r} needs {least} buckets or more, and max_distance above the "
                f"{max(exact, 1)} that are exact; given are {self.count} buckets and max_distance {self.max_distance}"
            )

    def __call__(self, offsets: Tensor) -> Tensor:
        """The bucket of each offset."""
        return bucket(offsets, self.count, self.max_distance, self.bidirectional)


class BucketBias(PairTable):
    """s_ij += b[bucket(r_ij)], one learned scalar per head and bucket.

    Args:
        num_buckets: B, an even number of 4 or more.
        max_distance: D, above the distances with a bucket of their own; from here on all share the last bucket.
        sharing: ``layer-wise`` as in T5.

    Raises:
        PositionError: other buckets, or a ``max_distance`` that is not above the distances with a bucket of their own.
    """

    bidirectional: ClassVar[bool] = True
    """Whether keys ahead of the query have their own buckets."""

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Offset(),
        num_buckets: int = 32,
        max_distance: int = 128,
        sharing: Sharing = "layer-wise",
    ) -> None:
        buckets = Buckets(self.name, num_buckets, max_distance, self.bidirectional)
        super().__init__(dims, encoding, Rows(encoding, num_buckets, buckets), sharing)


def bucket(offsets: Tensor, num_buckets: int, max_distance: int, bidirectional: bool) -> Tensor:
    """T5's bucket of each signed offset, key minus query; int64 of the same shape.

    Of B buckets in two directions, C = B/2 are for r > 0 and C for the others; in one direction C = B, and every key
    ahead is in bucket 0. e = C/2, rounded down, have one distance each::

        bucket(r) = |r|                                                  for |r| < e
                    min(e + floor(log(|r|/e) / log(D/e) (C - e)), C - 1) otherwise;     + C for r > 0
    """
    ahead = torch.zeros_like(offsets)
    if bidirectional:
        num_buckets //= 2
        ahead = (offsets > 0) * num_buckets
        far = offsets.abs()
    else:
        far = (-offsets).clamp(min=0)
    exact = num_buckets // 2
    # float32 and truncation, as in mesh-tensorflow: another precision moves offsets at the edge of a bucket.
    growth = torch.log(far.clamp(min=1).float() / exact) / math.log(max_distance / exact) * (num_buckets - exact)
    coarse = (exact + growth.long()).clamp(max=num_buckets - 1)
    return ahead + torch.where(far < exact, far, coarse)


def log_bucket(offsets: Tensor, num_buckets: int, max_distance: int) -> Tensor:
    """DeBERTa's bucket of each signed offset; it has the sign of the offset. int64 of the same shape.

    With half = num_buckets / 2, rounded down::

        bucket(r) = r                                                                          for |r| <= half
                    sgn(r) (half + ceil(log(|r|/half) / log((max_distance - 1)/half) (half - 1)))  otherwise,
                    |r| being max_distance - 1 at most

    Offsets beyond max_distance - 1 either way share its bucket, 2 half - 1, as in the authors' code, which looks
    buckets up in a table. (Copies of that code that compute them do not clip: an offset far back then gets its own
    row.)
    """
    half = num_buckets // 2
    offsets = offsets.clamp(1 - max_distance, max_distance - 1)
    # float64, as in the authors' numpy: what is rounded up must not be a little above a whole number.
    far = offsets.abs().clamp(min=half).double()
    growth = torch.log(far / half) / math.log((max_distance - 1) / half) * (half - 1)
    return torch.where(offsets.abs() <= half, offsets.long(), offsets.sign().long() * (half + growth.ceil().long()))


class T5(BucketBias, name="t5"):
    """T5's relative bias in logarithmic buckets (Raffel et al. 2020).

    s_ij += b[bucket(r_ij)], one scalar per head and bucket; the table is shared by all layers.

    Of B buckets, C = B/2 are for r > 0 and C for the others; e = C/2, rounded down, of each are exact::

        bucket(r) = |r|                                                  for |r| < e
                    min(e + floor(log(|r|/e) / log(D/e) (C - e)), C - 1) otherwise;     + C for r > 0

    (Raffel et al. 2020, section 2.1.) This is the encoder's form; a decoder's, which does not distinguish keys ahead,
    is ``t5-causal``. With a table for each layer, ``sharing="none"``, it is ``t5-unshared``. Table 1 counts one scalar
    per offset, (2t-1)h; the authors' code has buckets.
    """

    spec = Spec(
        "raffel2020", "sequence", BOUND("R*copies"), table1=TABLE1, note="the code has a row per bucket, not per offset"
    )


class T5Causal(BucketBias, name="t5-causal"):
    """T5's relative bias of the decoder: one direction (Raffel et al. 2020).

    s_ij += b[bucket(r_ij)], one scalar per head and bucket; the table is shared by all layers.

    Of B buckets, e = B/2, rounded down, are exact::

        bucket(r) = 0                                                      for r >= 0
                    -r                                                     for -e < r < 0
                    min(e + floor(log(-r/e) / log(D/e) (B - e)), B - 1)    otherwise

    Keys ahead are all in bucket 0, with the query itself: a decoder does not attend to them. All buckets are then for
    earlier keys: they reach farther or are finer than those of ``t5``. (Raffel et al. 2020, section 2.1, and the code,
    ``bidirectional=False``.)

    Args:
        num_buckets: B, 2 or more.
    """

    spec = Spec(
        "raffel2020", "sequence", BOUND("R*copies"), table1=TABLE1, note="the code has a row per bucket, not per offset"
    )
    bidirectional = False


class T5Unshared(BucketBias, name="t5-unshared"):
    """T5's relative bias with a table for each layer (Raffel et al. 2020).

    s_ij += b_l[bucket(r_ij)], one scalar per layer l, head and bucket.

    The buckets are those of ``t5``, which has one table for all layers (Raffel et al. 2020, section 2.1). Here each
    layer learns its own; Chen et al. (2021, section 4.4) compare such ways of sharing.
    """

    spec = Spec(
        "raffel2020",
        "sequence",
        BOUND("R*h*l"),
        table1=TABLE1,
        note="the table is not shared by the layers, and the code has a row per bucket, not per offset",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), num_buckets: int = 32, max_distance: int = 128
    ) -> None:
        super().__init__(dims, encoding, num_buckets, max_distance, "none")


class GLMGlobal(BucketBias, name="glm-global"):
    """T5 on the triples of a graph, with one more bucket for all other pairs (Plenz and Frank 2024).

    s_ij += b[bucket(r_ij)] if a triple has both units, b[B] otherwise: the global graph language model.

    As ``glm-local``, but all units attend to one another, those without a common triple by one more bucket, number B.
    It starts as a copy of the bucket of the farthest keys ahead, the one that T5 has for +infinity; after loading
    weights of T5, copy it again. (Plenz and Frank 2024, section 4.2; the authors' code.)

    Args:
        encoding: signed integers per pair, or no path.
    """

    spec = Spec("plenz2024", "graph", BOUND("R*copies"))

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = TripleOffset(),
        num_buckets: int = 32,
        max_distance: int = 128,
        sharing: Sharing = "layer-wise",
    ) -> None:
        super().__init__(dims, encoding, num_buckets, max_distance, sharing)
        if "unreachable" in encoding.codes:
            with torch.no_grad():
                self.table.weight[:, num_buckets] = self.table.weight[:, num_buckets - 1]


class WithinTriples(NamedTuple):
    """The row of each distinct value, and which pairs attend (b, 1, n, m)."""

    rows: Lookup
    mask: Tensor


class GLMLocal(PairModel, name="glm-local"):
    """T5 on the triples of a graph, attention within triples (Plenz and Frank 2024).

    s_ij += b[bucket(r_ij)] if a triple has both units, and no attention otherwise: the local graph language model.

    r_ij is the offset of j from i in the text "head relation tail" of the triple; b and its buckets are those of T5, B
    = 32 and D = 128, so that weights of T5 fit. (Plenz and Frank 2024, section 4.1; the authors' code.) The graph is
    that of :func:`structpe.transforms.levi`, split into units.

    Args:
        encoding: signed integers per pair, or no path.
        num_buckets: B, an even number of 4 or more.
        max_distance: D, above B/4; from here on all distances share the last bucket.
        sharing: ``layer-wise`` as in T5.

    Raises:
        PositionError: other buckets, a ``max_distance`` that is not above the distances with a bucket of their own, or
            an encoding that lists only some pairs.
    """

    spec = Spec("plenz2024", "graph", BOUND("R*copies"))

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = TripleOffset(),
        num_buckets: int = 32,
        max_distance: int = 128,
        sharing: Sharing = "layer-wise",
    ) -> None:
        super().__init__(dims, of_all_pairs(self.name, encoding))
        buckets = Buckets(self.name, num_buckets, max_distance, bidirectional=True)
        self.rows = Rows(encoding, num_buckets, buckets)
        used = self.rows.size - ("unreachable" in encoding.codes)
        self.sizes = {"R": used, "copies": Table.copies(sharing, dims)}
        self.table = Table(dims, used, sharing)

    def prepare(self, positions: Positions) -> WithinTriples:
        """The row of each distinct value, and which pairs attend."""
        of_pairs = self.of_pairs(positions)
        attending = of_pairs.map(lambda values: values != UNREACHABLE)
        return WithinTriples(of_pairs.map(self._row), attending.dense()[:, None])

    def terms(self, prepared: WithinTriples, site: Site) -> Terms:
        return Terms(bias=(self.table.entries(prepared.rows, site),), mask=(prepared.mask,))

    def _row(self, values: Tensor) -> Tensor:
        """The table has no row for pairs that do not attend."""
        rows = self.rows.of(values)
        return rows - (rows >= self.rows.offsets).long() if "unreachable" in self.encodings[0].codes else rows
