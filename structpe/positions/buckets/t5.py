"""T5's relative bias in logarithmic buckets (Raffel et al. 2020)."""

from __future__ import annotations

from structpe.positions import Cells, Spec
from structpe.positions.buckets._offset_buckets import BucketBias

__all__ = ["T5"]


class T5(BucketBias, name="t5"):
    """T5's relative bias in logarithmic buckets (Raffel et al. 2020).

    s_ij += b[bucket(r_ij)], one scalar per head and bucket; the table is shared by all layers.

    r_ij = s - t (key minus query) or any other encoding of pairs. Of B buckets, C = B/2 are for r > 0 and C for the
    others; e = C/2, rounded down, of each are exact::

        bucket(r) = |r|                                                  for |r| < e
                    min(e + floor(log(|r|/e) / log(D/e) (C - e)), C - 1) otherwise;     + C for r > 0

    Pairs without a path and units of one node have their own rows. (Raffel et al. 2020, section 2.1.) This is the
    encoder's form; a decoder's, which does not distinguish keys ahead, is ``t5-causal``.

    T5's own attention has no 1/sqrt(d_h); that is not part of the position model: add ``Terms(scale=sqrt(d_h))``.
    Table 1 counts one scalar per offset, (2t-1)h; the authors' code has buckets.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        buckets: B, an even number of 4 or more.
        farthest: D, above e; from here on all distances share the last bucket.
        sharing: ``layer-wise`` as in T5; ``none`` is ``t5-unshared``.

    Raises:
        PositionError: other buckets, a farthest that is not above e, or no single integer per pair.
    """

    spec = Spec(
        "raffel2020",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="(2*t-1)*h"),
        note="the code has a row per bucket, not per offset",
    )
