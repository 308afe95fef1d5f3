"""Learned vectors and scalars per distance, with Transformer-XL's bias of the content (Dai et al. 2019)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from structpe.dropout import Dropout
from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import of_all_pairs, offsets
from structpe.positions._rows import Rows
from structpe.positions.relative._offset_sinusoids import everywhere
from structpe.terms import Lookup, Terms

__all__ = ["TransformerXLLearnable"]


class TransformerXLLearnable(PositionModel, name="transformer-xl-learnable"):
    """Learned vectors and scalars per distance, with Transformer-XL's bias of the content (Dai et al. 2019).

    s_ij = ((q_i + u).k_j + q_i.E[t - s] + b[t - s]) / sqrt(d_h),  the distance t - s clipped to 0..D - 1.

    The ablation of Transformer-XL in its authors' code (``attn_type`` 1), there called the embeddings of Shaw et al.: E
    (D, h, d_h) and b (D, h) are learned instead of W R and v.W R, separately for each layer, as is u (h, d_h).
    Distances of D or more share the last row. It was made for causal attention: keys ahead have the row of distance 0.
    In the code rows run from the farthest distance to 0; here from 0 on. Pairs without a path and units of one node
    have their own rows.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        length: D, number of distances.
        dropout: of E; b is not dropped.

    Raises:
        PositionError: a length below 1, or an encoding without one integer per pair.
    """

    spec = Spec(
        "dai2019",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="l*(R*d + d + R*h)"),
        note="Table 1 has only the variant with sinusoids: 'transformer-xl'",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Offset(), length: int = 512, dropout: float = 0.0) -> None:
        rows = Rows(of_all_pairs(self.name, encoding), length)
        super().__init__(dims, [encoding], R=rows.size)
        self.rows, self.length, self.dropout = rows, length, Dropout(dropout)
        shape = (dims.layers, rows.size, dims.heads)
        self.keys = nn.Parameter(torch.randn(*shape, dims.head) * 0.02)
        self.bias = nn.Parameter(torch.randn(shape) * 0.02)
        self.content = nn.Parameter(torch.randn(dims.layers, dims.heads, dims.head) * 0.02)

    def prepare(self, positions: Positions) -> Lookup:
        """The row of each distinct value."""
        of_pairs = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        return of_pairs.map(lambda values: self.rows.of(values, self._row))

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        keys, bias = self.dropout(self.keys[site.layer]), self.bias[site.layer] / math.sqrt(self.dims.head)
        return Terms(
            key=(prepared.map(keys.__getitem__),),
            query=(everywhere(self.content[site.layer][None], prepared),),
            bias=(prepared.map(bias.__getitem__),),
        )

    def _row(self, after: Tensor) -> Tensor:
        return (-after).clamp(0, self.length - 1)
