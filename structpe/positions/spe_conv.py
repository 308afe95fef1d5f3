"""Stochastic position encoding by filters (Liutkus et al. 2021, convSPE)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.errors import PositionError
from structpe.positions._noise import Normals
from structpe.positions._places import Places
from structpe.positions._rows import numbers, of_arity
from structpe.positions._spe import check_positive
from structpe.positions.base import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.terms import Terms

__all__ = ["Filtered", "SPEConv"]


@dataclass(frozen=True, eq=False)
class Filtered:
    """Codes of each place.

    Attributes:
        queries: (b or 1, n, h, d_h, R).
        keys: (b or 1, m, h, d_h, R).
    """

    queries: Tensor
    keys: Tensor

    def map(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """From width d_h to width R."""

        def coded(x: Tensor, codes: Tensor) -> Tensor:
            # One batch of vectors times a matrix per head and place: (h, n, b, d_h) @ (h, n, d_h, R).
            if len(codes) == 1:
                made = x.permute(1, 2, 0, 3) @ codes[0].transpose(0, 1).to(x.dtype)
                return made.permute(2, 0, 1, 3)
            return torch.einsum("bhnd,bnhdr->bhnr", x, codes.to(x.dtype))

        return coded(q, self.queries), coded(k, self.keys)


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

    It widens queries and keys; another model that changes these by a map is not to be added.

    Args:
        dims: sizes of the Transformer.
        encoding: whole numbers 0, 1, ... per unit.
        realisations: R.
        width: K, of a filter.

    Raises:
        PositionError: a size below 1, or the encoding gives a vector per unit, or no whole numbers.
    """

    spec = Spec(
        cite="liutkus2021",
        structure="sequence",
        cells=Cells("B", "MAM", learnable=True, recurring=True, unbound=True, params="2*K*d"),
        note="relative on average over draws; one draw, which is what is measured, has other noise at each place",
    )

    def __init__(self, dims: Dims, encoding: Encoding = Order(), realisations: int = 256, width: int = 200) -> None:
        check_positive(self.name, realisations=realisations, width=width)
        super().__init__(dims, [of_arity(self.name, encoding, 1)], K=width)
        self.of_keys = nn.Parameter(torch.rand(dims.width, width) * math.sqrt(2 / width))
        self.of_queries = nn.Parameter(torch.rand(dims.width, width) * math.sqrt(2 / width))
        self.realisations, self.fixed = realisations, Normals(realisations, dims.width)

    def prepare(self, positions: Positions) -> Filtered:
        """The codes, for all layers."""
        (encoding,) = self.encodings
        places = numbers(self.name, encoding, positions[encoding])
        if places.is_floating_point() or int(places.min()) < 0:
            raise PositionError(
                f"position model 'spe-conv' needs whole numbers from 0 on (order, depth, ...); {encoding.name!r} gives "
                f"others"
            )
        return self.filtered(positions, self._draw(int(places.max()) + self.of_keys.shape[1]))

    def filtered(self, positions: Positions, noise: Tensor) -> Filtered:
        """The same with a given noise (R, d, P + K - 1) for P places."""
        scale = (self.realisations * self.dims.head) ** 0.25
        count = noise.shape[2] - self.of_keys.shape[1] + 1
        places = Places.of(self.name, self.encodings[0], positions, count)

        def codes(filters: Tensor, where: Tensor | slice) -> Tensor:
            made = functional.conv1d(noise, filters[:, None], groups=self.dims.width) / scale  # (R, d, P)
            chosen: Tensor = made.permute(2, 1, 0).reshape(count, self.dims.heads, self.dims.head, -1)[where]
            return chosen[None] if isinstance(where, slice) else chosen

        return Filtered(codes(self.of_queries, places.queries), codes(self.of_keys, places.keys))

    def terms(self, prepared: Filtered, site: Site) -> Terms:
        del site
        return Terms(maps=(prepared.map,))

    def _draw(self, count: int) -> Tensor:
        like = self.of_keys
        if self.training:
            return torch.randn(self.realisations, self.dims.width, count, dtype=like.dtype, device=like.device)
        return self.fixed.first(count).to(like).permute(1, 2, 0)
