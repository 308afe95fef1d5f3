"""A convolution over the labels of a path at keys and values (Zhu et al. 2019, CNN-based)."""

from __future__ import annotations

from structpe.encodings.label_path import LabelPath
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.paths._path_attention import PathAttention, Slots, glorot, slots_of
from structpe.positions.paths._path_slots import Convolutions, OrderedSlots
from structpe.terms import Lookup, Terms

__all__ = ["ZhuCnn"]


class ZhuCnn(PositionModel, name="zhu-cnn"):
    """A convolution over the labels of a path at keys and values (Zhu et al. 2019, CNN-based).

    s_ij = q_i.(k_j + W_k n(r_ij) + b_k) / sqrt(d_h),  o_i = sum_j a_ij (v_j + W_v n(r_ij) + b_v).

    The vector of the path is::

        x_c  = sqrt(d_h) E[label c of path ij] + P_c        c = 1..4, "blank" after the end of the path
        r_ij = relu(sum_c F_c x_c + f)

    E (V, d_h) is shared by all layers, its row for "blank" is not learned; P is the interleaved sinusoid of the slot;
    the filter F (d_h, d_h, 4) with f, n, a LayerNorm, W and b are of each layer and shared by its heads. The filter
    runs once per distinct path. (Zhu et al. 2019, section 3.2, "CNN-based"; survey, eq. 28.)

    As in the authors' code: paths are cut to as many labels as the filter is wide, so that there is nothing to pool
    over, and vectors are as wide as a head (64 there, fixed). The authors attach a node EOS to the root by an edge
    ``:EOS``; add it to the structure for the same result.

    Args:
        dims: sizes of the Transformer.
        encoding: paths of labels, cut to the width of the filter, which is 4 in the code.
        dropout: of x and of r, once per distinct path; in the code once per pair.

    Raises:
        PositionError: the encoding has no limit, or several paths per pair.
    """

    spec = Spec(
        "zhu2019",
        "graph",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="V*dh + l*dh*(2*(dh + 2) + c*dh + 1)"),
        note="Table 1 counts the self-attention variant; paths are cut, so that far pairs look alike",
    )

    def __init__(self, dims: Dims, encoding: LabelPath = LabelPath(limit=4), dropout: float = 0.0) -> None:
        slots = slots_of(self.name, encoding)
        super().__init__(dims, [encoding], V=encoding.size + 1, c=slots)
        self.labels = OrderedSlots(Slots(encoding.size, slots, dims.head), dropout)
        self.convolutions = Convolutions(dims, slots, dropout)
        self.attention = PathAttention(dims)
        glorot(self)

    def prepare(self, positions: Positions) -> Lookup:
        """The embedded labels of each distinct path."""
        of_pairs: Lookup = positions[self.encodings[0]]
        return of_pairs.map(self.labels)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        terms: Terms = self.attention(prepared.map(lambda x: self.convolutions(x, site.layer)), site.layer)
        return terms
