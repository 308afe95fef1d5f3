"""Attention by squared distances of queries and keys, with a bias and a factor from walks (Ma et al. 2025, PPGT)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.base import Encoding
from structpe.encodings.degree import Degree
from structpe.encodings.rrwp import RRWP
from structpe.encodings.size import Size
from structpe.positions import Block, Cells, Dims, Positions, Site, Spec
from structpe.positions._pair_values import diagonal, numbers_and_marks, pair_width
from structpe.positions.blocks._attention import allowed, factored, of_layers, products, split
from structpe.precision import wide
from structpe.terms import Lookup, Terms

__all__ = ["PPGT"]

_PARAMS = "(7*K + 1)*w + (w + 1)*d + (K + 2)*d + d + (4*(d*d + d) + 2*h*(d + 1))*l"
"""Formula of the number of parameters."""
_WAVES = 3


@dataclass(frozen=True)
class _Prepared:
    """``pairs``, vectors (R, d) of distinct values, and what is added to the units, ``own`` (b, n, d)."""

    pairs: Lookup
    own: Tensor


class PPGT(Block, name="ppgt"):
    """Attention by squared distances of queries and keys, with a bias and a factor from walks (Ma et al. 2025, PPGT).

    o_i = W_o sum_j (1 + D e_ij + c) softmax_j(q_i.k_j - |k_j|^2 / (2 sqrt(d_h)) + B e_ij + b) v_j + w_o.

    ::

        e_ij = W_2 gelu(W_1 f(P_ij) + c_1) + c_2      f(z) = cat[z, sin(2^m pi z), cos(2^m pi z) for m = 0, 1, 2]
        x_i + V [P_ii, log(1 + deg_i), log(1 + n)] + v            before the first layer

    P_ij are the probabilities of random walks (K), deg_i is the number of nodes that edges of i lead to, n that of
    units. e_ij (d) is the same for all layers; W_1 (w, 7 K), W_2 (d, w), V (d, K + 2). Of each layer are B, D (h, d),
    q, k, v and W_o (d, d) with bias. (Simplified L2 attention: q.k - |k|^2 / 2 differs from -|q - k|^2 / 2 by what is
    the same for all keys of a query. Ma et al. 2025, PPGT; the authors' code, its configuration for ZINC.)

    As in the code, q.k is *not* divided by sqrt(d_h), while |k|^2 is; and 1 + D e_ij + c multiplies after the softmax,
    so that rows do not sum to 1. Left out are what their configurations add to the stem for pairs (inverse degrees and
    sizes, labels of edges, two blocks with norms), their norms, which are those of the layers around it, and dropout.

    Args:
        dims: sizes of the Transformer.
        encoding: a vector, or a number, per pair.
        hidden: w.

    Raises:
        PositionError: the encoding is of single units or listed pairs, or gives sequences.
        UnsupportedTerm: something else than which pairs attend is to act on attention.
    """

    drops = True
    spec = Spec(
        "ma2025",
        "graph",
        Cells("B", "both", learnable=True, recurring=True, unbound=False, params=_PARAMS),
        note="walks are relative, degrees and the size absolute; a block counts its projections",
    )

    def __init__(self, dims: Dims, encoding: Encoding = RRWP(), hidden: int = 128) -> None:
        width = pair_width(self.name, encoding) + bool(encoding.codes)
        super().__init__(dims, [encoding, Degree("out"), Size()], K=width, w=hidden)
        self.enter = nn.Linear((1 + 2 * _WAVES) * width, hidden)
        self.leave, self.own = nn.Linear(hidden, dims.width), nn.Linear(width + 2, dims.width)
        self.queries, self.keys, self.values, self.outs = (of_layers(dims, dims.width) for _ in range(4))
        self.biases, self.factors = (of_layers(dims, dims.heads) for _ in range(2))

    def prepare(self, positions: Positions) -> _Prepared:
        """The vectors of pairs, once for all layers."""
        values: Lookup = positions[self.encodings[0]]
        walks = values.map(lambda p: numbers_and_marks(self.encodings[0], p, self.own.weight.dtype))
        counts = [torch.log1p(positions[each].to(walks.table.dtype))[..., None] for each in self.encodings[1:]]
        return _Prepared(walks.map(self._stem), self.own(torch.cat([diagonal(walks), *counts], dim=-1)))

    def inputs(self, x: Tensor, prepared: _Prepared) -> Tensor:
        return x + prepared.own.to(x.dtype)

    def attend(self, x: Tensor, prepared: _Prepared, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        projections = (self.queries, self.keys, self.values)
        q, k, v = (split(each[site.layer](x), self.dims.heads) for each in projections)
        near = products(q, k) - wide(k).square().sum(-1)[:, :, None] / (2 * math.sqrt(self.dims.head))
        bias, factor = (prepared.pairs.map(each[site.layer]).dense() for each in (self.biases, self.factors))
        scores = near + bias.movedim(-1, 1)
        mixed = factored(scores, 1 + factor.movedim(-1, 1), v, allowed(self.name, terms, x), site.dropout)
        return self.outs[site.layer](mixed), prepared

    def _stem(self, numbers: Tensor) -> Tensor:
        waves = [math.pi * 2**m * numbers for m in range(_WAVES)]
        lifted = torch.cat([numbers, *(wave.sin() for wave in waves), *(wave.cos() for wave in waves)], dim=-1)
        out: Tensor = self.leave(functional.gelu(self.enter(lifted)))
        return out
