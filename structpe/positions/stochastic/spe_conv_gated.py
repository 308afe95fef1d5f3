"""Stochastic position encoding by filters, and a gate that lets content through (Liutkus et al. 2021)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, Site, Spec
from structpe.positions.stochastic._filtered import Filtered, FilteredModel
from structpe.positions.stochastic._noise import orthogonal
from structpe.terms import Terms

__all__ = ["SPEConvGated"]


class SPEConvGated(FilteredModel, name="spe-conv-gated"):
    """Stochastic position encoding by filters, and a gate that lets content through (Liutkus et al. 2021).

    ``spe-conv`` with codes sqrt(1 - g_d) Q_td + sqrt(g_d) e_d / (R d_h)^(1/4), likewise for keys, with the same e.

    g = sigmoid(G), G (h, d_h) of each layer, started from N(0, 1); e (h, d_h, R) is normal. On average a channel then
    contributes q_d k_d [(1 - g_d) P_d(t - s) + g_d] sqrt(R / d_h), P as of ``spe-conv``: with g_d = 1 it does not
    depend on positions. (Liutkus et al. 2021, sections 3.2 and 3.3; the authors' code for PyTorch, SPEFilter over
    ConvSPE. Their code for JAX exchanges g and 1 - g.)

    In training e is drawn for each layer, z for the batch. In evaluation both are fixed. Memory grows with n h d_h R.
    It widens queries and keys: do not add it to another model that maps them.

    Args:
        dims: sizes of the Transformer.
        encoding: whole numbers 0, 1, ... per unit.
        realisations: R.
        width: K, of a filter.

    Raises:
        PositionError: the encoding gives a vector per unit, or no whole numbers.
    """

    spec = Spec(
        "liutkus2021",
        "sequence",
        Cells("B", "MAM", learnable=True, recurring=True, unbound=True, params="2*K*d + l*d"),
        note="relative on average over draws; one draw, which is what is measured, has other noise at each place",
        not_compiled="how much noise it draws depends on the batch",
        not_exported="how much noise it draws depends on the batch",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), realisations: int = 256, width: int = 200) -> None:
        super().__init__(dims, encoding, realisations, width)
        self.gates = nn.Parameter(torch.randn(dims.layers, dims.heads, dims.head))
        self.fixed_dry = orthogonal(dims.heads, dims.head, realisations)

    def terms(self, prepared: Filtered, site: Site) -> Terms:
        dry = self.fixed_dry.to(self.gates)
        return Terms(maps=(self.gated(prepared, site.layer, torch.randn_like(dry) if self.training else dry).map,))

    def gated(self, codes: Filtered, layer: int, dry: Tensor) -> Filtered:
        """The codes as a layer has them, with a given noise (h, d_h, R) that is the same at all places."""
        return codes.gated(torch.sigmoid(self.gates[layer]), dry)
