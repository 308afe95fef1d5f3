"""Sandwich: a fixed bias from products of sinusoids, which falls about as a logarithm (Chi et al. 2023)."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Offset
from structpe.positions import Cells, Dims, Spec
from structpe.positions.decay._fixed import FixedDecay

__all__ = ["Sandwich"]


class Sandwich(FixedDecay, name="sandwich"):
    """Sandwich: a fixed bias from products of sinusoids, which falls about as a logarithm (Chi et al. 2023).

    s_ij += H / (8 h) (sum_i cos(r_ij 10000^(-2i/w)) - w/2),  i = 1..w/2, for the heads h = 1..H.

    The sum is the product of the sinusoids of two places; the bias is 0 at distance 0, falls about as a logarithm, and
    is not learned. (Chi et al. 2023, section 5.) r_ij = s - t, or any other encoding of pairs; code points as in
    ``alibi``, and as there keys ahead are treated as those behind.

    As in the paper w is 128 whatever the width of the model. Written out in NVIDIA's NeMo, with i from 1 as in the
    paper's sum; compared with that formula in float64, as the authors published no code.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        width: w, even.

    Raises:
        PositionError: a batch has a pair without a path, and the encoding has no limit.
    """

    spec = Spec("chi2023", "sequence", Cells("R", "MAM", learnable=False, recurring=True, unbound=True, params="0"))

    def __init__(self, dims: Dims, encoding: Encoding = Offset(), width: int = 128) -> None:
        super().__init__(dims, encoding)
        self.width = width

    def fall(self, far: Tensor) -> Tensor:
        powers = torch.arange(1, self.width // 2 + 1, dtype=torch.float64, device=far.device) * (-2 / self.width)
        product = (far * 10000.0**powers).cos().sum(dim=-1, keepdim=True) - self.width // 2
        heads = torch.arange(1, self.dims.heads + 1, dtype=torch.float64, device=far.device)
        return product * (self.dims.heads / (8 * heads))
