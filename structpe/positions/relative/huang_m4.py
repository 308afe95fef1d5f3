"""A vector per offset, multiplied with query and key (Huang et al. 2020, method 4)."""

from __future__ import annotations

from structpe.positions import Cells, Site, Spec
from structpe.positions.relative._spans import SpanTable
from structpe.terms import Lookup, Terms

__all__ = ["HuangM4"]


class HuangM4(SpanTable, name="huang-m4"):
    """A vector per offset, multiplied with query and key (Huang et al. 2020, method 4).

    s_ij = (q_i.k_j + q_i.r[t - s] + k_j.r[t - s]) / sqrt(d_h),  r a learned vector (d_h) per offset.

    That is (q_i + r).(k_j + r) without r.r, for t - s from 1 - t_max to t_max - 1. t - s is query minus key, or the
    negative of any other encoding of pairs. Row t - s + t_max - 1 is that of t - s, as in the code. Pairs without a
    path and units of one node have their own vectors. (Huang et al. 2020, method 4; survey, eq. 20;
    "relative_key_query" of the code that its first author gave to BERT's reimplementation.) Entries start from N(0,
    0.02).

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        length: t_max; nothing is clipped, an offset of this or more is an error.
        sharing: ``head-wise``, a table per layer for all heads, as in the code.

    Raises:
        PositionError: a length below 1, an encoding without one integer per pair, or a batch with farther offsets.
    """

    spec = Spec(
        "huang2020",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*dh*copies"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="d*l*h*(2*t-1)"),
        note="vectors have the width of a head, and all heads of a layer share them",
    )

    vectors = True

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        vectors = self.entries(prepared, site)
        return Terms(key=(vectors,), query=(vectors,))
