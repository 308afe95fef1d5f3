"""A lightweight convolution whose kernel depends on the key (Chang et al. 2021)."""

from __future__ import annotations

from structpe.positions import Cells, Positions, Site, Spec
from structpe.positions.convolution._filters import Filters
from structpe.positions.relative._spans import backwards
from structpe.terms import Lookup, Terms

__all__ = ["ConvolutionDynamicKey"]


class ConvolutionDynamicKey(Filters, name="convolution-dynamic-key"):
    """A lightweight convolution whose kernel depends on the key (Chang et al. 2021).

    s_ij = (q_i + W[clip(t - s, -m, m)]).k_j / sqrt(d_h).

    A lightweight convolution whose kernel depends on the key ("convk" of the code): the vectors of Shaw et al. (2018),
    at queries only. Its offset is that of the query relative to the key. W (2m + 1, d_h) is of each layer and shared by
    its heads. Entries start from a uniform distribution of width 1/sqrt(2m + 1) either way, as in the code. s - t is
    key minus query, or any other encoding of pairs; pairs without a path and units of one node have their own rows.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        reach: m; the kernel is 2m + 1 wide, 17 in the paper's models.
        sharing: ``head-wise``, as in the code.

    Raises:
        PositionError: the reach is below 1, or the encoding does not give one integer per pair.
    """

    spec = Spec(
        "chang2021", "sequence", Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*dh*copies")
    )

    def of_pairs(self, positions: Positions) -> Lookup:
        """The offset of each pair with query and key exchanged."""
        return super().of_pairs(positions).map(backwards)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(query=(self.entries(prepared, site),))
