"""Sinusoids of both coordinates of a pixel in queries and keys of every layer (Carion et al. 2020, DETR)."""

from __future__ import annotations

import math

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.coordinates import GridRank
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Sources, Spec
from structpe.positions._checks import of_arity
from structpe.positions.grids._shapes import counts, half, in_queries_and_keys
from structpe.positions.sinusoidal._sinusoids import interleaved

__all__ = ["DETR"]


class DETR(PositionModel, name="detr"):
    """Sinusoids of both coordinates of a pixel in queries and keys of every layer (Carion et al. 2020, DETR).

    q = W_q (n + P), k = W_k (n + P), v = W_v n in every layer;  P_yx = cat[waves(y'), waves(x')], y first.

    waves(t)_j = sin(t 10000^(-2j/d)) for even j < d/2, cos(t 10000^(-2(j-1)/d)) for odd j. y' counts valid pixels of
    the column, down to the pixel and from 1, x' those of the row; normalised, y' = 2 pi count / (count of the whole
    column + 1e-6). n are the hidden vectors, normalised where the Transformer does that first. (Carion et al. 2020,
    appendix A.4, and their code, class PositionEmbeddingSine.) Pixels that pad an image are not valid: the feature
    ``valid`` marks them. A unit without a place in the grid has 0. Computed in float64, then rounded to the dtype of x.

    Args:
        dims: sizes of the Transformer; the width must be even.
        encoding: per unit and axis (count, count of the line).
        normalised: whether counts are divided by those of their lines; the authors' model does.

    Raises:
        PositionError: an odd width, or an encoding that does not give such counts.
    """

    spec = Spec("carion2020", "grid", Cells("A", "APE", learnable=False, recurring=True, unbound=True, params="0"))

    def __init__(self, dims: Dims, encoding: Encoding = GridRank(), normalised: bool = True) -> None:
        half(self.name, dims.width)
        super().__init__(dims, [of_arity(self.name, encoding, 1)])
        self.normalised = normalised

    def prepare(self, positions: Positions) -> Tensor:
        """(b, m, d) P of all units, once for all layers."""
        ranks = counts(self.name, self.encodings[0], positions[self.encodings[0]], 2)
        places, whole = ranks.double().unbind(-1)
        if self.normalised:
            places = places / (whole + 1e-6) * 2 * math.pi
        return interleaved(places, self.dims.width // 2).flatten(-2)

    def sources(self, sources: Sources, prepared: Tensor, site: Site) -> Sources:
        return in_queries_and_keys(self.name, sources, prepared)
