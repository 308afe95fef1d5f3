"""Shortest-path distances as scalar biases, as the survey defines them (eq. 31; after Schmitt et al. 2021)."""

from __future__ import annotations

from torch import nn

from structpe.encodings.base import Encoding
from structpe.encodings.distance import Distance
from structpe.positions import Cells, Dims, Spec
from structpe.positions._pair_tables import PairTable
from structpe.positions._rows import Window
from structpe.positions._tables import Sharing

__all__ = ["GraformerSurvey"]


class GraformerSurvey(PairTable, name="graformer-survey"):
    """Shortest-path distances as scalar biases, as the survey defines them (eq. 31; after Schmitt et al. 2021).

    s_ij += b[r_ij]: one scalar per head and signed shortest-path distance from query to key, clipped to +-D_max.

    A distance beyond D_max counts as D_max of its own sign; pairs without a path have a row, and so have units of one
    node by their offset (survey, eq. 31). Without the rows for units of one node these are the 2(D_max + 1)h numbers of
    Table 1. The authors' code goes from key to query and merges the signs beyond D_max + 1: ``graformer``.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        reach: D_max.
        within: units of one node this far apart have a row each, on both sides.
        sharing: ``none``, each layer has its table.

    Raises:
        PositionError: the reach is below 1, or the encoding does not give one integer per pair.
    """

    spec = Spec(
        "schmitt2021",
        "graph",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="2*(D_max+1)*h"),
        note="Table 1 leaves out the rows for units of one node and counts one table for all layers",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Distance(), reach: int = 4, within: int = 10, sharing: Sharing = "none"
    ) -> None:
        super().__init__(dims, encoding, Window(encoding, reach, within), sharing)
        nn.init.uniform_(self.table.weight, -1, 1)
