"""Places in the source and in the order of the translation, fused: cross-lingual positions (Ding et al. 2020)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.encodings.reordered import Reordered
from structpe.positions import Cells, Dims, PositionModel, Positions, Spec
from structpe.positions._checks import numbers, of_arity
from structpe.positions.sinusoidal._sinusoids import interleaved

__all__ = ["XLPE"]


class XLPE(PositionModel, name="xl-pe"):
    """Places in the source and in the order of the translation, fused: cross-lingual positions (Ding et al. 2020).

    x_t + tanh(U P_t + V P_t'): t the place in the sentence, t' that after reordering, P sinusoidal, U and V (d, d).

    The reordered place is that of the words of the source in the order of the target language, found by a grammar
    beforehand; it comes with the structure. (Ding et al. 2020; survey, section 4.5, which does not say how both
    encodings are integrated. The fusion is as we read the paper; no code is known.) Not included: its other way, in
    which some heads use the one and some the other.

    Args:
        dims: sizes of the Transformer.
        encoding: t, one number per unit.
        reordered: t', one number per unit.

    Raises:
        PositionError: an encoding gives a vector per unit.
    """

    spec = Spec(
        "ding2020", "sequence", Cells("A", "APE", learnable=True, recurring=False, unbound=True, params="2*d*d")
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), reordered: Encoding = Reordered()) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1), of_arity(self.name, reordered, 1)])
        self.original, self.reordered = (nn.Linear(dims.width, dims.width, bias=False) for _ in range(2))

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        places, reordered = (numbers(self.name, e, prepared.queries(e)) for e in self.encodings)
        p, q = (interleaved(each, self.dims.width).to(x.dtype) for each in (places, reordered))
        return x + torch.tanh(self.original(p) + self.reordered(q))
