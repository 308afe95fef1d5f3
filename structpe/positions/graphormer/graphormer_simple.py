"""Degrees, distances and the edge between two nodes, without paths (Ying et al. 2021)."""

from __future__ import annotations

from torch import Tensor

from structpe.encodings.base import Encoding
from structpe.encodings.distance import UndirectedDistance
from structpe.encodings.feature import Feature
from structpe.encodings.label_path import LabelPath
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, Spec
from structpe.positions.graphormer._parts import GraphormerModel

__all__ = ["GraphormerSimple"]


class GraphormerSimple(GraphormerModel, name="graphormer-simple"):
    """Degrees, distances and the edge between two nodes, without paths (Ying et al. 2021).

    s_ij += b[r_ij] + E[label of the edge ij]; where i or j is the virtual node, += t. Degrees as in ``graphormer``.

    b, t, E, z_in and z_out are those of ``graphormer``; the edge term is zero for pairs that no edge joins. (Ying et
    al. 2021, section 3.1; the authors' code, edge type "simple".) In a directed structure the label of an edge as seen
    from its target has its own row, while the code, made for undirected graphs, has none; of parallel edges the
    smallest label counts, and a self-loop counts as no edge.

    Args:
        dims: sizes of the Transformer.
        encoding: r_ij, distances.
        paths: the labels of single edges: paths of one step, longer ones being a symbol.
        virtual: not 0 for the virtual node.
        distances: number of distances that have their own row; farther ones have the last.
        farthest: from which distance on pairs do not attend.
        degrees: D, rows of z_in and of z_out.

    Raises:
        PositionError: a batch has a degree of ``degrees`` or more, or paths are not of one step.
    """

    spec = Spec(
        "ying2021",
        "graph",
        Cells("B", "both", learnable=True, recurring=True, unbound=False, params="R*h + h + (V + 1)*h + 2*D*d"),
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = UndirectedDistance(),
        paths: LabelPath = LabelPath(limit=1, longer="symbol"),
        virtual: Encoding = Feature("virtual", missing=0),
        distances: int = 510,
        farthest: int = 1024,
        degrees: int = 512,
    ) -> None:
        if (paths.limit, paths.longer, paths.paths) != (1, "symbol", 1):
            raise PositionError(
                f"position model 'graphormer-simple' needs the labels of single edges: "
                f"LabelPath(limit=1, longer='symbol'); given is {paths!r}"
            )
        super().__init__(dims, (encoding, paths, virtual), distances, farthest, degrees)

    def path_bias(self, paths: Tensor) -> Tensor:
        labels: Tensor = self.edges(paths)[0]
        return labels.sum(1)
