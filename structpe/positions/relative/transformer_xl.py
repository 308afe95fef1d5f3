"""Sinusoids of offsets, multiplied with queries through a matrix and with a bias (Dai et al. 2019, Transformer-XL)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from structpe.dropout import Dropout
from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import of_all_pairs, offsets
from structpe.positions.blocks._attention import of_layers
from structpe.positions.relative._offset_sinusoids import everywhere, sinusoids
from structpe.positions.sinusoidal._sinusoids import halves
from structpe.terms import Lookup, Terms

__all__ = ["TransformerXL"]


class TransformerXL(PositionModel, name="transformer-xl"):
    """Sinusoids of offsets, multiplied with queries through a matrix and with a bias (Dai et al. 2019, Transformer-XL).

    s_ij = ((q_i + u).k_j + (q_i + v).(W R[t - s])) / sqrt(d_h):  content, position, and a bias for each.

    R[r] (d) = cat[sin(r w_c), cos(r w_c)], w_c = 10000^(-2c/d), for c < d/2; t - s is query minus key, or the negative
    of any other encoding of pairs. W (d, d) without bias is of each layer and gives each head its d_h; u and v (h, d_h)
    are of each head, and the same for all layers. (Dai et al. 2019, section 3.3; survey, eq. 12.)

    Sharing u and v over the layers follows the authors' PyTorch code; the paper leaves it open. Table 1 has a factor h
    too many: one W (d, d) serves all heads. Attention there is causal, and the matrix has arbitrary values for keys
    ahead; here these have the R of their negative offset, so that the model can also be used without a causal mask. To
    attend to an earlier segment, choose which units are queries: ``Positions.step(c, c + n)`` and
    :class:`structpe.nn.language_model.LanguageModel`. Pairs without a path have R = 0.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        reach: offsets beyond this, either way, count as this far (the code's ``clamp_len``); None for all of them.
        dropout: of R.

    Raises:
        PositionError: a reach below 1, or an encoding without one integer per pair.
    """

    spec = Spec(
        "dai2019",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="2*d + d*d*l"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="2*d + d*d*l*h"),
        note="one matrix serves all heads of a layer, so that the factor h is one too many",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), reach: int | None = None, dropout: float = 0.0
    ) -> None:
        super().__init__(dims, [of_all_pairs(self.name, encoding)])
        self.reach, self.dropout = reach, Dropout(dropout)
        self.content = nn.Parameter(torch.randn(dims.heads, dims.head) * 0.02)
        self.position = nn.Parameter(torch.randn(dims.heads, dims.head) * 0.02)
        self.project = of_layers(dims, dims.width, bias=False, std=0.02)

    def prepare(self, positions: Positions) -> Lookup:
        """R (r, d) of each distinct value, once for all layers."""
        of_pairs = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        made = sinusoids(of_pairs, self._waves, self.dims.width, self.content.dtype)
        return made.map(self.dropout)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        key = self.project[site.layer](prepared.table).unflatten(-1, (self.dims.heads, self.dims.head))
        bias = (key * self.position).sum(-1) / math.sqrt(self.dims.head)
        return Terms(
            key=(prepared.map(lambda _: key),),
            query=(everywhere(self.content[None], prepared),),
            bias=(prepared.map(lambda _: bias),),
        )

    def _waves(self, after: Tensor, width: int) -> Tensor:
        back = -after
        return halves(back if self.reach is None else back.clamp(-self.reach, self.reach), width)
