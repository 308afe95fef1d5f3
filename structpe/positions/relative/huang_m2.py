"""A scalar per offset that multiplies the score (Huang et al. 2020, method 2)."""

from __future__ import annotations

from structpe.positions import Cells, Site, Spec
from structpe.positions.relative._spans import SpanTable
from structpe.terms import Lookup, Terms

__all__ = ["HuangM2"]


class HuangM2(SpanTable, name="huang-m2"):
    """A scalar per offset that multiplies the score (Huang et al. 2020, method 2).

    s_ij = r[t - s] q_i.k_j / sqrt(d_h),  r a learned scalar per offset from 1 - t_max to t_max - 1.

    As ``huang-m1``, with directions distinguished. t - s is query minus key, or the negative of any other encoding of
    pairs. Pairs without a path and units of one node have their own scalars. (Huang et al. 2020, method 2; survey,
    section 4.1.2. No code by the authors is known.) The scalars start at 1, where attention ignores positions, and are
    shared by the heads of a layer as in the code of method 4: both are our choice.

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
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="d*l*h*(2*t-1)"),
        note="one scalar per offset, as the survey's own text has it, in place of a vector",
    )

    start = 1.0

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(gate=(self.entries(prepared, site),))
