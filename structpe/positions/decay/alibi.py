"""Attention with linear biases (Press, Smith and Lewis 2022)."""

from __future__ import annotations

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.positions import Cells, Dims, Spec
from structpe.positions.decay._distances import slopes
from structpe.positions.decay._fixed import FixedDecay

__all__ = ["ALiBi"]


class ALiBi(FixedDecay, name="alibi"):
    """Attention with linear biases (Press, Smith and Lewis 2022).

    s_ij -= m_h |r_ij|: each head has its own slope m_h, fixed and not learned.

    m_h = 2^(-8h/H) for heads h = 1..H where H is a power of 2, see :func:`slopes` for other H. (Press et al. 2022,
    section 3.) r_ij = s - t, or any other encoding of pairs. This is the symmetric form, for encoders; the authors'
    code adds m_h s, without the place of the query and for causal attention only: ``alibi-causal``. Where keys ahead
    are masked, both are the same after the softmax.

    Two units of one node that are k places apart count as k. Pairs without a path count as the limit of the encoding.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.

    Raises:
        PositionError: a batch has a pair without a path, and the encoding has no limit.
    """

    spec = Spec("press2022", "sequence", Cells("R", "MAM", learnable=False, recurring=True, unbound=True, params="0"))

    def __init__(self, dims: Dims, encoding: Encoding = Offset()) -> None:
        super().__init__(dims, encoding)

    def fall(self, far: Tensor) -> Tensor:
        return -slopes(self.dims.heads).to(far.device) * far
