"""Graphormer and its variants: degrees, distances and edges on shortest paths.

The virtual node is that of :func:`structpe.transforms.nodes.with_virtual_node`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from structpe.encodings.base import UNREACHABLE, Encoding
from structpe.encodings.coordinates import Euclidean
from structpe.encodings.diffusion import Resistance
from structpe.encodings.distance import Degree, UndirectedDistance
from structpe.encodings.features import Feature
from structpe.encodings.label_path import LabelPath
from structpe.encodings.label_path_search import UNREACHED
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions.batch import holds, numbers, of_all_pairs, of_arity, offsets
from structpe.positions.block import FactoredBlock, of_layers
from structpe.positions.by_rows import Ranges, by_rows, cut
from structpe.positions.networks import GaussianNetwork, bells
from structpe.positions.path_labels import Edges, check_single_edges, rows_of_pairs, slots_of
from structpe.positions.row_sums import sum_rows
from structpe.positions.tables import Rows, by_head, distance_row, is_plain, merged, numbers_and_marks, pair_width
from structpe.precision import wide
from structpe.terms import Lookup, Terms

__all__ = ["Graphormer", "Graphormer3D", "GraphormerGD", "GraphormerGPS", "GraphormerSimple"]


@dataclass(frozen=True, eq=False)
class _Prepared:
    """What all layers share: ``terms`` of attention, and what is ``added`` (b, n, d) to the units."""

    terms: Terms
    added: Tensor


class Centrality(nn.Module):
    """z_in[deg_in(u)] + z_out[deg_out(u)] for each unit except that of the virtual node, which has no degree."""

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
    """b[distance of i and j], t where i or j is the virtual node; pairs ``farthest`` or more apart do not attend.

    A pair without a path counts as ``distances`` apart, the number of distances that have their own row.
    """

    def __init__(
        self, model: str, dims: Dims, encoding: Encoding, virtual: Encoding, distances: int, farthest: int
    ) -> None:
        super().__init__()
        self.model, self.distances, self.farthest = model, distances, farthest
        self.encoding, self.virtual = of_all_pairs(model, encoding), of_arity(model, virtual, 1)
        self.rows = Rows(encoding, distances, partial(distance_row, most=distances - 1))
        self.table = nn.Parameter(torch.randn(self.rows.size, dims.heads) * 0.02)
        self.token = nn.Parameter(torch.randn(dims.heads) * 0.02)

    def forward(self, positions: Positions) -> Terms:
        """Bias, and a mask where some pairs do not attend."""
        far = offsets(self.model, self.encoding, positions[self.encoding])
        none = torch.where(far.table == UNREACHABLE, self.distances, 0)  # units of one node have distance 0
        distance = torch.where(is_plain(far.table), far.table.abs(), none)
        attends = torch.cat([distance < self.farthest, far.table.new_ones(1, dtype=torch.bool)])
        everywhere = self.pairs(positions)
        mask = () if holds(attends.all()) else (everywhere.map(lambda _: attends).dense()[:, None],)
        return Terms(bias=(everywhere.map(self.whole.__getitem__).share(),), mask=mask)

    @property
    def whole(self) -> Tensor:
        """(R + 1, h) b, and t in the last row, which the pairs of the virtual node have."""
        return torch.cat([self.table, self.token[None]])

    def pairs(self, positions: Positions) -> Lookup:
        """The row of :attr:`whole` that each pair has."""
        far = offsets(self.model, self.encoding, positions[self.encoding])
        rows = self.rows.of(far.table)
        whole = torch.cat([rows, rows.new_full((1,), self.rows.size)])
        return self.with_virtual(Lookup(whole, far.rows, far.index), positions)

    def with_virtual(self, pairs: Lookup, positions: Positions) -> Lookup:
        """The same pairs, but every pair of the virtual node has the last row of the table."""
        last = pairs.rows.new_full((len(pairs.rows), 1), len(pairs.table) - 1)
        of_queries, of_keys = (
            numbers(self.model, self.virtual, marks) != 0
            for marks in (positions.queries(self.virtual), positions[self.virtual])
        )
        its = of_queries[:, :, None] | of_keys[:, None, :]
        return Lookup(
            pairs.table, torch.cat([pairs.rows, last], 1), torch.where(its, pairs.rows.shape[1], pairs.dense_index())
        )


def mean_of_steps(edges: Edges, weights: Tensor, paths: Tensor) -> Tensor:
    """(R, h) of paths (R, L): 1/max(n, 1) sum_k E[label of step k] W_k over the first n steps, W (m, h, h)."""
    vectors, steps = edges(paths)
    total = torch.einsum("rlh,lhk->rk", vectors, weights[: vectors.shape[1]])
    mean: Tensor = total / steps.sum(1, keepdim=True).clamp(min=1)
    return mean


class GraphormerModel(PositionModel):
    """s_ij += b[r_ij] + c_ij and x_u + z_in[deg_in(u)] + z_out[deg_out(u)]; subclasses compute c_ij of a path.

    Args:
        encoding: r_ij, distances.
        paths: labels along shortest paths.
        virtual: not 0 for the virtual node.
        distances: number of distances that have their own row; farther ones have the last.
        farthest: from which distance on pairs do not attend.
        degrees: D, rows of z_in and of z_out.
        sizes: values of further symbols of the formula of parameters.

    Raises:
        PositionError: a batch has a degree of ``degrees`` or more; paths without ``max_length``, or several per pair.
    """

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding,
        paths: LabelPath,
        virtual: Encoding,
        distances: int,
        farthest: int,
        degrees: int,
        **sizes: int,
    ) -> None:
        spatial = Spatial(self.name, dims, encoding, virtual, distances, farthest)
        centrality = Centrality(self.name, dims.width, degrees, virtual)
        sizes = {"R": spatial.rows.size, "V": 2 * len(paths.labels), **sizes, "D": degrees}
        super().__init__(dims, [encoding, paths, virtual, *centrality.encodings], **sizes)
        self.spatial, self.centrality = spatial, centrality
        self.edges = Edges(paths.size, dims.heads)

    def prepare(self, positions: Positions) -> Any:
        """Everything, once for all layers."""
        paths: Lookup = positions[self.encodings[1]]
        terms = self.spatial(positions) + Terms(bias=(paths.map(self.path_bias).share(),))
        return _Prepared(terms, self.centrality(positions))

    @abstractmethod
    def path_bias(self, paths: Tensor) -> Tensor:
        """(R, h) c of paths (R, L) of symbols."""

    def inputs(self, x: Tensor, prepared: _Prepared) -> Tensor:
        return x + prepared.added.to(x.dtype)

    def terms(self, prepared: _Prepared, site: Site) -> Terms:
        return prepared.terms


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

    As in the code: steps after the m-th are left out of the sum, which is then divided by m; the virtual node, see
    :func:`structpe.transforms.nodes.with_virtual_node`, has no degree. The paper's eq. 4 gives in-degree and
    out-degree a table each; the code is for undirected graphs, where both are one number. Unlike the code: edges of a
    directed structure count in both directions, and a label in the reverse direction has its own row; of several
    shortest paths the one with the smallest labels is taken, whatever the numbers of nodes, where the code takes the
    one that Floyd-Warshall finds; E has a row per label, where the code adds the rows of an edge's features, and has
    rows for padding.

    Args:
        paths: labels along shortest paths; its ``max_length`` is m, 5 in the code.
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
        paths: LabelPath = LabelPath(max_length=5),
        virtual: Encoding = Feature("virtual", missing=0),
        distances: int = 510,
        farthest: int = 1024,
        degrees: int = 512,
    ) -> None:
        steps = slots_of(self.name, paths)
        super().__init__(dims, encoding, paths, virtual, distances, farthest, degrees, m=steps)
        self.steps = nn.Parameter(torch.randn(steps, dims.heads, dims.heads) * 0.02)

    def path_bias(self, paths: Tensor) -> Tensor:
        return mean_of_steps(self.edges, self.steps, paths)


class GraphormerSimple(GraphormerModel, name="graphormer-simple"):
    """Degrees, distances and the edge between two nodes, without paths (Ying et al. 2021).

    s_ij += b[r_ij] + E[label of the edge ij]; where i or j is the virtual node, += t. Degrees as in ``graphormer``.

    b, t, E, z_in and z_out are those of ``graphormer``; the edge term is zero for pairs that no edge joins. (Ying et
    al. 2021, section 3.1; the authors' code, edge type "simple".) Unlike the code, which is for undirected graphs, an
    edge seen from its target has its own row; of parallel edges the smallest label counts, and a self-loop counts as no
    edge.

    Args:
        paths: the labels of single edges: paths of one step, longer ones being a symbol.

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
        paths: LabelPath = LabelPath(max_length=1, longer="symbol"),
        virtual: Encoding = Feature("virtual", missing=0),
        distances: int = 510,
        farthest: int = 1024,
        degrees: int = 512,
    ) -> None:
        check_single_edges(self.name, paths)
        super().__init__(dims, encoding, paths, virtual, distances, farthest, degrees)

    def path_bias(self, paths: Tensor) -> Tensor:
        return self.edges.summed(paths)


_NEVER = 1 << 40
"""Farther than any pair: all attend."""


class GraphormerGPS(GraphormerModel, name="graphormer-gps"):
    """Graphormer as GraphGPS has it: empty steps of a path count too (Rampasek et al. 2022).

    s_ij += b[r_ij] + c_ij; where i or j is the virtual node, t. x_u + z_in[deg_in(u)] + z_out[deg_out(u)].

    ::

        c_ij = 1/max(n, 1) sum_k E[label of step k, or E[0] beyond the path] W_k          over all k = 1..m

    n is the distance of i and j, m - 1 if they are farther apart, m if no path joins them. b (R, h), t (h), E (V + 1,
    h), W (m, h, h), z_in and z_out (D, d) are those of ``graphormer``, of which this is the version of GraphGPS
    (Rampasek et al. 2022, their encoder "GraphormerBias"; after Ying et al. 2021). It differs as follows. Steps that a
    path lacks are embedded by row 0 of E, which is not zero and also that of the label 0: every pair has c_ij, even a
    unit with itself and pairs without a path. The distances m - 1 and more are one, and paths are read up to there. The
    virtual node has only t.

    Unlike the code, reversed labels have their own rows, and shortest paths are chosen, as in ``graphormer``; labels
    have rows after row 0, which is for those not seen in training: to repeat the code, give the label 0 the same
    numbers.

    Args:
        paths: labels along shortest paths, up to m - 1 of them.
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
        paths: LabelPath = LabelPath(max_length=19),
        virtual: Encoding = Feature("virtual", missing=0),
        degrees: int = 64,
    ) -> None:
        if paths.longer != "cut":
            raise PositionError(
                f"position model {self.name!r} needs paths that are cut: LabelPath(max_length=19), for example; "
                f"given is {paths!r}"
            )
        steps = slots_of(self.name, paths) + 1
        super().__init__(dims, encoding, paths, virtual, steps, _NEVER, degrees, m=steps)
        self.steps = nn.Parameter(torch.randn(steps, dims.heads, dims.heads) * 0.02)

    def prepare(self, positions: Positions) -> _Prepared:
        """Everything, once for all layers."""
        paths: Lookup = positions[self.encodings[1]]
        # The virtual node has no path: its pairs have the row of zeros after all others.
        of_paths = paths.map(lambda each: functional.pad(self.path_bias(each), (0, 0, 0, 1)))
        bias = self.spatial.with_virtual(of_paths, positions)
        return _Prepared(self.spatial(positions) + Terms(bias=(bias,)), self.centrality(positions))

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


class Graphormer3D(PositionModel, name="graphormer-3d"):
    """Distances in space by Gaussian basis functions (Shi et al. 2022).

    s_ij += (W_2 gelu(W_1 g_ij + c_1) + c_2) of the head,  x_i + U sum_j g_ij + c.

    ::

        g_ijk = exp(-((a_t d_ij + b_t - m_k) / v_k)^2 / 2) / (sqrt(2 pi) v_k),    v_k = |w_k| + 1e-5

    d_ij is the distance of i and j in space, t the pair of their labels in this order. m, w (K) start from U(0, 3); a
    and b have a scalar per pair of labels, 1 and 0 at first; W_1 (K, K), W_2 (h, K), U (d, K). The sum goes over all
    units of the structure, i among them. All layers have the same bias. (Shi et al. 2022, section 2; the authors' code,
    model "graphormer3d".)

    As in the code, except that it writes 3.14159 for pi. Its tags of atoms, repeated layers and projection to forces
    are not positions. Other structures than molecules are lines: see :class:`Euclidean`.

    Args:
        encoding: distances in space and labels.
        kernels: K, 128 in the code.
    """

    spec = Spec(
        "shi2022",
        "graph",
        Cells(
            "B",
            "both",
            learnable=True,
            recurring=True,
            unbound=True,
            params="2*K + 2*V*V + K*K + K + K*h + h + K*d + d",
        ),
        note="distances are relative; their sum over all units is absolute",
    )

    def __init__(self, dims: Dims, encoding: Euclidean = Euclidean(), kernels: int = 128) -> None:
        labels = len(encoding.labels) + 1
        super().__init__(dims, [encoding], K=kernels, V=labels)
        self.means, self.widths = (nn.Parameter(torch.empty(kernels).uniform_(0, 3)) for _ in range(2))
        self.factor = nn.Parameter(torch.ones(labels, labels))
        self.offset = nn.Parameter(torch.zeros(labels, labels))
        self.hidden, self.out = nn.Linear(kernels, kernels), nn.Linear(kernels, dims.heads)
        self.embed = nn.Linear(kernels, dims.width)

    @property
    def causal(self) -> bool:
        """No: the sum is over all units, future ones included."""
        return False

    def prepare(self, positions: Positions) -> _Prepared:
        """The bias of each distinct value, and what is added to the units."""
        pairs: Lookup = positions[self.encodings[0]]
        shape = self.means, self.widths, self.factor, self.offset
        # Where about each pair has its own value, a basis of all values, and a sum of its rows, would only take memory.
        blocks = cut(len(pairs.table), 8 * self.sizes["K"], pairs.table.device)
        if len(blocks) == 1:
            basis = pairs.map(lambda values: _basis(values, *shape))
            bias = basis.map(lambda g: self.out(functional.gelu(self.hidden(g)))).share()
            return _Prepared(Terms(bias=(bias,)), self.embed(_total(basis, positions)))
        rows, units, (b, n) = _pairs_by_row(pairs, positions)
        last = torch.tensor([block.stop for (block,) in blocks], device=rows.device)
        ends = [0, *torch.searchsorted(rows, last).tolist()]

        def network(block: Ranges, values: Tensor, *given: Tensor) -> tuple[Tensor, Tensor]:
            *shape, hidden, hidden_bias, out, out_bias = given
            basis = _basis(values, *shape)
            here = wide(basis).index_select(0, rows[block[1]] - block[0].start)
            total = here.new_zeros(b * n, basis.shape[1]).index_add(0, units[block[1]], here)
            made = functional.gelu(functional.linear(basis, hidden, hidden_bias))
            return functional.linear(made, out, out_bias), total

        both = [(*block, slice(*at)) for block, at in zip(blocks, pairwise(ends), strict=True)]
        weights = *shape, *self.hidden.parameters(), *self.out.parameters()
        table, total = by_rows(network, both, [pairs.table], weights, out=(0, None))
        bias = Lookup(table, pairs.rows, pairs.index).share()
        return _Prepared(Terms(bias=(bias,)), self.embed(total.view(b, n, -1).to(self.means.dtype)))

    def inputs(self, x: Tensor, prepared: _Prepared) -> Tensor:
        return x + prepared.added.to(x.dtype)

    def terms(self, prepared: _Prepared, site: Site) -> Terms:
        return prepared.terms


def _basis(values: Tensor, means: Tensor, widths: Tensor, factor: Tensor, offset: Tensor) -> Tensor:
    """(R, K) g of distances and labels (R, 3)."""
    query, key = values[:, 1].long(), values[:, 2].long()
    exact = torch.promote_types(means.dtype, torch.float32)  # as in the code: narrow bells need the digits
    moved = factor.to(exact)[query, key] * values[:, 0].to(exact) + offset.to(exact)[query, key]
    return bells(moved, means, widths, least=1e-5).to(means.dtype)


def _pairs_by_row(pairs: Lookup, positions: Positions) -> tuple[Tensor, Tensor, tuple[int, int]]:
    """(P,) the rows of all pairs of units in order, the unit (of b n) that is the query of each, and b and n."""
    rows, present = rows_of_pairs(pairs).long(), positions.present
    b, n, m = rows.shape
    there = torch.ones(b, n, dtype=torch.bool, device=rows.device) if present is None else present.expand(b, -1)
    places = (there[:, :, None] & there[:, None]).flatten().nonzero().squeeze(1)
    sorted_rows, order = rows.flatten()[places].sort()
    return sorted_rows, places[order] // m, (b, n)


def _total(basis: Lookup, positions: Positions) -> Tensor:
    """(b, n, K) the sum of g over all units of a unit's structure; 0 for padding."""
    rows, table, present = rows_of_pairs(basis).long(), basis.table, positions.present
    if present is not None:  # pairs with padding have a row of zeros, the last
        rows = torch.where(present[:, :, None] & present[:, None], rows, len(table))
        table = torch.cat([table, table.new_zeros(1, table.shape[1])])
    return sum_rows(table, rows.flatten(0, 1)).view(*rows.shape[:2], -1)


_PARAMS_GD = f"2*(R*h + h + {GaussianNetwork.count('K', 'u', 'h')}) + (V + 1)*h + m*h*h + 2*D*d + 4*(d*d + d)*l"
"""Formula of the number of parameters."""


@dataclass(frozen=True)
class _OfPairs:
    """``bias`` and ``factor`` (b, h, n, n) of all layers, and what is ``added`` (b, n, d) to the units."""

    bias: Tensor
    factor: Tensor
    added: Tensor


class GraphormerGD(FactoredBlock, name="graphormer-gd"):
    """Attention with a bias and a factor by two distances: shortest paths and resistance (Zhang et al. 2023).

    o_i = W_o sum_j m_ij softmax_j(q_i.k_j / sqrt(d_h) + a_ij) v_j + w_o,  x_u + z_in[deg_in(u)] + z_out[deg_out(u)].

    ::

        a_ij = b[r_ij] + c_ij + f(R_ij),    m_ij = b'[r_ij] + f'(R_ij)        where i or j is the virtual node: t, t'

    m multiplies after the softmax: rows do not sum to 1. r_ij is the length of the shortest path, R_ij the resistance;
    b and b' (R, h), t and t' (h); f and f' are networks over K Gaussians as in ``rbf-bias``; c_ij, z_in and z_out as in
    ``graphormer``. All layers have the same of these. q, k, v (d, d) with bias and W_o are of each layer. (Zhang et al.
    2023, section 4: phi_1 is m, phi_2 is a; the authors' code, edge type "multi_hop".)

    As in the code, edges are in a only, and m may be negative. Unlike the code, f does not depend on the types of two
    atoms, all pairs attend, and labels and paths are those of ``graphormer``.

    Args:
        encoding: r_ij, distances.
        resistance: R_ij, or another real number per pair.
        paths: labels along shortest paths, up to a length.
        virtual: not 0 for the virtual node.
        distances: number of distances that have their own row; farther ones have the last.
        degrees: D.
        kernels: K, 128 in the code.

    Raises:
        PositionError: a batch has a degree of ``degrees`` or more; paths without ``max_length``, or several per pair.
    """

    spec = Spec(
        "zhang2023",
        "graph",
        Cells("B", "both", learnable=True, recurring=True, unbound=True, params=_PARAMS_GD),
        note="degrees are absolute; rows do not sum to 1, so that far from both ends it counts how much is before",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = UndirectedDistance(),
        resistance: Encoding = Resistance(),
        paths: LabelPath = LabelPath(max_length=5),
        virtual: Encoding = Feature("virtual", missing=0),
        distances: int = 40,
        degrees: int = 512,
        kernels: int = 128,
    ) -> None:
        steps = slots_of(self.name, paths)
        pair_width(self.name, resistance, vectors=False)
        both = [_Function(self.name, dims, (encoding, resistance, virtual), distances, kernels) for _ in range(2)]
        centrality = Centrality(self.name, dims.width, degrees, virtual)
        sizes = {"R": both[0].spatial.rows.size, "V": 2 * len(paths.labels), "m": steps, "D": degrees}
        sizes |= {"K": kernels, "u": int(bool(resistance.codes))}
        super().__init__(dims, [encoding, resistance, paths, virtual, *centrality.encodings], **sizes)
        self.centrality = centrality
        self.bias, self.factor = both
        self.edges = Edges(paths.size, dims.heads)
        self.steps = nn.Parameter(torch.randn(steps, dims.heads, dims.heads) * 0.02)
        self.queries, self.keys, self.values, self.outs = (of_layers(dims, dims.width) for _ in range(4))

    def prepare(self, positions: Positions) -> _OfPairs:
        """Everything that all layers share."""
        _, resistance, paths, *_ = self.encodings
        both, spatial = (self.bias, self.factor), self.bias.spatial
        # Which pairs have which row is the same for both functions: it is found once, and read by one lookup.
        rows, near, steps = spatial.pairs(positions), merged(positions[resistance]), positions[paths]
        dtype = self.bias.network.means.dtype
        numbers = numbers_and_marks(resistance, near.table, dtype)
        # The last row, of zeros, is for the virtual node.
        values = functional.pad(torch.cat([each.network(numbers) for each in both], dim=1), (0, 0, 0, 1))
        tables = torch.cat([each.spatial.whole for each in both], dim=1)
        pairs = by_head(rows, tables[rows.table]) + by_head(
            spatial.with_virtual(near.map(lambda _: values), positions), values
        )
        bias, factor = pairs.chunk(2, dim=1)
        edges = by_head(steps, mean_of_steps(self.edges, self.steps, steps.table))
        return _OfPairs(bias + edges, factor, self.centrality(positions))

    def inputs(self, x: Tensor, prepared: _OfPairs) -> Tensor:
        return x + prepared.added.to(x.dtype)

    def scored(self, q: Tensor, k: Tensor, prepared: _OfPairs, site: Site) -> tuple[Tensor, Tensor]:
        return q @ k.mT / math.sqrt(self.dims.head) + prepared.bias, prepared.factor


class _Function(nn.Module):
    """b[r_ij] + f(R_ij); t where i or j is the virtual node."""

    def __init__(
        self, model: str, dims: Dims, encodings: tuple[Encoding, Encoding, Encoding], distances: int, kernels: int
    ) -> None:
        super().__init__()
        encoding, resistance, virtual = encodings
        self.spatial = Spatial(model, dims, encoding, virtual, distances, farthest=_NEVER)
        self.network = GaussianNetwork(kernels, bool(resistance.codes), dims.heads)
