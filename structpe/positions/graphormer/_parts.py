"""Parts that Graphormer's models share: degrees at the input, distances and edges in attention, the virtual node."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from structpe.encodings._path_labels import FIRST_STEP, UNKNOWN
from structpe.encodings.base import UNREACHABLE, Encoding
from structpe.encodings.degree import Degree
from structpe.encodings.label_path import LabelPath
from structpe.errors import PositionError
from structpe.positions import Dims, PositionModel, Positions, Site
from structpe.positions._checks import holds, numbers, of_all_pairs, of_arity, offsets
from structpe.positions._rows import Rows, is_plain
from structpe.terms import Lookup, Terms

__all__ = ["Centrality", "Edges", "GraphormerModel", "Prepared", "Spatial", "mean_of_steps"]


@dataclass(frozen=True, eq=False)
class Prepared:
    """The terms of a batch, the same for all layers, and what is added to the units.

    Attributes:
        terms: of attention.
        centrality: (b, n, d).
    """

    terms: Terms
    centrality: Tensor


class Centrality(nn.Module):
    """z_in[deg_in(u)] + z_out[deg_out(u)] for each unit except that of the virtual node, which has no degree.

    Args:
        model: name of the position model, for error messages.
        width: d.
        degrees: number of rows of each table.
        virtual: marks the virtual node.
    """

    def __init__(self, model: str, width: int, degrees: int, virtual: Encoding) -> None:
        super().__init__()
        self.model, self.virtual = model, virtual
        self.tables = nn.ParameterList(torch.randn(degrees, width) * 0.02 for _ in range(2))
        self.encodings = (Degree("in"), Degree("out"))

    def forward(self, positions: Positions) -> Tensor:
        """(b, n, d)."""
        each = [positions.queries(encoding) for encoding in self.encodings]
        known = len(self.tables[0])
        if holds((torch.maximum(*each) >= known).any()):
            most = int(torch.maximum(*each).max())
            raise PositionError(
                f"position model {self.model!r} has {known} degrees, this batch needs {most + 1}; build it with "
                f"a larger 'degrees'"
            )
        added: Tensor = self.tables[0][each[0]] + self.tables[1][each[1]]
        return added * (positions.queries(self.virtual)[..., None] == 0)


class Spatial(nn.Module):
    """b[distance of i and j], t where i or j is the virtual node, and no attention where the distance is too large.

    Args:
        model: name of the position model, for error messages.
        dims: sizes of the Transformer.
        encoding: integers per pair.
        virtual: marks the virtual node.
        distances: number of distances that have their own row; a pair without a path counts as this far.
        farthest: pairs this far apart, or farther, do not attend.
    """

    def __init__(
        self, model: str, dims: Dims, encoding: Encoding, virtual: Encoding, distances: int, farthest: int
    ) -> None:
        super().__init__()
        self.model, self.distances, self.farthest = model, distances, farthest
        self.encoding, self.virtual = of_all_pairs(model, encoding), of_arity(model, virtual, 1)
        self.rows = Rows(encoding, distances)
        self.table = nn.Parameter(torch.randn(self.rows.size, dims.heads) * 0.02)
        self.token = nn.Parameter(torch.randn(dims.heads) * 0.02)

    def forward(self, positions: Positions) -> Terms:
        """Bias, and a mask where some pairs do not attend."""
        far = offsets(self.model, self.encoding, positions[self.encoding])
        attends = torch.cat([self._distance(far.table) < self.farthest, far.table.new_ones(1, dtype=torch.bool)])
        rows = self.rows.of(far.table, lambda r: r.abs().clamp(max=self.distances - 1))
        whole = torch.cat([rows, rows.new_full((1,), self.rows.size)])
        everywhere = self.with_virtual(Lookup(whole, far.rows, far.index), positions)
        table = torch.cat([self.table, self.token[None]])
        mask = () if holds(attends.all()) else (everywhere.map(lambda _: attends).dense()[:, None],)
        return Terms(bias=(everywhere.map(table.__getitem__).share(),), mask=mask)

    def _distance(self, values: Tensor) -> Tensor:
        none = torch.where(values == UNREACHABLE, self.distances, 0)  # units of one node are no distance apart
        return torch.where(is_plain(values), values.abs(), none)

    def with_virtual(self, pairs: Lookup, positions: Positions) -> Lookup:
        """The same pairs, but every pair of the virtual node has the last row of the table."""
        last = pairs.rows.new_full((len(pairs.rows), 1), len(pairs.table) - 1)
        of_queries, of_keys = (
            numbers(self.model, self.virtual, marks) != 0
            for marks in (positions.queries(self.virtual), positions[self.virtual])
        )
        its = of_queries[:, :, None] | of_keys[:, None, :]
        return Lookup(
            pairs.table, torch.cat([pairs.rows, last], 1), torch.where(its, pairs.rows.shape[1], pairs.places())
        )


class Edges(nn.Module):
    """E[label] of the steps of a path; zero without a step. The first row is for labels not seen in training.

    Args:
        symbols: number of symbols of the paths.
        heads: h, width of E.
    """

    def __init__(self, symbols: int, heads: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(symbols - FIRST_STEP + 1, heads) * 0.02)

    def forward(self, paths: Tensor) -> tuple[Tensor, Tensor]:
        """(R, L, h) vectors, and (R, L) which are steps, from the symbols (R, L) of paths."""
        rows, steps = self.rows(paths)
        return self.table[rows] * steps[..., None], steps

    @staticmethod
    def rows(paths: Tensor) -> tuple[Tensor, Tensor]:
        """(R, L) row of E of each symbol, 0 where it is no step, and (R, L) which are steps."""
        return (paths - (FIRST_STEP - 1)).clamp(min=0), (paths == UNKNOWN) | (paths >= FIRST_STEP)


def mean_of_steps(edges: Edges, weights: Tensor, paths: Tensor) -> Tensor:
    """(R, h) of paths (R, L): 1/max(n, 1) sum_k E[label of step k] W_k over the first n steps, W (m, h, h)."""
    vectors, steps = edges(paths)
    total = torch.einsum("rlh,lhk->rk", vectors, weights[: vectors.shape[1]])
    mean: Tensor = total / steps.sum(1, keepdim=True).clamp(min=1)
    return mean


class GraphormerModel(PositionModel):
    """s_ij += b[r_ij] + c_ij and x_u + z_in[deg_in(u)] + z_out[deg_out(u)]; subclasses compute c_ij of a path.

    Args:
        dims: sizes of the Transformer.
        encodings: distances, the labels of shortest paths, and the mark of the virtual node.
        distances: number of distances that have their own row.
        farthest: from which distance on pairs do not attend.
        degrees: D.
        sizes: values of further symbols of the formula of parameters.
    """

    def __init__(
        self,
        dims: Dims,
        encodings: tuple[Encoding, LabelPath, Encoding],
        distances: int,
        farthest: int,
        degrees: int,
        **sizes: int,
    ) -> None:
        encoding, paths, virtual = encodings
        spatial = Spatial(self.name, dims, encoding, virtual, distances, farthest)
        centrality = Centrality(self.name, dims.width, degrees, virtual)
        sizes = {"R": spatial.rows.size, "V": 2 * len(paths.labels), **sizes, "D": degrees}
        super().__init__(dims, [*encodings, *centrality.encodings], **sizes)
        self.spatial, self.centrality = spatial, centrality
        self.edges = Edges(paths.size, dims.heads)

    def prepare(self, positions: Positions) -> Prepared:
        """Everything, once for all layers."""
        paths: Lookup = positions[self.encodings[1]]
        terms = self.spatial(positions) + Terms(bias=(paths.map(self.path_bias).share(),))
        return Prepared(terms, self.centrality(positions))

    @abstractmethod
    def path_bias(self, paths: Tensor) -> Tensor:
        """(R, h) c of paths (R, L) of symbols."""

    def inputs(self, x: Tensor, prepared: Prepared) -> Tensor:
        return x + prepared.centrality.to(x.dtype)

    def terms(self, prepared: Prepared, site: Site) -> Terms:
        return prepared.terms
