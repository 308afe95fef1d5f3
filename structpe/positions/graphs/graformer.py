"""Shortest-path distances as scalar biases, as Graformer's code has them (Schmitt et al. 2021)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding
from structpe.encodings.distance import Distance
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import check_offsets, of_all_pairs, offsets
from structpe.positions._rows import is_plain
from structpe.positions._tables import Sharing, Table
from structpe.terms import Lookup, Terms

__all__ = ["Graformer"]


class Graformer(PositionModel, name="graformer"):
    """Shortest-path distances as scalar biases, as Graformer's code has them (Schmitt et al. 2021).

    s_ij += b[row(r_ji)]: one scalar per head and distance, of the pair (key, query).

    r_ji is the signed length of the shortest path from the key j to the query i (:class:`Distance` with query and key
    exchanged). With D = reach and W = within::

        row(r) = 0                                             r = 0
                 1                                             no path
                 min(2r, 2D + 3)                               r > 0
                 min(-2r + 1, 2D + 3)                          r < 0
                 2D + 3 + min(2k - 1, 2W)                      j and i in one node, i the k-th unit after j
                 2D + 3 + min(2k, 2W)                          likewise, the k-th before

    Everything farther, in either direction, has the last row of its kind, without its sign; 2D + 4 rows for paths reach
    to distance D + 1. Rows start from U(-1, 1). (Schmitt et al. 2021, and their code.) The survey's eq. 31 takes r_ij
    and keeps both signs: ``graformer-survey``. The authors' rows for titles are not included; give a title its own
    edges.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        reach: D_max.
        within: W, the same for units of one node.
        sharing: ``none``, each layer has its table; ``layer-wise`` is the code's shared one.

    Raises:
        PositionError: a reach below 1, an encoding without one integer per pair, or a step of decoding.
    """

    spec = Spec(
        "schmitt2021",
        "graph",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="2*(D_max+1)*h"),
        note="the code has two more rows of distances, rows for units of one node, and a table per layer",
    )

    def __init__(
        self, dims: Dims, encoding: Encoding = Distance(), reach: int = 4, within: int = 10, sharing: Sharing = "none"
    ) -> None:
        check_offsets(encoding)
        rows = 2 * reach + 4 + 2 * within
        super().__init__(dims, [of_all_pairs(self.name, encoding)], R=rows, copies=Table.copies(sharing, dims))
        self.reach, self.within = reach, within
        self.table = Table(dims, rows, sharing)
        nn.init.uniform_(self.table.weight, -1, 1)

    @property
    def causal(self) -> bool:
        """No: a decoding step has the pairs (query, key), and this model needs the pairs (key, query)."""
        return False

    def prepare(self, positions: Positions) -> Lookup:
        """The row of each distinct value, query and key exchanged, which a decoding step cannot do."""
        of_pairs = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        return of_pairs.transpose().map(self._row)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(bias=(prepared.map(self.table.at(site.layer).__getitem__),))

    def _row(self, values: Tensor) -> Tensor:
        last = 2 * self.reach + 3
        rows = _folded(values, 1).clamp(max=last)
        rows = torch.where(values == UNREACHABLE, 1, rows)
        inner = last + (_folded(values - WITHIN, 0) - (values > WITHIN).long()).clamp(max=2 * self.within)
        return torch.where(is_plain(values) | (values == UNREACHABLE), rows, inner)


def _folded(values: Tensor, odd: int) -> Tensor:
    """2|r|, and ``odd`` more for negative r: both signs in one sequence of rows."""
    return 2 * values.abs() + odd * (values < 0)
