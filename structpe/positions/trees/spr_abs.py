"""Absolute structural position representations: sinusoids of the depth in a tree (Wang X. et al. 2019)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.depth import Depth
from structpe.positions import Dims, Spec
from structpe.positions.sinusoidal._added import CELLS, AddedSinusoids

__all__ = ["SPRAbsolute"]


class SPRAbsolute(AddedSinusoids, name="spr-abs"):
    """Absolute structural position representations: sinusoids of the depth in a tree (Wang X. et al. 2019).

    x_u + P_abs(u), abs(u) the depth of u in its tree, P the sinusoids of ``sinusoidal``.

    (Wang X. et al. 2019; survey, section 4.3.1.) No code by the authors is known. They find that depth only is much
    worse than the order of words only, and that both are best: ``spr``, or the sum of this and ``sinusoidal``.

    Args:
        dims: sizes of the Transformer.
        encoding: integers per unit.

    Raises:
        PositionError: the encoding gives a vector per unit.
    """

    spec = Spec("wang2019", "tree", CELLS, table1=CELLS)

    def __init__(self, dims: Dims, encoding: Encoding = Depth()) -> None:
        super().__init__(dims, encoding)
