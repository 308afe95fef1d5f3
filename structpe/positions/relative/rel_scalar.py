"""One scalar per offset, head and layer (Chen et al. 2021, REL-SCALAR)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._tables import Sharing, Table
from structpe.positions.relative._spans import Span
from structpe.terms import Lookup, Terms

__all__ = ["RelScalar"]


class RelScalar(PositionModel, name="rel-scalar"):
    """s_ij += R[i - j], outside the scale: 2 t_max - 1 learned scalars per head and layer, without buckets or clip.

    (Chen et al. 2021, the first version of their paper, section 3, eq. 8; no code of the authors is known.) The
    published version prints the same equation under another name, ``diet-rel``; the numbers are the same. With buckets
    and ``layer-wise`` sharing it is ``t5``. The S of eq. 11, the attention among segments, is ``segment-bias``.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        length: t_max; offsets are less, either way.
        sharing: ``none``, with which the paper has the best results.

    Raises:
        PositionError: a length below 1, an encoding without one integer per pair, or a batch with farther offsets.
    """

    spec = Spec(
        "chen2021demystifying",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies"),
    )

    def __init__(self, dims: Dims, encoding: Encoding = Offset(), length: int = 512, sharing: Sharing = "none") -> None:
        span = Span(self.name, encoding, length)
        super().__init__(dims, [encoding], R=span.size, copies=Table.copies(sharing, dims))
        self.span, self.table = span, Table(dims, span.size, sharing)

    def prepare(self, positions: Positions) -> Lookup:
        """The row of each distinct value."""
        return self.span.prepare(positions)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(bias=(prepared.map(self.table.at(site.layer).__getitem__),))
