"""One scalar per offset, head and layer (Chen et al. 2021, DIET-REL)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.positions import Cells, Dims, Spec
from structpe.positions._tables import Sharing
from structpe.positions.relative._spans import SpanTable

__all__ = ["DIETRelative"]


class DIETRelative(SpanTable, name="diet-rel"):
    """One scalar per offset, head and layer (Chen et al. 2021, DIET-REL).

    s_ij += R[i - j], outside the scale: 2 t_max - 1 learned scalars per head and layer, without buckets or clip.

    (Chen et al. 2021, section 3.2, eq. 3; no code by the authors is known.) It is T5's bias with a row per offset and a
    table for each layer. i - j is query minus key, or the negative of any other encoding of pairs. The first version of
    the paper calls the same model ``rel-scalar``. The E_S of eq. 3, the attention among segments, is ``segment-bias``:
    DIET-REL as in eq. 3 is the sum of both.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        length: t_max; offsets are less, either way.
        sharing: ``none``, which the paper recommends for this model.

    Raises:
        PositionError: a length below 1, an encoding without one integer per pair, or a batch with farther offsets.
    """

    spec = Spec(
        "chen2021", "sequence", Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies")
    )

    def __init__(self, dims: Dims, encoding: Encoding = Offset(), length: int = 512, sharing: Sharing = "none") -> None:
        super().__init__(dims, encoding, length, sharing)
