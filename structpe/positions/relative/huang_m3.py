"""A vector per offset between query and key (Huang et al. 2020, method 3)."""

from __future__ import annotations

from structpe.positions import Cells, Site, Spec
from structpe.positions.relative._spans import SpanTable
from structpe.terms import Lookup, Terms

__all__ = ["HuangM3"]


class HuangM3(SpanTable, name="huang-m3"):
    """A vector per offset between query and key (Huang et al. 2020, method 3).

    s_ij = sum_c q_ic k_jc r[t - s]_c / sqrt(d_h),  r a learned vector (d_h) per offset from 1 - t_max to t_max - 1.

    t - s is query minus key, or the negative of any other encoding of pairs. Pairs without a path and units of one node
    have their own vectors. (Huang et al. 2020, method 3; survey, eq. 19. No code by the authors is known.) The vectors
    start at 1, where attention ignores positions, and are shared by the heads of a layer as in the code of method 4:
    both are our choice. A term of attention is added to q.k, so that it contains r - 1.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        length: t_max; nothing is clipped, an offset of this or more is an error.
        sharing: ``head-wise``, a table per layer for all heads.

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
    start = 1.0

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        table = self.table.at(site.layer)
        return Terms(product=(prepared.map(lambda rows: table[rows] - 1),))
