"""Biases of the projections from a differential equation: the code of FLOATER (Liu et al. 2020)."""

from __future__ import annotations

from torch import nn

from structpe.positions import Cells, Spec
from structpe.positions.absolute._flow import LinearField
from structpe.positions.absolute._flow_biases import FloaterModel

__all__ = ["FLOATER"]


class FLOATER(FloaterModel, name="floater"):
    """Biases of the projections from a differential equation: the code of FLOATER (Liu et al. 2020).

    q_t + p_q(t), k_t + p_k(t), v_t + p_v(t) in every layer, each p(t) (d) by dp/dt = h(t, p) from a learned p(0).

    h(t, p) = W_2 [relu(W_1 [p; t] + c_1); t] + c_2 with W (d, d + 1) and c (d) is one for q, k, v and all layers; p(0)
    (3, l, d), Glorot-uniform at first, is separate for each. Place t has time 0.01 t, reached by five steps of the
    Runge-Kutta method of order 4 (3/8 rule). (Liu et al. 2020, as in their code; survey, eq. 6.)

    The survey's form, added to the input of layers, is ``floater-input``. By default the authors' code also adds
    sinusoids to the input: ``["sinusoidal-concatenated", "floater"]``; it gives biases to the attention to an encoder
    too, uses at most 255 places and, to save time, the same path for 400 updates. Here the path is computed for every
    batch, up to its farthest place, and kept only if no gradients are needed: training evaluates h 20 times per place.
    Queries and keys are shifted by one of ``Terms.maps``, which does not commute with rotations: do not add it to
    ``rotary``.

    Args:
        dims: sizes of the Transformer.
        encoding: integers 0, 1, ... per unit.

    Raises:
        PositionError: the encoding gives something else.
    """

    spec = Spec(
        "liu2020",
        "sequence",
        Cells("A", "MAM", learnable=True, recurring=True, unbound=True, params="3*l*d + 2*d*(d + 2)"),
        table1=Cells("A", "APE", learnable=True, recurring=True, unbound=True, params="0"),
        note="Table 1, '0 or more', has the paper's form at the input; the code adds to queries, keys and values",
        not_compiled="how far its path through the places is followed depends on the batch",
        not_exported="how far its path through the places is followed depends on the batch",
    )

    def new_field(self) -> nn.Module:
        return LinearField(self.dims.width)
