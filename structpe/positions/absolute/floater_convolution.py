"""Biases of the projections from a differential equation with convolutions: the other field of FLOATER (Liu 2020)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import numbers, of_arity
from structpe.positions.absolute._flow import ConvolutionField, Trail, places_on
from structpe.positions.absolute._projected import added
from structpe.terms import Terms

__all__ = ["FLOATERConvolution"]


class FLOATERConvolution(PositionModel, name="floater-convolution"):
    """``floater`` with another vector field: the l vectors p of q, of k and of v are channels of a signal.

    q_t + p_q(t), k_t + p_k(t), v_t + p_v(t) in every layer, p (3, l, d) by dp/dt = h(t, p) from a learned p(0), and
    h(t, p) = C_2 * [selu(C_1 * [p; t]); t]: C_1 (2l, l + 1, 5) halves the length d of the signal, C_2 (2l + 1, l, 5)
    doubles it again; the time t is one more channel; both have biases. So layers share what they have in common.
    (Liu et al. 2020: in the authors' code, which does not use it by default.) All else is as in ``floater``.

    Args:
        dims: sizes of the Transformer.
        encoding: integers 0, 1, ... per unit.

    Raises:
        PositionError: the encoding gives something else, or the width is odd.
    """

    spec = Spec(
        "liu2020",
        "sequence",
        Cells("A", "MAM", learnable=True, recurring=True, unbound=True, params="3*l*d + 5*l*(4*l + 3) + 3*l"),
        note="not in Table 1, which has the paper's form at the input",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order()) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)])
        self.start = nn.Parameter(nn.init.xavier_uniform_(torch.empty(3, dims.layers, dims.width)))
        self.field = ConvolutionField(dims.layers, dims.width)
        self.trail = Trail()

    def prepare(self, positions: Positions) -> tuple[Tensor, Tensor, Tensor]:
        """The path (T, 3, l, d), and the places of queries (b, n) and keys (b, m)."""
        keys = numbers(self.name, self.encodings[0], positions[self.encodings[0]])
        path = self.trail.follow(self.field, self.start, places_on(self.name, keys))
        return path, positions.queries(self.encodings[0]), keys

    def terms(self, prepared: tuple[Tensor, Tensor, Tensor], site: Site) -> Terms:
        path, of_queries, of_keys = prepared
        q, k, v = path[:, :, site.layer].unbind(1)
        v = v.to(self.start.dtype)
        return added(self.dims, q[of_queries], k[of_keys], v[of_keys])
