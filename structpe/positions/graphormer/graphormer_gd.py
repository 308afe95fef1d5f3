"""Attention with a bias and a factor by two distances: shortest paths and resistance (Zhang et al. 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.distance import UndirectedDistance
from structpe.encodings.feature import Feature
from structpe.encodings.label_path import LabelPath
from structpe.encodings.resistance import Resistance
from structpe.positions import Block, Cells, Dims, Positions, Site, Spec
from structpe.positions._gaussians import GaussianNetwork
from structpe.positions._pair_values import merged, numbers_and_marks, pair_width
from structpe.positions.blocks._attention import allowed, factored, of_layers, split
from structpe.positions.graphormer._parts import Centrality, Edges, Spatial, mean_of_steps
from structpe.positions.paths._path_attention import slots_of
from structpe.terms import Lookup, Terms

__all__ = ["GraphormerGD"]

_PARAMS = f"2*(R*h + h + {GaussianNetwork.count('K', 'u', 'h')}) + (V + 1)*h + m*h*h + 2*D*d + 4*(d*d + d)*l"
"""Formula of the number of parameters."""


@dataclass(frozen=True)
class _Prepared:
    """``bias`` and ``factor`` (b, h, n, n) of all layers, and what is added to the units, ``centrality`` (b, n, d)."""

    bias: Tensor
    factor: Tensor
    centrality: Tensor


class GraphormerGD(Block, name="graphormer-gd"):
    """Attention with a bias and a factor by two distances: shortest paths and resistance (Zhang et al. 2023).

    o_i = W_o sum_j m_ij softmax_j(q_i.k_j / sqrt(d_h) + a_ij) v_j + w_o,  x_u + z_in[deg_in(u)] + z_out[deg_out(u)].

    ::

        a_ij = b[r_ij] + c_ij + f(R_ij),    m_ij = b'[r_ij] + f'(R_ij)        where i or j is the virtual node: t, t'

    m multiplies after the softmax, so that rows do not sum to 1. r_ij is the length of the shortest path, R_ij the
    resistance; b and b' (R, h), t and t' (h); f and f' are networks over K Gaussians as in ``rbf-bias``; c_ij, z_in and
    z_out as in ``graphormer``. All layers have the same of these. q, k, v (d, d) with bias and W_o are of each layer.
    (Zhang et al. 2023, section 4: phi_1 is m, phi_2 is a; the authors' code, edge type "multi_hop".)

    As in the code, edges are in a only, and m may be negative. Unlike the code, f does not depend on the types of two
    atoms, no pair is too far apart to attend, and labels and paths are those of ``graphormer``.

    Args:
        dims: sizes of the Transformer.
        encoding: r_ij, distances.
        resistance: R_ij, or another real number per pair.
        paths: labels along shortest paths, up to a limit.
        virtual: not 0 for the virtual node.
        distances: number of distances that have their own row; farther ones have the last.
        degrees: D.
        kernels: K, 128 in the code.

    Raises:
        PositionError: a batch has a degree of ``degrees`` or more; paths without a limit, or several per pair.
        UnsupportedTerm: something else than which pairs attend is to act on attention.
    """

    drops = True
    spec = Spec(
        "zhang2023",
        "graph",
        Cells("B", "both", learnable=True, recurring=True, unbound=True, params=_PARAMS),
        note="degrees are absolute; rows do not sum to 1, so that far from both ends it counts how much is before",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = UndirectedDistance(),
        resistance: Encoding = Resistance(),
        paths: LabelPath = LabelPath(limit=5),
        virtual: Encoding = Feature("virtual", missing=0),
        distances: int = 40,
        degrees: int = 512,
        kernels: int = 128,
    ) -> None:
        steps, marks = slots_of(self.name, paths), len(resistance.codes)
        pair_width(self.name, resistance, vectors=False)
        both = [_Function(self.name, dims, (encoding, resistance, virtual), distances, kernels) for _ in range(2)]
        centrality = Centrality(self.name, dims.width, degrees, virtual)
        sizes = {"R": both[0].spatial.rows.size, "V": 2 * len(paths.labels), "m": steps, "D": degrees}
        super().__init__(
            dims, [encoding, resistance, paths, virtual, *centrality.encodings], **sizes, K=kernels, u=min(marks, 1)
        )
        self.paths, self.centrality = paths, centrality
        self.bias, self.factor = both
        self.edges = Edges(paths.size, dims.heads)
        self.steps = nn.Parameter(torch.randn(steps, dims.heads, dims.heads) * 0.02)
        self.queries, self.keys, self.values, self.outs = (of_layers(dims, dims.width) for _ in range(4))

    def prepare(self, positions: Positions) -> _Prepared:
        """Everything that all layers share."""
        paths: Lookup = positions[self.paths]
        edges = paths.map(lambda symbols: mean_of_steps(self.edges, self.steps, symbols)).dense().movedim(-1, 1)
        return _Prepared(self.bias(positions) + edges, self.factor(positions), self.centrality(positions))

    def inputs(self, x: Tensor, prepared: _Prepared) -> Tensor:
        return x + prepared.centrality.to(x.dtype)

    def attend(self, x: Tensor, prepared: _Prepared, site: Site, terms: Terms) -> tuple[Tensor, Any]:
        projections = (self.queries, self.keys, self.values)
        q, k, v = (split(each[site.layer](x), self.dims.heads) for each in projections)
        scores = q @ k.mT / math.sqrt(self.dims.head) + prepared.bias
        mixed = factored(scores, prepared.factor, v, allowed(self.name, terms, x), site.dropout)
        return self.outs[site.layer](mixed), prepared


class _Function(nn.Module):
    """(b, h, n, n) b[r_ij] + f(R_ij); t where i or j is the virtual node."""

    def __init__(
        self, model: str, dims: Dims, encodings: tuple[Encoding, Encoding, Encoding], distances: int, kernels: int
    ) -> None:
        super().__init__()
        encoding, self.resistance, virtual = encodings
        self.spatial = Spatial(model, dims, encoding, virtual, distances, farthest=1 << 30)
        self.network = GaussianNetwork(kernels, bool(self.resistance.codes), dims.heads)

    def forward(self, positions: Positions) -> Tensor:
        (table,) = self.spatial(positions).bias
        assert isinstance(table, Lookup)  # not few pairs
        here = merged(positions[self.resistance]).map(self._of_ohms)
        return (table.dense() + self.spatial.with_virtual(here, positions).dense()).movedim(-1, 1)

    def _of_ohms(self, values: Tensor) -> Tensor:
        """(R + 1, h); the last row, for the virtual node, is 0."""
        dtype = self.network.means.dtype
        biases = self.network(numbers_and_marks(self.resistance, values, dtype))
        return torch.cat([biases, biases.new_zeros(1, biases.shape[1])])
