"""Stochastic position encoding by filters (Liutkus et al. 2021, convSPE)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import of_arity
from structpe.positions.stochastic._filtered import Filtered, filtered, new_filters, places_of
from structpe.positions.stochastic._noise import Normals
from structpe.terms import Terms

__all__ = ["SPEConv"]


class SPEConv(PositionModel, name="spe-conv"):
    """(q_t, k_s) -> (sum_d q_td Q_td, sum_d k_sd K_sd) in R^R, where Q and K are filtered noise.

    On average q'.k' = sqrt(R / d_h) sum_d q_d k_d P_d(t - s), P_d(r) = sum_u a_du b_d,u+r, zero beyond a filter.

    Q_td = sum_u a_du z_d,t+u / (R d_h)^(1/4), K_sd = sum_u b_du z_d,s+u / (R d_h)^(1/4), u = 0..K-1, z normal, of each
    head, channel, realisation and place; the filters a and b are (h d_h, K), for all layers. Attention divides by
    sqrt(R), the width that vectors now have. (Liutkus et al. 2021, section 3.2.)

    In the authors' code the module ``conv_k`` makes the codes of queries, that is a, and ``conv_q`` those of keys. It
    draws noise for L + 4K places and leaves out the first K and those behind; the same filters fall on it here. They
    start from U(0, sqrt(2 / K)). One noise is drawn for a batch in training; in evaluation, where the code draws too,
    it is fixed, place by place. Memory grows with n h d_h R.

    A gate that lets content through is that of ``spe-conv-gated``. Images, on which the code filters along each axis,
    are not here. It widens queries and keys; another model that changes these by a map is not to be added.

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
        Cells("B", "MAM", learnable=True, recurring=True, unbound=True, params="2*K*d"),
        note="relative on average over draws; one draw, which is what is measured, has other noise at each place",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), realisations: int = 256, width: int = 200) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)], K=width)
        self.of_keys = nn.Parameter(new_filters(dims.width, width))
        self.of_queries = nn.Parameter(new_filters(dims.width, width))
        self.realisations, self.fixed = realisations, Normals(realisations, dims.width)

    def prepare(self, positions: Positions) -> Filtered:
        """The codes, for all layers."""
        places = places_of(self.name, self.encodings[0], positions)
        return self.filtered(positions, self._draw(places + self.of_keys.shape[1] - 1))

    def filtered(self, positions: Positions, noise: Tensor) -> Filtered:
        """The same with a given noise (R, d, P + K - 1) for P places."""
        return filtered(self, positions, self.of_queries, self.of_keys, noise)

    def terms(self, prepared: Filtered, site: Site) -> Terms:
        return Terms(maps=(prepared.map,))

    def _draw(self, count: int) -> Tensor:
        like = self.of_keys
        if self.training:
            return torch.randn(self.realisations, self.dims.width, count, dtype=like.dtype, device=like.device)
        return self.fixed.first(count).to(like).permute(1, 2, 0)
