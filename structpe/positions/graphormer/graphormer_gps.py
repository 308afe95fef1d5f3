"""Graphormer as GraphGPS has it: empty steps of a path count too (Rampasek et al. 2022)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings._path_labels import UNREACHED
from structpe.encodings.base import Encoding
from structpe.encodings.distance import UndirectedDistance
from structpe.encodings.feature import Feature
from structpe.encodings.label_path import LabelPath
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, Positions, Spec
from structpe.positions.graphormer._parts import GraphormerModel, Prepared
from structpe.positions.paths._path_attention import slots_of
from structpe.row_sums import sum_rows
from structpe.terms import Lookup, Terms

__all__ = ["GraphormerGPS"]

_NEVER = 1 << 40
"""No pair is so far apart that it does not attend."""


class GraphormerGPS(GraphormerModel, name="graphormer-gps"):
    """Graphormer as GraphGPS has it: empty steps of a path count too (Rampasek et al. 2022).

    s_ij += b[r_ij] + c_ij; where i or j is the virtual node, t. x_u + z_in[deg_in(u)] + z_out[deg_out(u)].

    ::

        c_ij = 1/max(n, 1) sum_k E[label of step k, or E[0] beyond the path] W_k          over all k = 1..m

    n is the distance of i and j, m - 1 if they are farther apart, m if no path joins them. b (R, h), t (h), E (V + 1,
    h), W (m, h, h), z_in and z_out (D, d) are those of ``graphormer``, of which this is the version of GraphGPS
    (Rampasek et al. 2022, their encoder "GraphormerBias"; after Ying et al. 2021). It differs as follows. Steps that a
    path does not have are embedded by row 0 of E, which is not zero and is also that of the label with number 0, so
    that every pair has c_ij, also a unit with itself and pairs without a path. The distances m - 1 and more are one,
    and paths are read up to there. The virtual node has only t.

    Unlike the code, as in ``graphormer``: labels in the reverse direction have their own rows, and of several shortest
    paths the one with the smallest labels is taken. Here labels have rows after row 0, which is for those not seen in
    training; to repeat the code give the label 0 the same numbers.

    Args:
        dims: sizes of the Transformer.
        encoding: r_ij, distances.
        paths: labels along shortest paths, up to m - 1 of them.
        virtual: not 0 for the virtual node.
        degrees: D.

    Raises:
        PositionError: a batch has a degree of ``degrees`` or more; paths without a limit, or several per pair.
    """

    spec = Spec(
        "rampasek2022",
        "graph",
        Cells("B", "both", learnable=True, recurring=True, unbound=False, params="R*h + h + (V + 1)*h + m*h*h + 2*D*d"),
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = UndirectedDistance(),
        paths: LabelPath = LabelPath(limit=19),
        virtual: Encoding = Feature("virtual", missing=0),
        degrees: int = 64,
    ) -> None:
        if paths.longer != "cut":
            raise PositionError(f"position model {self.name!r} needs paths that are cut; given is {paths!r}")
        steps = slots_of(self.name, paths) + 1
        super().__init__(dims, (encoding, paths, virtual), distances=steps, farthest=_NEVER, degrees=degrees, m=steps)
        self.steps = nn.Parameter(torch.randn(steps, dims.heads, dims.heads) * 0.02)

    def prepare(self, positions: Positions) -> Prepared:
        """Everything, once for all layers."""
        paths: Lookup = positions[self.encodings[1]]
        # The virtual node has no path.
        of_paths = paths.map(lambda each: functional.pad(self.path_bias(each), (0, 0, 0, 1)))
        bias = self.spatial.with_virtual(of_paths, positions)
        return Prepared(self.spatial(positions) + Terms(bias=(bias,)), self.centrality(positions))

    def path_bias(self, paths: Tensor) -> Tensor:
        rows, there = self.edges.rows(paths)
        steps, labels = len(self.steps), len(self.edges.table)
        # E[label] W_k is made once for each label and step k, not for each path.
        each = torch.einsum("vh,lhk->lvk", self.edges.table, self.steps)
        places = rows + labels * torch.arange(rows.shape[1], device=rows.device)
        total = sum_rows(each.flatten(0, 1), places) + each[places.shape[1] :, 0].sum(0)
        length = torch.where(paths[:, 0] == UNREACHED, steps, there.sum(1))
        mean: Tensor = total / length.clamp(min=1)[:, None]
        return mean
