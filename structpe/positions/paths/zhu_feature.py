"""A vector per whole path of edge labels at keys and values (Zhu et al. 2019, feature-based)."""

from __future__ import annotations

from torch import nn

from structpe.encodings.label_path import PathToken
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.paths._path_attention import PathAttention, glorot
from structpe.terms import Lookup, Terms

__all__ = ["ZhuFeature"]


class ZhuFeature(PositionModel, name="zhu-feature"):
    """A vector per whole path of edge labels at keys and values (Zhu et al. 2019, feature-based).

    s_ij = q_i.(k_j + W_k n(r_ij) + b_k) / sqrt(d_h),  o_i = sum_j a_ij (v_j + W_v n(r_ij) + b_v).

    The vector of the path is r_ij = E[path ji]. E (V, d_h) has a row for each whole path of the encoding and is shared
    by all layers; n, a LayerNorm, W and b are of each layer and shared by its heads. (Zhu et al. 2019, section 3.2,
    "feature-based"; survey, eq. 28.)

    As in the authors' code, not as in the paper: r_ij is of the path from the key j to the query i, and its width is
    that of a head (64 there, fixed). The survey's formula counts (d, d) matrices. The authors attach a node EOS to the
    root by an edge ``:EOS``; add it to the structure for the same result.

    Args:
        dims: sizes of the Transformer.
        encoding: whole paths.
    """

    spec = Spec(
        "zhu2019",
        "graph",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="V*dh + 2*l*dh*(dh + 2)"),
        note="not in Table 1, which has the authors' best variants; paths that are not in the vocabulary look alike",
    )

    def __init__(self, dims: Dims, encoding: PathToken = PathToken()) -> None:
        super().__init__(dims, [encoding], V=encoding.size)
        self.paths = nn.Embedding(encoding.size, dims.head)
        self.attention = PathAttention(dims)
        glorot(self)

    @property
    def causal(self) -> bool:
        """No: a decoding step has the pairs (query, key), and this model needs the pairs (key, query)."""
        return False

    def prepare(self, positions: Positions) -> Lookup:
        """The vector of each distinct path, at the pairs (key, query)."""
        of_pairs: Lookup = positions[self.encodings[0]]
        return of_pairs.transpose().map(self.paths)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        terms: Terms = self.attention(prepared, site.layer)
        return terms
