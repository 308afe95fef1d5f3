"""A lightweight convolution whose kernel depends on the query (Chang et al. 2021)."""

from __future__ import annotations

from structpe.positions import Cells, Site, Spec
from structpe.positions.convolution._filters import Filters
from structpe.terms import Lookup, Terms

__all__ = ["ConvolutionDynamic"]


class ConvolutionDynamic(Filters, name="convolution-dynamic"):
    """A lightweight convolution whose kernel depends on the query (Chang et al. 2021).

    s_ij = q_i.(k_j + W[clip(s - t, -m, m)]) / sqrt(d_h).

    A lightweight convolution whose kernel depends on the query ("convq" of the code): the vectors of Shaw et al.
    (2018), at keys only. W (2m + 1, d_h) is of each layer and shared by its heads. Entries start from a uniform
    distribution of width 1/sqrt(2m + 1) either way, as in the code. s - t is key minus query, or any other encoding of
    pairs; pairs without a path and units of one node have their own rows.

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

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(key=(self.entries(prepared, site),))
