"""Lightweight convolutions together with attention (Chang et al. 2021)."""

from __future__ import annotations

from torch import nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.positions import Cells, Dims, Positions, Site, Spec
from structpe.positions.offsets import backwards
from structpe.positions.tables import PairRows, PairTable, Sharing, Table, Window
from structpe.terms import Lookup, Terms

__all__ = [
    "Composite",
    "Convolution",
    "ConvolutionDynamic",
    "ConvolutionDynamicKey",
    "Filters",
    "start_filters",
]


class Filters(PairTable):
    """A learned vector W[clip(r_ij, -m, m)] (d_h) for each pair."""

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), max_distance: int = 8, sharing: Sharing = "head-wise"
    ) -> None:
        super().__init__(dims, encoding, Window(encoding, max_distance), sharing, width=dims.head)
        start_filters(self.table, max_distance)


def start_filters(table: nn.Module, max_distance: int) -> None:
    """Draw the entries from U(-w, w), w = 1/sqrt(2m + 1), as the authors' code does."""
    for weight in table.parameters():
        nn.init.uniform_(weight, -((2 * max_distance + 1) ** -0.5), (2 * max_distance + 1) ** -0.5)


class Convolution(PairTable, name="convolution"):
    """A fixed lightweight convolution added to attention (Chang et al. 2021).

    s_ij = q_i.k_j / sqrt(d_h) + b[clip(s - t, -m, m)],  b (2m + 1) of each head and layer, outside the scale.

    The weights of a lightweight convolution, one kernel per head that does not depend on the units ("convfixed" of the
    code), before the softmax that it shares with q.k. Beyond the ends of the kernel the code repeats its last weights,
    so that distant units are not cut off. b starts at 0. s - t is key minus query, or any other encoding of pairs;
    pairs without a path and units of one node have their own rows. Without q.k, as a convolution alone, it is not a
    position model of attention, and not included.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        max_distance: m; the kernel is 2m + 1 wide, 17 in the paper's models.
        sharing: ``none``: each head of each layer has its kernel.

    Raises:
        PositionError: ``max_distance`` is below 1, or the encoding does not give one integer per pair.
    """

    spec = Spec(
        "chang2021", "sequence", Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies")
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), max_distance: int = 8, sharing: Sharing = "none"
    ) -> None:
        super().__init__(dims, encoding, Window(encoding, max_distance), sharing, std=0.0)


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
        max_distance: m; the kernel is 2m + 1 wide, 17 in the paper's models.
        sharing: ``head-wise``, as in the code.

    Raises:
        PositionError: ``max_distance`` is below 1, or the encoding does not give one integer per pair.
    """

    spec = Spec(
        "chang2021", "sequence", Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*dh*copies")
    )

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(key=(self.entries(prepared, site),))


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
        max_distance: m; the kernel is 2m + 1 wide, 17 in the paper's models.
        sharing: ``head-wise``, as in the code.

    Raises:
        PositionError: ``max_distance`` is below 1, or the encoding does not give one integer per pair.
    """

    spec = Spec(
        "chang2021", "sequence", Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*dh*copies")
    )

    def of_pairs(self, positions: Positions) -> Lookup:
        """The offset of each pair with query and key exchanged."""
        return super().of_pairs(positions).map(backwards)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(query=(self.entries(prepared, site),))


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
        max_distance: m; the kernels are 2m + 1 wide, 17 in the paper's models.

    Raises:
        PositionError: ``max_distance`` is below 1, or the encoding does not give one integer per pair.
    """

    spec = Spec(
        "chang2021",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="l*R*(h + 2*dh)"),
    )

    def __init__(self, dims: Dims, encoding: Encoding = Offset(), max_distance: int = 8) -> None:
        window = Window(encoding, max_distance)
        super().__init__(dims, encoding, window, "head-wise")
        self.bias = Table(dims, window.size, "none", std=0.0)
        self.keys = Table(dims, window.size, "head-wise", width=dims.head)
        self.queries = Table(dims, window.size, "head-wise", width=dims.head)
        for table in (self.keys, self.queries):
            start_filters(table, max_distance)

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
