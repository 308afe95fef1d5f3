"""Degrees, distances and the edges on shortest paths (Ying et al. 2021)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structpe.encodings.base import Encoding
from structpe.encodings.distance import UndirectedDistance
from structpe.encodings.feature import Feature
from structpe.encodings.label_path import LabelPath
from structpe.positions import Cells, Dims, Spec
from structpe.positions.graphormer._parts import GraphormerModel, mean_of_steps
from structpe.positions.paths._path_attention import slots_of

__all__ = ["Graphormer"]


class Graphormer(GraphormerModel, name="graphormer"):
    """Degrees, distances and the edges on shortest paths (Ying et al. 2021).

    s_ij += b[r_ij] + c_ij; where i or j is the virtual node, += t. x_u + z_in[deg_in(u)] + z_out[deg_out(u)].

    ::

        c_ij = 1/max(n, 1) sum_k E[label of step k] W_k       over the first n = min(length, m) steps from i to j

    b (R, h) has a scalar per head and distance, one for pairs without a path and, where nodes own several units, rows
    for these; t (h) is the distance of the virtual node to everything. E (V + 1, h) embeds labels, W (m, h, h) is of
    each step; z_in and z_out (D, d) embed degrees. All layers have the same b, c and t. Pairs ``farthest`` or more
    edges apart do not attend, and pairs without a path count as 510 apart. (Ying et al. 2021, section 3.1; the authors'
    code, edge type "multi_hop".)

    As in the code: farther steps than m are left out of the sum, which is divided by m then; the virtual node is that
    of :func:`structpe.transforms.virtual.with_virtual_node`, and has no degree. The paper's eq. 4 gives in-degree and
    out-degree a table each; the code is for undirected graphs, where both are one number. Unlike the code: edges of a
    directed structure count in both directions, and a label in the reverse direction has its own row; of several
    shortest paths the one with the smallest labels is taken, which does not depend on the numbers of nodes, while the
    code takes the one that its Floyd-Warshall search finds; E has a row per label, while the code adds up the rows of
    an edge's several features. The rows of the code for padding are not included.

    Args:
        dims: sizes of the Transformer.
        encoding: r_ij, distances.
        paths: labels along shortest paths; its limit is m, 5 in the code.
        virtual: not 0 for the virtual node.
        distances: number of distances that have their own row; farther ones have the last.
        farthest: from which distance on pairs do not attend.
        degrees: D.

    Raises:
        PositionError: a batch has a degree of ``degrees`` or more; paths without a limit, or several per pair.
    """

    spec = Spec(
        "ying2021",
        "graph",
        Cells("B", "both", learnable=True, recurring=True, unbound=False, params="R*h + h + (V + 1)*h + m*h*h + 2*D*d"),
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = UndirectedDistance(),
        paths: LabelPath = LabelPath(limit=5),
        virtual: Encoding = Feature("virtual", missing=0),
        distances: int = 510,
        farthest: int = 1024,
        degrees: int = 512,
    ) -> None:
        steps = slots_of(self.name, paths)
        super().__init__(dims, (encoding, paths, virtual), distances, farthest, degrees, m=steps)
        self.steps = nn.Parameter(torch.randn(steps, dims.heads, dims.heads) * 0.02)

    def path_bias(self, paths: Tensor) -> Tensor:
        return mean_of_steps(self.edges, self.steps, paths)
