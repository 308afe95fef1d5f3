"""Relative positions as vectors at keys only (Shaw et al. 2018; the form that later models kept)."""

from __future__ import annotations

import math

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.positions import Cells, Dims, Site, Spec
from structpe.positions._pair_tables import PairRows
from structpe.positions._rows import Window
from structpe.positions._tables import Sharing, Table
from structpe.terms import Lookup, Terms

__all__ = ["ShawKeys"]


class ShawKeys(PairRows, name="shaw-keys"):
    """Relative positions as vectors at keys only (Shaw et al. 2018; the form that later models kept).

    s_ij = q_i.(k_j + K[r_ij]) / sqrt(d_h),  r_ij = clip(s - t, -m, m).

    K is a table (2m + 1, d_h) per layer. Shaw et al. (2018, section 4.3) find that vectors at the values can be left
    out; without them fused attention kernels can be used. With m = t_max - 1 nothing is clipped: "relative_key" of
    BERT's reimplementations, whose table counts query minus key, so that its rows have the reverse order.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        reach: m, the farthest offset that has its own vector.
        sharing: ``head-wise`` as in the authors' code.

    Raises:
        PositionError: the reach is below 1, or the encoding does not give one integer per pair.
    """

    spec = Spec(
        "shaw2018",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*dh*copies"),
        note="Table 1 has only the variant with vectors at the values too: 'shaw'",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), reach: int = 20, sharing: Sharing = "head-wise"
    ) -> None:
        window = Window(encoding, reach)
        super().__init__(dims, encoding, window, sharing)
        self.keys = Table(dims, window.size, sharing, width=dims.head, std=math.sqrt(2 / (window.size + dims.head)))

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(key=(prepared.map(self.keys.at(site.layer).__getitem__),))
