"""Attention weights that are fixed bell curves around a neighbour (You, Sun and Iyyer 2020)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from structpe.dropout import dropout
from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding
from structpe.encodings.order import Offset
from structpe.errors import PositionError
from structpe.positions import Block, Cells, Dims, Positions, Site, Spec
from structpe.positions._checks import of_all_pairs, offsets
from structpe.positions._rows import is_plain
from structpe.positions.blocks._attention import allowed, joined, of_layers, split
from structpe.terms import Lookup, Terms

__all__ = ["HardCodedGaussian"]


class HardCodedGaussian(Block, name="hard-coded-gaussian"):
    """Attention weights that are fixed bell curves around a neighbour (You, Sun and Iyyer 2020).

    o_i = W_o [ sum_j w_ij v_j ],  w_ij = exp(-((r_ij - c_h) / z_h)^2 / 2) / (z_h sqrt(2 pi)),  v = W_v x.

    w is the density of a normal distribution around c_h, deviation z_h; it depends on positions only, and there are no
    queries and keys. r_ij = s - t, key minus query, or any other encoding of pairs; pairs without a path have weight 0.
    W_v and W_o are (d, d) without bias, of each layer; heads as usual. (You et al. 2020, section 3.)

    As in the authors' code w is used directly: without a softmax rows do not sum to 1, least of all at the ends of a
    text, and a masked pair has weight 0 without changing the others. Not included: the factor on the place of the query
    with which the code aligns two languages in cross attention, and learned heads next to fixed ones.

    Args:
        dims: sizes of the Transformer.
        encoding: signed integers per pair.
        centres: c, for one head after the other, repeated if there are more heads.
        deviations: z, in the same way.
        threshold: densities below this are 0.

    Raises:
        PositionError: no centre or deviation, a deviation of 0 or less, or no single integer per pair.
        UnsupportedTerm: something else than which pairs attend is to act on attention.
    """

    drops = True
    spec = Spec(
        "you2020",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="2*d*d*l"),
        note="a block counts its projections; the weights have no parameters, and far keys all have weight 0",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Offset(),
        centres: tuple[float, ...] = (-1.0, 1.0),
        deviations: tuple[float, ...] = (1.0,),
        threshold: float = 0.0,
    ) -> None:
        super().__init__(dims, [of_all_pairs(self.name, encoding)])
        if not centres or not deviations or min(deviations) <= 0:
            raise PositionError(
                f"position model 'hard-coded-gaussian' needs a centre and a deviation above 0 for each head; given are "
                f"centres {centres} and deviations {deviations}"
            )
        self.centres, self.deviations = _each(centres, dims.heads), _each(deviations, dims.heads)
        self.threshold = threshold
        self.values, self.outs = (of_layers(dims, dims.width, bias=False) for _ in range(2))

    def prepare(self, positions: Positions) -> Tensor:
        """(b, h, n, n) the weights, float64, the same for all layers."""
        of_pairs: Lookup = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        return of_pairs.map(self._density).dense().movedim(3, 1)

    def attend(self, x: Tensor, prepared: Tensor, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        weights = dropout(prepared.to(x.dtype) * allowed(self.name, terms, x), site.dropout)
        v = split(self.values[site.layer](x), self.dims.heads)
        return self.outs[site.layer](joined(weights.to(v.dtype) @ v)), prepared

    def _density(self, values: Tensor) -> Tensor:
        r = torch.where(is_plain(values), values, values - WITHIN)[:, None].double()
        c, z = self.centres.to(r.device), self.deviations.to(r.device)
        density = torch.exp(-(((r - c) / z) ** 2) / 2) / (z * math.sqrt(2 * math.pi))
        return density * (density >= self.threshold) * (values != UNREACHABLE)[:, None]


def _each(given: tuple[float, ...], heads: int) -> Tensor:
    return torch.tensor([given[h % len(given)] for h in range(heads)], dtype=torch.float64)
