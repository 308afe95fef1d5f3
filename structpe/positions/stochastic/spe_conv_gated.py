"""Stochastic position encoding by filters, and a gate that lets content through (Liutkus et al. 2021)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import of_arity
from structpe.positions.stochastic._filtered import Filtered, filtered, new_filters, places_of
from structpe.positions.stochastic._noise import Normals, orthogonal
from structpe.terms import Terms

__all__ = ["SPEConvGated"]


class SPEConvGated(PositionModel, name="spe-conv-gated"):
    """``spe-conv`` with codes sqrt(1 - g_d) Q_td + sqrt(g_d) e_d / (R d_h)^(1/4), likewise for keys, with the same e.

    g = sigmoid(G), G (h, d_h) of each layer, started from N(0, 1); e (h, d_h, R) is normal. On average a channel then
    contributes q_d k_d [(1 - g_d) P_d(t - s) + g_d] sqrt(R / d_h), P as of ``spe-conv``: with g_d = 1 it knows nothing
    of positions. (Liutkus et al. 2021, sections 3.2 and 3.3; the authors' code for PyTorch, SPEFilter over ConvSPE.
    Their code for JAX has g and 1 - g the other way round.)

    In training e is drawn for each layer, z for the batch. In evaluation both are fixed. Memory grows with n h d_h R.
    It widens queries and keys; another model that changes these by a map is not to be added.

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
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), realisations: int = 256, width: int = 200) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)], K=width)
        self.of_keys = nn.Parameter(new_filters(dims.width, width))
        self.of_queries = nn.Parameter(new_filters(dims.width, width))
        self.gates = nn.Parameter(torch.randn(dims.layers, dims.heads, dims.head))
        self.realisations, self.fixed = realisations, Normals(realisations, dims.width)
        self.fixed_dry = orthogonal(dims.heads, dims.head, realisations)

    def prepare(self, positions: Positions) -> Filtered:
        """The codes before the gate, for all layers."""
        places = places_of(self.name, self.encodings[0], positions)
        return self.filtered(positions, self._draw(places + self.of_keys.shape[1] - 1))

    def filtered(self, positions: Positions, noise: Tensor) -> Filtered:
        """The same with a given noise (R, d, P + K - 1) for P places."""
        return filtered(self, positions, self.of_queries, self.of_keys, noise)

    def terms(self, prepared: Filtered, site: Site) -> Terms:
        dry = self.fixed_dry.to(self.gates)
        return Terms(maps=(self.gated(prepared, site.layer, torch.randn_like(dry) if self.training else dry).map,))

    def gated(self, codes: Filtered, layer: int, dry: Tensor) -> Filtered:
        """The codes as a layer has them, with a given noise (h, d_h, R) that knows no place."""
        return codes.gated(torch.sigmoid(self.gates[layer]), dry)

    def _draw(self, count: int) -> Tensor:
        like = self.of_keys
        if self.training:
            return torch.randn(self.realisations, self.dims.width, count, dtype=like.dtype, device=like.device)
        return self.fixed.first(count).to(like).permute(1, 2, 0)
