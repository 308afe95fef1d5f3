"""T5's relative bias of the decoder: one direction (Raffel et al. 2020)."""

from __future__ import annotations

from structpe.positions import Cells, Spec
from structpe.positions.buckets._offset_buckets import BucketBias

__all__ = ["T5Causal"]


class T5Causal(BucketBias, name="t5-causal"):
    """T5's relative bias of the decoder: one direction (Raffel et al. 2020).

    s_ij += b[bucket(r_ij)], one scalar per head and bucket; the table is shared by all layers.

    r_ij = s - t (key minus query) or any other encoding of pairs. With B buckets, of which e = B/2, rounded down, are
    exact::

        bucket(r) = 0                                                      for r >= 0
                    -r                                                     for -e < r < 0
                    min(e + floor(log(-r/e) / log(D/e) (B - e)), B - 1)    otherwise

    Keys ahead are all in bucket 0, with the query itself: a decoder does not attend to them. All buckets are then for
    earlier keys, so that they reach farther or are finer than those of ``t5``. (Raffel et al. 2020, section 2.1, and
    the code, ``bidirectional=False``.) As there, 1/sqrt(d_h) is not part of the position model.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        buckets: B, 2 or more.
        farthest: D, above e; from here on all distances share the last bucket.
        sharing: ``layer-wise`` as in T5.

    Raises:
        PositionError: fewer buckets, a farthest that is not above e, or no single integer per pair.
    """

    spec = Spec(
        "raffel2020",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="(2*t-1)*h"),
        note="the code has a row per bucket, not per offset",
    )

    bidirectional = False
