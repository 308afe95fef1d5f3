"""SAN: learned positions from the spectrum, and attention with different weights for real edges and other pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from structpe.dropout import dropout
from structpe.encodings.laplacian import Eigenpairs
from structpe.positions import Block, Cells, Dims, Positions, Site, Spec
from structpe.positions.batch import clipped
from structpe.positions.block import LINKS, NONE, SELF, WITHIN_NODE, allowed, joined, links, split
from structpe.positions.networks import concatenated
from structpe.positions.spectra import ADJACENCY, SpectralTransformer, Spectrum, transformer_width
from structpe.terms import Terms

__all__ = ["SAN"]


_FAKE = (NONE, WITHIN_NODE)
"""The kinds of links that count as no edge."""

_PARAMS = f"{SpectralTransformer.count('p', 'm', 'f')} + (r - 1)*d + (8*d*d + d)*l"
"""Formula of the number of parameters."""


@dataclass(frozen=True)
class _Prepared:
    spectrum: Tensor
    links: Tensor


class SAN(Block, name="san"):
    """A learned encoding of the spectrum, and attention with other weights where an edge is (Kreuzer et al. 2021).

    At the input cat[x_u, sum_j T(A [v_uj, lambda_j] + a)_j], and in every layer its own attention.

    ::

        o_i  = O (sum_j w_ij V x_j) / (sum_j w_ij + 1e-6) + c,  j != i, heads side by side
        w_ij = exp(s_ij) / (1 + gamma),        s_ij = clamp(sum_c (Q x_i)_c (K x_j)_c (E e_ij)_c / sqrt(d_h), -5, 5)
        w_ij = exp(s_ij) gamma / (1 + gamma),  likewise with Q', K', E', where no edge joins i and j

    T is a Transformer of width p over the k lowest eigenvectors of one node; their signs are drawn at random for each
    batch in training. e_ij (d) embeds the kind of link: none, an edge to, from, to and from the key, or two units of
    one node, which count as no edge. Q, K, E, Q', K', E', V, O are (d, d) of each layer, only O with a bias. (Kreuzer
    et al. 2021, sections 3.2 and 3.3, eqs. 9 to 11; the authors' code.) The code embeds the labels of bonds, while this
    has kinds of links. x at the input is the content in the other d - p channels: the last p are overwritten.

    Row entries: the code scales what each node has of the eigenvectors to length 1, the paper each eigenvector: the
    former is the default, ``Eigenpairs(norm="rows")``, the latter ``Eigenpairs()``.

    Args:
        encoding: eigenvectors and eigenvalues, the trivial one among them.
        gamma: weight of pairs without an edge relative to those with one, 0 or more; the authors choose it per data
            set.
        width: p; None for a quarter of the model's width, 4 at least, rounded up to what the heads of T divide.
        heads: of T.
        layers: of T.
        feedforward: hidden width of T; PyTorch's default in the code.

    Raises:
        PositionError: p leaves no channels for content, or the heads do not divide it.
    """

    drops = True
    spec = Spec(
        "kreuzer2021",
        "graph",
        Cells("B", "both", learnable=True, recurring=True, unbound=True, params=_PARAMS),
        note="a block counts its projections",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Eigenpairs = Eigenpairs(norm="rows"),
        gamma: float = 0.1,
        width: int | None = None,
        heads: int = 2,
        layers: int = 1,
        feedforward: int = 2048,
    ) -> None:
        p = transformer_width(self.name, width, heads, dims.width)
        super().__init__(dims, [encoding, ADJACENCY], p=p, m=layers, f=feedforward, r=LINKS)
        self.of_all = SpectralTransformer(p, heads, layers, feedforward)
        self.edges = nn.Embedding(LINKS - 1, dims.width)  # a unit is not linked to itself
        self.attentions = nn.ModuleList(_Attention(dims, gamma) for _ in range(dims.layers))

    def prepare(self, positions: Positions) -> _Prepared:
        """The learned encoding (b, n, p) and the links (b, n, n)."""
        spectrum = Spectrum.of(positions, self.encodings[0], self.edges.weight.dtype, drawn=self.training)
        return _Prepared(self.of_all(spectrum), links(positions[ADJACENCY]))

    def inputs(self, x: Tensor, prepared: _Prepared) -> Tensor:
        return concatenated(x, prepared.spectrum)

    def attend(self, x: Tensor, prepared: _Prepared, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        among = allowed(self.name, terms, x)
        out: Tensor = self.attentions[site.layer](x, self.edges.weight, prepared.links, among, site.dropout)
        return out, prepared


class _Attention(nn.Module):
    def __init__(self, dims: Dims, gamma: float) -> None:
        super().__init__()
        self.heads, self.gamma = dims.heads, gamma
        d = dims.width
        self.real, self.fake = (nn.ModuleList(nn.Linear(d, d, bias=False) for _ in range(3)) for _ in range(2))
        self.value, self.out = nn.Linear(d, d, bias=False), nn.Linear(d, d)

    def forward(self, x: Tensor, edges: Tensor, kinds: Tensor, allowed: Tensor, dropped: float) -> Tensor:
        """From x (b, n, d), edges (r - 1, d), kinds (b, n, n) and allowed (b or 1, h or 1, n, n) to (b, n, d)."""
        weights = x.new_zeros(len(x), self.heads, *kinds.shape[1:])
        # Scores as if all pairs had a link of one kind, for the few kinds: a product of each pair takes d times more.
        for kind in range(LINKS):
            if kind == SELF:
                continue
            (query, key, edge), strength = (self.fake, self.gamma) if kind in _FAKE else (self.real, 1.0)
            q = split(query(x) * edge(edges[kind - (kind > SELF)]), self.heads)
            scores = clipped(q @ split(key(x), self.heads).transpose(-1, -2) / math.sqrt(q.shape[-1]))
            these = (kinds == kind)[:, None] & allowed
            weights = torch.where(these, scores.exp() * (strength / (1 + self.gamma)), weights)
        weights = dropout(weights / (weights.sum(-1, keepdim=True) + 1e-6), dropped)
        out: Tensor = self.out(joined(weights @ split(self.value(x), self.heads)))
        return out
