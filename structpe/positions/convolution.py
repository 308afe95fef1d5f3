"""Lightweight convolutions together with attention (Chang et al. 2021).

An offset is s - t, key minus query, or any other encoding of pairs; beyond m it is clipped to -m..m. Pairs without a
path and units of one node have rows of their own.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding
from structpe.encodings.order import Offset
from structpe.positions import Dims, Positions, Site, Spec
from structpe.positions.tables import BOUND, PairRows, PairTable, Sharing, Table, clipped_rows, is_plain
from structpe.terms import Lookup, Terms

__all__ = ["Composite", "ConvolutionDynamic", "ConvolutionDynamicKey", "Filters", "LightweightConvolution", "backwards"]


def backwards(values: Tensor) -> Tensor:
    """The values of the pairs with query and key exchanged, on a path: -r for r, and k places after for k before."""
    turned = torch.where(is_plain(values), -values, 2 * WITHIN - values)
    return torch.where(values == UNREACHABLE, values, turned)


def _start(table: Table, max_distance: int) -> None:
    """Draw the entries from U(-w, w), w = 1/sqrt(2m + 1), as the authors' code does."""
    width = (2 * max_distance + 1) ** -0.5
    nn.init.uniform_(table.weight, -width, width)


class LightweightConvolution(PairTable, name="convolution"):
    """A fixed lightweight convolution added to attention (Chang et al. 2021).

    s_ij = q_i.k_j / sqrt(d_h) + b[clip(s - t, -m, m)],  b (2m + 1) of each head and layer, outside the scale.

    The weights of a lightweight convolution, one kernel per head that does not depend on the units ("convfixed" of the
    code), before the softmax that it shares with q.k. Beyond the ends of the kernel the code repeats its last weights:
    distant units are not cut off. b starts at 0. Without q.k, as a convolution alone, it is not a position model of
    attention, and not included.

    Args:
        max_distance: m; the kernel is 2m + 1 wide, 17 in the paper's models.
        sharing: ``none``: each head of each layer has its kernel.
    """

    spec = Spec("chang2021", "sequence", BOUND("R*copies"))

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), max_distance: int = 8, sharing: Sharing = "none"
    ) -> None:
        super().__init__(dims, encoding, clipped_rows(encoding, max_distance), sharing, std=0.0)


class Filters(PairTable):
    """A learned vector W[clip(r_ij, -m, m)] (d_h) for each pair, from U(-w, w) at first, w = 1/sqrt(2m + 1).

    Args:
        max_distance: m; the kernel is 2m + 1 wide, 17 in the paper's models.
        sharing: ``head-wise``, as in the code.
    """

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), max_distance: int = 8, sharing: Sharing = "head-wise"
    ) -> None:
        super().__init__(dims, encoding, clipped_rows(encoding, max_distance), sharing, width=dims.head)
        _start(self.table, max_distance)


class ConvolutionDynamic(Filters, name="convolution-dynamic"):
    """A lightweight convolution whose kernel depends on the query (Chang et al. 2021).

    s_ij = q_i.(k_j + W[clip(s - t, -m, m)]) / sqrt(d_h).

    ("convq" of the code.) These are the vectors of Shaw et al. (2018), at keys only. W (2m + 1, d_h) is of each layer
    and shared by its heads. Entries start from a uniform distribution of width 1/sqrt(2m + 1) either way, as in the
    code.
    """

    spec = Spec("chang2021", "sequence", BOUND("R*dh*copies"))

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(key=(self.entries(prepared, site),))


class ConvolutionDynamicKey(Filters, name="convolution-dynamic-key"):
    """A lightweight convolution whose kernel depends on the key (Chang et al. 2021).

    s_ij = (q_i + W[clip(t - s, -m, m)]).k_j / sqrt(d_h).

    ("convk" of the code.) These are the vectors of Shaw et al. (2018), at queries only; the offset is that of the query
    relative to the key. W is as in ``convolution-dynamic``.
    """

    spec = Spec("chang2021", "sequence", BOUND("R*dh*copies"))

    def of_pairs(self, positions: Positions) -> Lookup:
        """The offset of each pair with query and key exchanged."""
        return super().of_pairs(positions).map(backwards)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(query=(self.entries(prepared, site),))


class Composite(PairRows, name="composite"):
    """Attention with a lightweight convolution, fixed and dynamic: composite attention (Chang et al. 2021).

    s_ij = (q_i.k_j + q_i.W_q[clip(s - t)] + k_j.W_k[clip(t - s)]) / sqrt(d_h) + b[clip(s - t)],  clip to -m..m.

    The sum of ``convolution`` (b (2m + 1, h), of each layer, zero at first), ``convolution-dynamic`` (W_q) and
    ``convolution-dynamic-key`` (W_k): T5's bias and the vectors of Shaw et al., read as convolutions. (Chang et al.
    2021, and their code, "qk_convfixed_convq_convk"; the survey, section 4.1.2, has no formula.) Subsets of its terms
    are sums of the three models.

    Args:
        max_distance: m; the kernels are 2m + 1 wide, 17 in the paper's models.
    """

    spec = Spec("chang2021", "sequence", BOUND("l*R*(h + 2*dh)"))

    def __init__(self, dims: Dims, encoding: Encoding = Offset(), max_distance: int = 8) -> None:
        super().__init__(dims, encoding, clipped_rows(encoding, max_distance), "head-wise")
        self.bias = Table(dims, self.rows.size, "none", std=0.0)
        self.keys = Table(dims, self.rows.size, "head-wise", width=dims.head)
        self.queries = Table(dims, self.rows.size, "head-wise", width=dims.head)
        for table in (self.keys, self.queries):
            _start(table, max_distance)

    def prepare(self, positions: Positions) -> tuple[Lookup, Lookup]:
        """The row of each distinct value, for (query, key) and for (key, query)."""
        of_pairs = self.of_pairs(positions)
        return of_pairs.map(self.rows.of), of_pairs.map(backwards).map(self.rows.of)

    def terms(self, prepared: tuple[Lookup, Lookup], site: Site) -> Terms:
        after, before = prepared
        return Terms(
            bias=(self.bias.entries(after, site),),
            key=(self.keys.entries(after, site),),
            query=(self.queries.entries(before, site),),
        )
