"""Stochastic position encoding by sines, and a gate that lets content through (Liutkus et al. 2021, gated sineSPE)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, Positions, Site, Spec
from structpe.positions.stochastic._noise import orthogonal
from structpe.positions.stochastic._spe import SineModel, Waves
from structpe.terms import Terms

__all__ = ["SPEGated"]


class SPEGated(SineModel, name="spe-gated"):
    """Stochastic position encoding by sines, and a gate that lets content through (Liutkus et al. 2021, gated sineSPE).

    ``spe-sine`` with codes sqrt(1 - g_d) Q_td + sqrt(g_d) e_d / (R d_h)^(1/4), likewise for keys, with the same e.

    g = sigmoid(G), G (h, d_h) of each layer; e (h, d_h, R) is normal. On average a channel then contributes q_d k_d [(1
    - g_d) P_d(t - s) / (2K) + g_d] sqrt(R / d_h): with g_d = 1 it does not depend on positions. (Liutkus et al. 2021,
    section 3.3; survey, section 4.1.2; the authors' code for PyTorch. Their code for JAX exchanges g and 1 - g.)

    In training e is drawn for each layer, z for the batch. In evaluation both are fixed, and their rows are orthogonal
    together: with (2K + 1) d_h realisations or more the average is exact.

    Table 1 counts 3Kdh + ld; sines are of the channels of a head, so that the code has 3Kd of them for any h. It calls
    the model bound; its sines are defined for all places.

    Args:
        dims: sizes of the Transformer.
        encoding: one number per unit.
        realisations: R.
        sines: K.

    Raises:
        PositionError: the encoding gives a vector per unit.
    """

    spec = Spec(
        "liutkus2021",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="3*K*d + l*d"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="3*K*d*h + l*d"),
        note="the code's sines are of the channels of a head, and have no last place",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), realisations: int = 256, sines: int = 1) -> None:
        super().__init__(dims, encoding, sines)
        self.gates = nn.Parameter(torch.randn(dims.layers, dims.heads, dims.head))
        rows = 2 * sines + 1
        self.fixed = orthogonal(dims.heads, dims.head * rows, realisations).view(dims.heads, dims.head, rows, -1)

    def prepare(self, positions: Positions) -> Waves:
        """The waves of queries and keys, and the noise that all layers share."""
        return self.waves(positions, self.drawn(self.fixed[:, :, :-1]))

    def terms(self, prepared: Waves, site: Site) -> Terms:
        return Terms(maps=(self.gated(prepared, site.layer, self.drawn(self.fixed[:, :, -1])).map,))

    def gated(self, waves: Waves, layer: int, dry: Tensor) -> Waves:
        """The waves as a layer has them, with a given noise (h, d_h, R) that is the same at all places."""
        return waves.gated(torch.sigmoid(self.gates[layer]), dry)
