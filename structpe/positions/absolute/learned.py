"""Learned absolute positions (Vaswani et al. 2017; Devlin et al. 2019)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._checks import holds, indices, of_whole

__all__ = ["Learned"]


class Learned(PositionModel, name="learned"):
    """Learned absolute positions (Vaswani et al. 2017; Devlin et al. 2019).

    x_t + P_t, P a learned table of t_max vectors (survey, section 4.1.1). It starts from N(0, 0.02) as in BERT.

    A place beyond the table is an error, as in BERT; tensor2tensor adds nothing there. LayerNorm and dropout, which
    follow in BERT, belong to the embeddings.

    Args:
        dims: sizes of the Transformer.
        encoding: integers 0, 1, ... per unit.
        length: t_max, number of positions.

    Raises:
        PositionError: a batch has a position of ``length`` or more.
    """

    spec = Spec(
        "devlin2019",
        "sequence",
        Cells("A", "APE", learnable=True, recurring=False, unbound=False, params="t*d"),
        table1=Cells("A", "APE", learnable=True, recurring=False, unbound=False, params="t*d"),
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), length: int = 512) -> None:
        super().__init__(dims, [of_whole(self.name, encoding)], t=length)
        self.table = nn.Parameter(torch.randn(length, dims.width) * 0.02)

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        places = indices(self.name, self.encodings[0], prepared.queries(self.encodings[0]))
        if holds((places >= len(self.table)).any()):
            raise PositionError(
                f"position model 'learned' has {len(self.table)} positions, this batch needs {int(places.max()) + 1}; "
                f"build it with a larger 'length', or choose an unbound model"
            )
        return x + self.table[places]
