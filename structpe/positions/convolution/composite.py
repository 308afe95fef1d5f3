"""Attention with a lightweight convolution, fixed and dynamic: composite attention (Chang et al. 2021)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.positions import Cells, Dims, Positions, Site, Spec
from structpe.positions._pair_tables import PairRows
from structpe.positions._rows import Window
from structpe.positions._tables import Table
from structpe.positions.convolution._filters import start_filters
from structpe.positions.relative._spans import backwards
from structpe.terms import Lookup, Terms

__all__ = ["Composite"]


class Composite(PairRows, name="composite"):
    """Attention with a lightweight convolution, fixed and dynamic: composite attention (Chang et al. 2021).

    s_ij = (q_i.k_j + q_i.W_q[clip(s - t)] + k_j.W_k[clip(t - s)]) / sqrt(d_h) + b[clip(s - t)],  clip to -m..m.

    The sum of ``convolution`` (b (2m + 1, h), of each layer, zero at first), ``convolution-dynamic`` (W_q) and
    ``convolution-dynamic-key`` (W_k); W_q, W_k (2m + 1, d_h) are of each layer and shared by its heads. T5's bias and
    the vectors of Shaw et al., read as convolutions. (Chang et al. 2021, and their code, "qk_convfixed_convq_convk";
    the survey, section 4.1.2, has no formula.) Entries of W start from a uniform distribution of width 1/sqrt(2m + 1)
    either way. s - t is key minus query, or any other encoding of pairs; pairs without a path and units of one node
    have their own rows. Subsets of its terms are sums of the three models.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        reach: m; the kernels are 2m + 1 wide, 17 in the paper's models.

    Raises:
        PositionError: the reach is below 1, or the encoding does not give one integer per pair.
    """

    spec = Spec(
        "chang2021",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="l*R*(h + 2*dh)"),
    )

    def __init__(self, dims: Dims, encoding: Encoding = Offset(), reach: int = 8) -> None:
        window = Window(encoding, reach)
        super().__init__(dims, encoding, window, "head-wise")
        self.bias = Table(dims, window.size, "none", std=0.0)
        self.keys = Table(dims, window.size, "head-wise", width=dims.head)
        self.queries = Table(dims, window.size, "head-wise", width=dims.head)
        for table in (self.keys, self.queries):
            start_filters(table, reach)

    def prepare(self, positions: Positions) -> tuple[Lookup, Lookup]:
        """The row of each distinct value, for (query, key) and for (key, query)."""
        of_pairs = self.of_pairs(positions)
        return of_pairs.map(self.rows.of), of_pairs.map(backwards).map(self.rows.of)

    def terms(self, prepared: tuple[Lookup, Lookup], site: Site) -> Terms:
        after, before = prepared
        return Terms(
            bias=(after.map(self.bias.at(site.layer).__getitem__),),
            key=(after.map(self.keys.at(site.layer).__getitem__),),
            query=(before.map(self.queries.at(site.layer).__getitem__),),
        )
