"""T5's relative bias with a table for each layer (Raffel et al. 2020)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.positions import Cells, Dims, Spec
from structpe.positions.buckets._offset_buckets import BucketBias

__all__ = ["T5Unshared"]


class T5Unshared(BucketBias, name="t5-unshared"):
    """T5's relative bias with a table for each layer (Raffel et al. 2020).

    s_ij += b_l[bucket(r_ij)], one scalar per layer l, head and bucket.

    The buckets are those of ``t5``, which has one table for all layers (Raffel et al. 2020, section 2.1). Here each
    layer learns its own; Chen et al. (2021, section 4.4) compare such ways of sharing.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        buckets: B, an even number of 4 or more.
        farthest: D, above B/4; from here on all distances share the last bucket.

    Raises:
        PositionError: other buckets, a farthest that is not above those, or no single integer per pair.
    """

    spec = Spec(
        "raffel2020",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*h*l"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="(2*t-1)*h"),
        note="the table is not shared by the layers, and the code has a row per bucket, not per offset",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Offset(), buckets: int = 32, farthest: int = 128) -> None:
        super().__init__(dims, encoding, buckets, farthest, "none")
