"""Scores that fade exponentially with distance, from a learned distance on (Liu et al. 2024, Gradformer)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding
from structpe.encodings.distance import UndirectedDistance
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import of_arity, offsets
from structpe.positions._rows import is_plain
from structpe.terms import Lookup, Terms

__all__ = ["Gradformer"]

_FAR = 510.0
"""The distance of two nodes without a path, as in the authors' code."""


class Gradformer(PositionModel, name="gradformer"):
    """Scores that fade exponentially with distance, from a learned distance on (Liu et al. 2024, Gradformer).

    s_ij *= gamma^f(d_ij - p_h),  f(z) = z for z > 0 and slope z below,  p_h learned, of each head and all layers.

    With slope 0, as in most of the authors' settings, scores of pairs up to p_h edges apart are left alone, and those
    of farther ones fade. (Liu C. et al. 2024, section 4, the decay mask with its learnable constraint; the authors'
    code.) As in the code, the *score* q_i.k_j / sqrt(d_h) is multiplied, before the softmax, so that far pairs tend to
    an average weight, not to none; and p_h starts from 5, pairs without a path count as 510 apart.

    Units of one node, k places apart, count as k.

    Args:
        dims: sizes of the Transformer.
        encoding: one number per pair; d_ij is its magnitude.
        gamma: above 0 and at most 1; 0.5 in the code.
        hops: what p_h starts from.
        slope: of f below 0.

    Raises:
        PositionError: an encoding without one number for each pair, or another gamma.
    """

    spec = Spec(
        "liu2024",
        "graph",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="h"),
        note="beyond p_h + 50 edges or so, nothing is left of a score",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = UndirectedDistance(),
        gamma: float = 0.5,
        hops: float = 5.0,
        slope: float = 0.0,
    ) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 2)])
        if not 0 < gamma <= 1:
            raise PositionError(f"position model {self.name!r} takes a gamma above 0 and at most 1; given is {gamma}")
        self.logarithm, self.slope = math.log(gamma), slope
        self.hops = nn.Parameter(torch.full((dims.heads,), float(hops)))

    def prepare(self, positions: Positions) -> Terms:
        """The factor of each distinct distance, the same for all layers."""
        pairs: Lookup = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        return Terms(gate=(pairs.map(self._factor).share(),))

    def terms(self, prepared: Terms, site: Site) -> Terms:
        return prepared

    def _factor(self, values: Tensor) -> Tensor:
        """(R, h) of distinct values (R,)."""
        dtype = self.hops.dtype
        near = torch.where(is_plain(values), values, values - WITHIN).abs().to(dtype)
        far = torch.where(values == UNREACHABLE, _FAR, near)
        return (self.logarithm * functional.leaky_relu(far[:, None] - self.hops, self.slope)).exp()
