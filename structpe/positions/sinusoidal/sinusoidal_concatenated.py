"""Sinusoidal absolute positions as the authors wrote them: sines, then cosines (Vaswani et al. 2017)."""

from __future__ import annotations

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Dims, Spec
from structpe.positions.sinusoidal._added import CELLS, AddedSinusoids
from structpe.positions.sinusoidal._sinusoids import timing

__all__ = ["SinusoidalConcatenated"]


class SinusoidalConcatenated(AddedSinusoids, name="sinusoidal-concatenated"):
    """Sinusoidal absolute positions as the authors wrote them: sines, then cosines (Vaswani et al. 2017).

    x_t + P_t,  P_t = cat[sin((t + start) omega_i), cos((t + start) omega_i)],  omega_i = 10000^(-i/(d/2 - 1)).

    i runs from 0 to d/2 - 1, rounded down; an odd d has one zero column at the end. (The authors' code, tensor2tensor,
    and fairseq's.) The survey's form is ``sinusoidal``: interleaved, with 10000^(-2i/d); the two are not permutations
    of each other. fairseq counts positions from 2 on: that is ``start=2``. Both scale unit embeddings by sqrt(d)
    before; that belongs to the embeddings. Computed in float64, then rounded to the dtype of x.

    Args:
        dims: sizes of the Transformer.
        encoding: t, one number per unit.
        start: what is added to every t.

    Raises:
        PositionError: the encoding gives a vector per unit.
    """

    spec = Spec("vaswani2017", "sequence", CELLS, note="Table 1 has the interleaved form")

    def __init__(self, dims: Dims, encoding: Encoding = Order(), start: int = 0) -> None:
        super().__init__(dims, encoding)
        self.start = start

    def waves(self, places: Tensor) -> Tensor:
        return timing(places + self.start, self.dims.width)
