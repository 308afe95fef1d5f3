"""Segments as learned vectors added to the units (Devlin et al. 2019)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.feature import Feature
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions.absolute._segments import check, checked

__all__ = ["SegmentInput"]


class SegmentInput(PositionModel, name="segment-input"):
    """Segments as learned vectors added to the units (Devlin et al. 2019).

    x_i + E[S(i)]: E is a learned table (c, d), S(i) the segment of unit i, c the number of segments.

    (Devlin et al. 2019, section 3, "input representation".) It starts from N(0, 0.02), as in BERT. Chen et al. 2021
    compare it with attention among segments, ``segment-bias``. Padding counts as segment 0.

    Args:
        dims: sizes of the Transformer.
        encoding: integers 0, 1, ... per unit; by default the feature "segment" of the nodes, 0 if a node has none.
        segments: c.

    Raises:
        PositionError: a batch has a segment of ``segments`` or more, or segments are no integers.
    """

    spec = Spec(
        "devlin2019", "sequence", Cells("R", "APE", learnable=True, recurring=False, unbound=False, params="c*d")
    )

    def __init__(self, dims: Dims, encoding: Encoding = Feature("segment", missing=0), segments: int = 2) -> None:
        super().__init__(dims, [check(self.name, encoding, segments)], c=segments)
        self.table = nn.Parameter(torch.randn(segments, dims.width) * 0.02)

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        of_units = prepared.queries(self.encodings[0])
        return x + self.table[checked(self.name, self.encodings[0], of_units, len(self.table))]
