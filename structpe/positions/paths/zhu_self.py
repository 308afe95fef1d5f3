"""Self-attention among the labels of a path, then a convolution (Zhu et al. 2019, self-attention-based)."""

from __future__ import annotations

import math

from torch import Tensor, nn

from structpe.dropout import dropout
from structpe.encodings.label_path import LabelPath
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.paths._path_attention import PathAttention, Slots, glorot, slots_of
from structpe.positions.paths._path_slots import Convolutions, OrderedSlots
from structpe.terms import Lookup, Terms

__all__ = ["ZhuSelf"]


class ZhuSelf(PositionModel, name="zhu-self"):
    """Self-attention among the labels of a path, then a convolution (Zhu et al. 2019, self-attention-based).

    s_ij = q_i.(k_j + W_k n(r_ij) + b_k) / sqrt(d_h),  o_i = sum_j a_ij (v_j + W_v n(r_ij) + b_v).

    The vector of the path is::

        x_c  = sqrt(d_h) E[label c of path ij] + P_c        c = 1..4, "blank" after the end of the path
        y    = MultiHead(x, x, x)                           blanks attend and are attended to
        r_ij = relu(sum_c F_c y_c + f)

    E (V, d_h) is shared by all layers, its row for "blank" is not learned; P is the interleaved sinusoid of the slot;
    MultiHead, with four matrices (d_h, d_h) and biases, the filter F (d_h, d_h, 4) with f, n, a LayerNorm, W and b are
    of each layer and shared by its heads. Both run once per distinct path. (Zhu et al. 2019, section 3.2,
    "self-attention-based"; survey, eqs. 28 and 29.)

    As in the authors' code, not as in the paper: the attentive pooling of eq. 29 is not used there, and the filter of
    the CNN variant follows instead. MultiHead has as many heads as the Transformer, here the largest number of them
    that divides d_h; vectors are as wide as a head (64 there, fixed). Unused parameters of the code (the pooling, two
    more matrices in MultiHead) are left out. The authors attach a node EOS to the root by an edge ``:EOS``; add it to
    the structure for the same result.

    Args:
        dims: sizes of the Transformer.
        encoding: paths of labels, cut to the width of the filter, which is 4 in the code.
        dropout: of x, of the weights in MultiHead and of r, once per distinct path; in the code once per pair.

    Raises:
        PositionError: the encoding has no limit, or several paths per pair.
    """

    spec = Spec(
        "zhu2019",
        "graph",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="V*dh + l*dh*(6*dh + 8 + c*dh + 1)"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="5*d*d + (d + 1)*dr"),
        note="the code has a filter for the pooling, vectors as wide as a head, biases, and cuts paths to 4 labels",
    )

    def __init__(self, dims: Dims, encoding: LabelPath = LabelPath(limit=4), dropout: float = 0.0) -> None:
        slots = slots_of(self.name, encoding)
        super().__init__(dims, [encoding], V=encoding.size + 1, c=slots)
        heads = math.gcd(dims.heads, dims.head)
        self.labels = OrderedSlots(Slots(encoding.size, slots, dims.head), dropout)
        self.among = nn.ModuleList(_Attention(dims.head, heads, dropout) for _ in range(dims.layers))
        self.convolutions = Convolutions(dims, slots, dropout)
        self.attention = PathAttention(dims)
        glorot(self)

    def prepare(self, positions: Positions) -> Lookup:
        """The embedded labels of each distinct path."""
        of_pairs: Lookup = positions[self.encodings[0]]
        return of_pairs.map(self.labels)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        attended = prepared.map(self.among[site.layer])
        terms: Terms = self.attention(attended.map(lambda y: self.convolutions(y, site.layer)), site.layer)
        return terms


class _Attention(nn.Module):
    """Multi-head attention of x (R, c, w) to itself, without a mask."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (project(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for project in self._projections())
        # Few labels: two small products are faster than a fused kernel.
        weights = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(-1)
        o = dropout(weights, self.dropout if self.training else 0.0) @ v
        mixed: Tensor = self.out(o.transpose(1, 2).flatten(2))
        return mixed

    def _projections(self) -> tuple[nn.Module, nn.Module, nn.Module]:
        return self.query, self.key, self.value
