"""Weisfeiler-Lehman roles at the input (Dwivedi and Bresson 2020)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.weisfeiler_lehman import WeisfeilerLehman
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions.graphs._roles import check_rows

__all__ = ["DwivediWL"]


class DwivediWL(PositionModel, name="dwivedi-wl"):
    """Weisfeiler-Lehman roles at the input (Dwivedi and Bresson 2020).

    x_u + E[role(u)]: role(u) the number of the unit's Weisfeiler-Lehman colour, E a learned table (n, d).

    (Dwivedi and Bresson 2020, section 4, their comparison with Graph-BERT's absolute positions.) Their code numbers the
    colours of each graph separately, so that a number means different colours in different graphs; here numbers are
    those of the data set that the encoding was fitted to, and colours that it has not seen share row 0. Of the rounds
    of their code one is kept, after which a colour is equivalent to the degree: choose more with ``iterations``.

    Args:
        dims: sizes of the Transformer.
        encoding: roles; the 99 most frequent colours by default, as there are 100 rows.
        rows: n.

    Raises:
        PositionError: the encoding has more values than there are rows.
    """

    spec = Spec("dwivedi2020", "graph", Cells("A", "APE", learnable=True, recurring=False, unbound=False, params="n*d"))

    def __init__(self, dims: Dims, encoding: WeisfeilerLehman = WeisfeilerLehman(most=99), rows: int = 100) -> None:
        check_rows(self.name, encoding, rows)
        super().__init__(dims, [encoding], n=rows)
        self.table = nn.Parameter(torch.randn(rows, dims.width))

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        return x + self.table[prepared.queries(self.encodings[0])]
