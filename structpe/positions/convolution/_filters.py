"""Kernels of convolutions whose weights depend on a unit: vectors of offsets (Chang et al. 2021)."""

from __future__ import annotations

from torch import nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.positions import Dims
from structpe.positions._pair_tables import PairTable
from structpe.positions._rows import Window
from structpe.positions._tables import Sharing

__all__ = ["Filters", "start_filters"]


class Filters(PairTable):
    """A learned vector W[clip(r_ij, -m, m)] (d_h) for each pair."""

    def __init__(
        self, dims: Dims, encoding: Encoding = Offset(), reach: int = 8, sharing: Sharing = "head-wise"
    ) -> None:
        super().__init__(dims, encoding, Window(encoding, reach), sharing, width=dims.head)
        start_filters(self.table, reach)


def start_filters(table: nn.Module, reach: int) -> None:
    """Draw the entries from U(-w, w), w = 1/sqrt(2m + 1), as the authors' code does."""
    for weight in table.parameters():
        nn.init.uniform_(weight, -((2 * reach + 1) ** -0.5), (2 * reach + 1) ** -0.5)
