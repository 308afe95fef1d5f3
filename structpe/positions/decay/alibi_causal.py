"""Attention with linear biases as in its authors' code: on keys only, and causal (Press, Smith and Lewis 2022)."""

from __future__ import annotations

import torch
from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import numbers, of_arity
from structpe.positions.decay._distances import slopes
from structpe.precision import wide
from structpe.terms import Terms

__all__ = ["ALiBiCausal"]


class ALiBiCausal(PositionModel, name="alibi-causal"):
    """Attention with linear biases as in its authors' code: on keys only, and causal (Press, Smith and Lewis 2022).

    s_ij += m_h s for keys s <= t, and keys s > t do not attend: each head prefers late keys at its own slope.

    m_h as of ``alibi``. The bias does not depend on the query: m_h s and -m_h (t - s) differ by m_h t, which the
    softmax cancels. It is one row per head, not a matrix. (Press et al. 2022, section 3; their code for fairseq, mask
    included.) t and s are the places of units, or any other number per unit, such as its depth in a tree.

    Args:
        dims: sizes of the Transformer.
        encoding: one number per unit.

    Raises:
        PositionError: the encoding gives a vector per unit.
    """

    spec = Spec("press2022", "sequence", Cells("R", "MAM", learnable=False, recurring=True, unbound=True, params="0"))

    like: Tensor

    def __init__(self, dims: Dims, encoding: Encoding = Order()) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)])
        # Follows the model to float64, so that the bias does; the slopes themselves would be rounded there.
        self.register_buffer("like", torch.empty(0), persistent=False)

    def prepare(self, positions: Positions) -> Terms:
        """The terms of every layer."""
        (encoding,) = self.encodings
        keys, queries = numbers(self.name, encoding, positions[encoding]), positions.queries(encoding)
        bias = slopes(self.dims.heads).to(keys.device)[:, None] * keys[:, None]
        behind = keys[:, None] <= queries[..., None]
        return Terms(bias=(bias[:, :, None].to(wide(self.like).dtype),), mask=(behind[:, None],))

    def terms(self, prepared: Terms, site: Site) -> Terms:
        return prepared
