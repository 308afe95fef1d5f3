"""One scalar per offset, head and layer (Chen et al. 2021, REL-SCALAR)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.positions import Cells, Dims, Spec
from structpe.positions._tables import Sharing
from structpe.positions.relative._spans import SpanTable

__all__ = ["RelScalar"]


class RelScalar(SpanTable, name="rel-scalar"):
    """One scalar per offset, head and layer (Chen et al. 2021, REL-SCALAR).

    s_ij += R[i - j], outside the scale: 2 t_max - 1 learned scalars per head and layer, without buckets or clip.

    (Chen et al. 2021, the first version of their paper, section 3, eq. 8; no code by the authors is known.) The
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
        super().__init__(dims, encoding, length, sharing)
