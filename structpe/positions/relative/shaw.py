"""Relative positions as vectors at keys and values (Shaw, Uszkoreit and Vaswani 2018)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.positions import Cells, Dims, Spec
from structpe.positions._pair_tables import KeyValueTables
from structpe.positions._rows import Window
from structpe.positions._tables import Sharing

__all__ = ["Shaw"]


class Shaw(KeyValueTables, name="shaw"):
    """Relative positions as vectors at keys and values (Shaw, Uszkoreit and Vaswani 2018).

    s_ij = q_i.(k_j + K[r_ij]) / sqrt(d_h),  o_i = sum_j w_ij (v_j + V[r_ij]),  r_ij = clip(s - t, -m, m).

    K and V are tables (2m + 1, d_h), one pair per layer; s - t is key minus query, or any other encoding of pairs.
    (Shaw et al. 2018, section 3.2; survey, section 4.1.2.)

    m = 20, tables shared by the heads and entries of the deviation of a Glorot initialisation are those of the authors'
    code. Table 1 counts vectors as wide as the model and an offset for each pair of places, 2(2t-1)dl; vectors in the
    code are as wide as a head, and the clip leaves 2m + 1 of them.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        reach: m, the farthest offset that has its own vectors.
        sharing: ``head-wise`` as in the code.

    Raises:
        PositionError: the reach is below 1, or the encoding does not give one integer per pair.
    """

    spec = Spec(
        "shaw2018",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="2*R*dh*copies"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="2*(2*t-1)*d*l"),
        note="in the code vectors have the width of a head and offsets are clipped",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), reach: int = 20, sharing: Sharing = "head-wise"
    ) -> None:
        super().__init__(dims, encoding, Window(encoding, reach), sharing)
