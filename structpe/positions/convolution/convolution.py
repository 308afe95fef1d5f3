"""A fixed lightweight convolution added to attention (Chang et al. 2021)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.positions import Cells, Dims, Spec
from structpe.positions._pair_tables import PairTable
from structpe.positions._rows import Window
from structpe.positions._tables import Sharing

__all__ = ["Convolution"]


class Convolution(PairTable, name="convolution"):
    """A fixed lightweight convolution added to attention (Chang et al. 2021).

    s_ij = q_i.k_j / sqrt(d_h) + b[clip(s - t, -m, m)],  b (2m + 1) of each head and layer, outside the scale.

    The weights of a lightweight convolution, one kernel per head that does not depend on the units ("convfixed" of the
    code), before the softmax that it shares with q.k. Beyond the ends of the kernel the code repeats its last weights,
    so that distant units are not cut off. b starts at 0. s - t is key minus query, or any other encoding of pairs;
    pairs without a path and units of one node have their own rows. Without q.k, as a convolution alone, it is not a
    position model of attention, and not included.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        reach: m; the kernel is 2m + 1 wide, 17 in the paper's models.
        sharing: ``none``: each head of each layer has its kernel.

    Raises:
        PositionError: the reach is below 1, or the encoding does not give one integer per pair.
    """

    spec = Spec(
        "chang2021", "sequence", Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies")
    )

    def __init__(self, dims: Dims, encoding: Encoding = Offset(), reach: int = 8, sharing: Sharing = "none") -> None:
        super().__init__(dims, encoding, Window(encoding, reach), sharing, std=0.0)
