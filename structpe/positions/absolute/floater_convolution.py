"""Biases of the projections from a differential equation with convolutions: the other field of FLOATER (Liu 2020)."""

from __future__ import annotations

from torch import nn

from structpe.positions import Cells, Spec
from structpe.positions.absolute._flow import ConvolutionField
from structpe.positions.absolute._flow_biases import FloaterModel

__all__ = ["FLOATERConvolution"]


class FLOATERConvolution(FloaterModel, name="floater-convolution"):
    """Biases of the projections from a differential equation with convolutions: the other field of FLOATER (Liu 2020).

    ``floater`` with another vector field: the l vectors p of q, of k and of v are channels of a signal.

    q_t + p_q(t), k_t + p_k(t), v_t + p_v(t) in every layer, p (3, l, d) by dp/dt = h(t, p) from a learned p(0), and
    h(t, p) = C_2 * [selu(C_1 * [p; t]); t]: C_1 (2l, l + 1, 5) halves the length d of the signal, C_2 (2l + 1, l, 5)
    doubles it again; the time t is one more channel; both have biases. (Liu et al. 2020: in the authors' code, which
    does not use it by default.) All else is as in ``floater``.

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
        not_compiled="how far its path through the places is followed depends on the batch",
        not_exported="how far its path through the places is followed depends on the batch",
    )

    def new_field(self) -> nn.Module:
        return ConvolutionField(self.dims.layers, self.dims.width)
