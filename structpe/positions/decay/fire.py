"""FIRE: a bias interpolated by a network from relative distances (Li S. et al. 2024)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import numbers, of_arity
from structpe.positions._perceptron import perceptron
from structpe.precision import wide, widened
from structpe.terms import Terms

__all__ = ["FIRE"]

EPSILON = 1e-6


class Places(NamedTuple):
    """Places of the queries (b, n, 1), and of the keys (b, 1, m)."""

    queries: Tensor
    keys: Tensor


class FIRE(PositionModel, name="fire"):
    """FIRE: a bias interpolated by a network from relative distances (Li S. et al. 2024).

    s_ij += (W_2 relu(W_1 x_ij + c_1) + c_2) of the head,  x_ij = log(|c| |i - j| + 1) / log(|c| max(i, L) + 1).

    Functional interpolation: x stays within 0 and 1 however long a text is, and a learned threshold L turns this off
    for short texts. (Li S. et al. 2024, section 3, for decoders, where j <= i.) W_1 (w, 1), W_2
    (h, w), c and L are learned, and each layer has its own, or all have the same (their FIRE-S).

    As in the code in the appendix: L = |a L_0| with a learned, 1 at first, and the divisor is increased by 1e-6. Places
    are those of ``encoding``; for an encoder, keys after the query have the distances of those before it, but no paper
    has tried that.

    A bias of this kind depends on the pair and on the place of the query, so there is no table of few distinct values:
    it takes b h n m numbers, as the authors' does.

    Args:
        dims: sizes of the Transformer.
        encoding: the place of each unit.
        hidden: w.
        threshold: L_0.
        shared: whether all layers have the same network.

    Raises:
        PositionError: the encoding gives a vector per unit.
    """

    spec = Spec(
        "li2024",
        "sequence",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=True, params="copies*(2*w + w*h + h + 2)"),
        note="relative as long as a text has at most L units; beyond, the place of the query counts too",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        hidden: int = 32,
        threshold: float = 512.0,
        shared: bool = False,
    ) -> None:
        copies = 1 if shared else dims.layers
        super().__init__(dims, [of_arity(self.name, encoding, 1)], copies=copies, w=hidden)
        self.threshold = threshold
        self.networks = nn.ModuleList(perceptron([1, hidden, dims.heads]) for _ in range(copies))
        self.slope = nn.Parameter(torch.full((copies,), 0.1))
        self.stretch = nn.Parameter(torch.ones(copies))

    def prepare(self, positions: Positions) -> Places:
        """The places of queries and keys."""
        (encoding,) = self.encodings
        keys = numbers(self.name, encoding, positions[encoding])
        return Places(positions.queries(encoding)[..., None], keys[:, None])

    def terms(self, prepared: Places, site: Site) -> Terms:
        number = 0 if len(self.networks) == 1 else site.layer
        slope, stretch = wide(self.slope)[number].abs(), wide(self.stretch)[number]
        queries, keys = (each.to(slope.dtype) for each in prepared)
        longest = torch.maximum(queries, (stretch * self.threshold).abs())
        x = (slope * (queries - keys).abs()).log1p() / ((slope * longest).log1p() + EPSILON)
        bias: Tensor = widened(self.networks[number])(x[..., None])
        return Terms(bias=(bias.movedim(-1, 1),))
