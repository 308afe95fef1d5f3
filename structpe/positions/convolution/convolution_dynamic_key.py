"""A lightweight convolution whose kernel depends on the key (Chang et al. 2021)."""

from __future__ import annotations

from torch import nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import of_arity, offsets
from structpe.positions._rows import Window
from structpe.positions._tables import Sharing, Table
from structpe.positions.relative._spans import backwards
from structpe.terms import Lookup, Terms

__all__ = ["ConvolutionDynamicKey"]


class ConvolutionDynamicKey(PositionModel, name="convolution-dynamic-key"):
    """s_ij = (q_i + W[clip(t - s, -m, m)]).k_j / sqrt(d_h).

    A lightweight convolution whose kernel depends on the key ("convk" of the code): the vectors of Shaw et al. (2018),
    at queries alone. Its offset is that of the query as the key sees it. W (2m + 1, d_h) is of each layer and shared by
    its heads. Entries start from a uniform distribution of width 1/sqrt(2m + 1) either way, as in the code. s - t is
    key minus query, or any other encoding of pairs by signed integers; pairs without a path and units of one node have
    rows of their own, where the encoding has such pairs.

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

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), reach: int = 8, sharing: Sharing = "head-wise"
    ) -> None:
        window = Window(of_arity(self.name, encoding, 2), reach)
        super().__init__(dims, [encoding], R=window.size, copies=Table.copies(sharing, dims))
        self.window, self.table = window, Table(dims, window.size, sharing, width=dims.head)
        nn.init.uniform_(self.table.weight, -((2 * reach + 1) ** -0.5), (2 * reach + 1) ** -0.5)

    def prepare(self, positions: Positions) -> Lookup:
        """The row of each distinct value."""
        of_pairs = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        return of_pairs.map(lambda values: self.window.of(backwards(values)))

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(query=(prepared.map(self.table.at(site.layer).__getitem__),))
