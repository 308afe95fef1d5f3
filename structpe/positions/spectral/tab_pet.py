"""Eigenvectors of a graph of columns, concatenated with the content of table cells (Leng et al. 2025)."""

from __future__ import annotations

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.tabular import Tabular
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._checks import width_of
from structpe.positions._concatenated import concatenated, position_width

__all__ = ["TabPET"]

_CLIP = 10.0


class TabPET(PositionModel, name="tab-pet"):
    """Eigenvectors of a graph of columns, concatenated with the content of table cells (Leng et al. 2025).

    cat[x_u, alpha clip(z_u, -10, 10)]: z-scores of lowest and highest eigenvectors of a weighted graph of columns.

    The units are the columns of a table; the weights of their graph, such as rank correlations, are the edge feature
    ``edge_weight``. Nothing is learned. (Leng et al. 2025; the code of their FT-Transformer.) The authors widen tokens
    by z; here d is the whole width, and the last channels of the content are overwritten by z. As many channels are
    taken as the encoding has, zero where it found fewer eigenvectors.

    Args:
        dims: sizes of the Transformer.
        encoding: z, a vector per unit; None for ``tabular``, whose eigenvectors fill at most half the width, 10 at
            either end at most.
        alpha: its weight; the authors choose 0.05 to 10 by validation, 0.1 is the code's default.

    Raises:
        PositionError: the encoding gives a single number per unit, or leaves no channels for content.
    """

    spec = Spec("leng2025", "graph", Cells("A", "APE", learnable=False, recurring=False, unbound=True, params="0"))

    def __init__(self, dims: Dims, encoding: Encoding | None = None, alpha: float = 0.1) -> None:
        encoding = encoding or Tabular(most=max(2, min(10, dims.width // 4)))
        position_width(self.name, width_of(self.name, encoding), dims.width)
        super().__init__(dims, [encoding])
        self.alpha = alpha

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        scores: Tensor = prepared.queries(self.encodings[0])
        return concatenated(x, self.alpha * scores.clamp(-_CLIP, _CLIP))
