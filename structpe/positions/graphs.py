"""Distances and roles of the nodes of a graph.

A model raises a :class:`PositionError` for an encoding that does not give one number per unit, or one integer per pair,
whichever it needs.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from structpe.encodings.base import UNREACHABLE, WITHIN, Encoding
from structpe.encodings.distance import Distance, UndirectedDistance
from structpe.encodings.trees import RootDistance
from structpe.encodings.walks import Intimacy
from structpe.encodings.weisfeiler_lehman import WeisfeilerLehman
from structpe.errors import PositionError
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Sources, Spec
from structpe.positions.batch import check_offsets, holds, indices, numbers, of_all_pairs, of_arity, of_whole, offsets
from structpe.positions.networks import BatchNorm
from structpe.positions.row_sums import WeightedSums
from structpe.positions.sinusoids import interleaved
from structpe.positions.spectra import ADJACENCY, UNIT_COUNT, Nodes
from structpe.positions.tables import PairTable, Sharing, Table, clipped_rows, is_plain
from structpe.terms import Lookup, Terms

__all__ = ["SAT", "DwivediWL", "Graformer", "GraformerSurvey", "GraphBERT", "GraphBERTSurvey", "SATSubgraph"]


def _check_rows(model: str, encoding: Encoding, rows: int) -> None:
    """Check that every role has a row; the numbers of other encodings are known only in a batch."""
    if isinstance(encoding, WeisfeilerLehman) and encoding.size > rows:
        raise PositionError(
            f"position model {model!r} has {rows} rows for roles, the encoding has {encoding.size} values; build it "
            f"with more rows, or keep the most frequent roles: WeisfeilerLehman(max_roles={rows - 1}).fit(structures)"
        )


class Graformer(PositionModel, name="graformer"):
    """Shortest-path distances as scalar biases, as Graformer's code has them (Schmitt et al. 2021).

    s_ij += b[row(r_ji)]: one scalar per head and distance, of the pair (key, query).

    r_ji is the signed length of the shortest path from the key j to the query i (:class:`Distance` with query and key
    exchanged). With D = max_distance and W = within::

        row(r) = 0                                             r = 0
                 1                                             no path
                 min(2r, 2D + 3)                               r > 0
                 min(-2r + 1, 2D + 3)                          r < 0
                 2D + 3 + min(2k - 1, 2W)                      j and i in one node, i the k-th unit after j
                 2D + 3 + min(2k, 2W)                          likewise, the k-th before

    Everything farther has the last row of its kind, without its sign; 2D + 4 rows for paths reach to distance D + 1.
    Rows start from U(-1, 1). (Schmitt et al. 2021, and their code.) The survey's eq. 31 takes r_ij and keeps both
    signs: ``graformer-survey``. Instead of the authors' rows for titles, give a title its own edges.

    Args:
        encoding: signed integers per pair.
        max_distance: D_max.
        within: W, the same for units of one node.
        sharing: ``none``, each layer has its table; ``layer-wise`` is the code's shared one.

    Raises:
        PositionError: a step of decoding.
    """

    spec = Spec(
        "schmitt2021",
        "graph",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="2*(D_max+1)*h"),
        note="the code has two more rows of distances, rows for units of one node, and a table per layer",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Distance(),
        max_distance: int = 4,
        within: int = 10,
        sharing: Sharing = "none",
    ) -> None:
        check_offsets(encoding)
        rows = 2 * max_distance + 4 + 2 * within
        super().__init__(dims, [of_all_pairs(self.name, encoding)], R=rows, copies=Table.copies(sharing, dims))
        self.max_distance, self.within = max_distance, within
        self.table = Table(dims, rows, sharing)
        nn.init.uniform_(self.table.weight, -1, 1)

    @property
    def causal(self) -> bool:
        """No: a decoding step has the pairs (query, key), and this model needs the pairs (key, query)."""
        return False

    def prepare(self, positions: Positions) -> Lookup:
        """The row of each distinct value, query and key exchanged, which a decoding step cannot do."""
        of_pairs = offsets(self.name, self.encodings[0], positions[self.encodings[0]])
        return of_pairs.transpose().map(self._row)

    def terms(self, prepared: Lookup, site: Site) -> Terms:
        return Terms(bias=(prepared.map(self.table.at(site.layer).__getitem__),))

    def _row(self, values: Tensor) -> Tensor:
        # Both signs are in one sequence of rows, even and odd ones.
        last, inner = 2 * self.max_distance + 3, values - WITHIN
        rows = (2 * values.abs() + (values < 0)).clamp(max=last)
        rows = torch.where(values == UNREACHABLE, 1, rows)
        inner = last + (2 * inner.abs() - (inner > 0).long()).clamp(max=2 * self.within)
        return torch.where(is_plain(values) | (values == UNREACHABLE), rows, inner)


class GraformerSurvey(PairTable, name="graformer-survey"):
    """Shortest-path distances as scalar biases, as the survey defines them (eq. 31; after Schmitt et al. 2021).

    s_ij += b[r_ij]: one scalar per head and signed shortest-path distance from query to key, clipped to +-D_max.

    Pairs without a path have a row, and so have units of one node by their offset (survey, eq. 31). Without the latter
    these are the 2(D_max + 1)h numbers of Table 1. The authors' code goes from key to query and merges the signs beyond
    D_max + 1: ``graformer``.

    Args:
        encoding: signed integers per pair.
        max_distance: D_max.
        within: units of one node this far apart have a row each, on both sides.
        sharing: ``none``, each layer has its table.
    """

    spec = Spec(
        "schmitt2021",
        "graph",
        Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="R*copies"),
        table1=Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="2*(D_max+1)*h"),
        note="Table 1 leaves out the rows for units of one node and counts one table for all layers",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Distance(),
        max_distance: int = 4,
        within: int = 10,
        sharing: Sharing = "none",
    ) -> None:
        super().__init__(dims, encoding, clipped_rows(encoding, max_distance, within), sharing)
        nn.init.uniform_(self.table.weight, -1, 1)


class GraphBERT(PositionModel, name="graph-bert"):
    """Role, intimacy and hops of each node as learned vectors at the input (Zhang et al. 2020).

    x_u + E_role[role(u)] + E_rank[rank(u)] + E_hop[hop(u)]: three learned tables (n, d).

    role(u) is the Weisfeiler-Lehman role of the node, rank(u) its place by intimacy with the target, hop(u) its
    distance from the target, which is the root and has 0 twice. (Zhang et al. 2020, section 3.2; the authors' code,
    whose three tables are learned; the paper's and the survey's form without parameters is ``graph-bert-survey``.)

    The code computes all three in one large graph and reads contexts of a target and the k nodes nearest to it:
    :func:`structpe.transforms.parts.contexts` makes these, with the features that ``Feature("intimacy")`` and
    ``Feature("hop")`` then read. Its roles are those of one round, functions of the degree. Its LayerNorm and dropout
    after the sum, and the residual of raw features in each layer, are not included.

    Args:
        encoding: roles; the 99 most frequent by default.
        rank: integers 0, 1, ... per unit.
        hop: integers 0, 1, ... per unit.
        rows: n, of each table.

    Raises:
        PositionError: a batch has a number of ``rows`` or more.
    """

    spec = Spec(
        "zhang2020",
        "graph",
        Cells("A", "APE", learnable=True, recurring=False, unbound=False, params="3*n*d"),
        table1=Cells("B", "APE", learnable=False, recurring=False, unbound=True, params="0"),
        note="the code has learned tables in place of sinusoids; relative to a target means absolute to all others",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = WeisfeilerLehman(max_roles=99),
        rank: Encoding = Intimacy(),
        hop: Encoding = RootDistance(),
        rows: int = 100,
    ) -> None:
        _check_rows(self.name, encoding, rows)
        super().__init__(dims, [of_whole(self.name, each) for each in (encoding, rank, hop)], n=rows)
        self.tables = nn.ParameterList(torch.randn(rows, dims.width) for _ in range(3))

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        for table, encoding in zip(self.tables, self.encodings, strict=True):
            of_units = indices(self.name, encoding, prepared.queries(encoding))
            if holds((of_units >= len(table)).any()):
                most = int(of_units.max())
                raise PositionError(
                    f"position model 'graph-bert' has {len(table)} rows, {encoding.name!r} gives {most}; build it "
                    f"with more rows, take smaller contexts, or choose 'graph-bert-survey', which has no tables"
                )
            x = x + table[of_units]
        return x


class GraphBERTSurvey(PositionModel, name="graph-bert-survey"):
    """Role, intimacy and hops of each node as sinusoids at the input (Zhang et al. 2020; survey, section 4.3.2).

    x_u + P[role(u)] + P[rank(u)] + P[hop(u)]: P the sinusoids of three integers, without parameters.

    P[t] interleaves sin and cos of t 10000^(-2i/d), and roles are refined until they no longer change. Their numbers
    are arbitrary names, which a sinusoid treats as places; the authors' code has learned tables: ``graph-bert``, which
    also says how contexts are made. (Zhang et al. 2020, section 3.2; survey, section 4.3.2.)

    Args:
        encoding: roles.
        rank: one number per unit.
        hop: one number per unit.
    """

    spec = Spec(
        "zhang2020",
        "graph",
        Cells("A", "APE", learnable=False, recurring=False, unbound=True, params="0"),
        table1=Cells("B", "APE", learnable=False, recurring=False, unbound=True, params="0"),
        note="two of its numbers are relative to the target, which means absolute to all other nodes",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = WeisfeilerLehman(iterations=None),
        rank: Encoding = Intimacy(),
        hop: Encoding = RootDistance(),
    ) -> None:
        super().__init__(dims, [of_arity(self.name, each, 1) for each in (encoding, rank, hop)])

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        for encoding in self.encodings:
            of_units = numbers(self.name, encoding, prepared.queries(encoding))
            x = x + interleaved(of_units, self.dims.width).to(x.dtype)
        return x


class DwivediWL(PositionModel, name="dwivedi-wl"):
    """Weisfeiler-Lehman roles at the input (Dwivedi and Bresson 2020).

    x_u + E[role(u)]: role(u) the number of the unit's Weisfeiler-Lehman colour, E a learned table (n, d).

    (Dwivedi and Bresson 2020, section 4, their comparison with Graph-BERT's absolute positions.) Their code numbers the
    colours of each graph separately: a number means different colours in different graphs. Here numbers are those of
    the data set that the encoding was fitted to, and colours that it has not seen share row 0. One round is done, after
    which a colour is equivalent to the degree: choose more with ``iterations``.

    Args:
        encoding: roles; the 99 most frequent colours by default, as there are 100 rows.
        rows: n.

    Raises:
        PositionError: the encoding has more values than there are rows.
    """

    spec = Spec("dwivedi2020", "graph", Cells("A", "APE", learnable=True, recurring=False, unbound=False, params="n*d"))

    def __init__(
        self, dims: Dims, encoding: WeisfeilerLehman = WeisfeilerLehman(max_roles=99), rows: int = 100
    ) -> None:
        _check_rows(self.name, encoding, rows)
        super().__init__(dims, [encoding], n=rows)
        self.table = nn.Parameter(torch.randn(rows, dims.width))

    def inputs(self, x: Tensor, prepared: Positions) -> Tensor:
        return x + self.table[prepared.queries(self.encodings[0])]


@dataclass(frozen=True)
class Surroundings:
    """What is around each unit.

    Attributes:
        nodes: the nodes of the batch.
        neighbours: (b, n, n) weights of a sum over the nodes that an edge joins with a unit's node.
        members: (b, n, n) whether the second unit's node is in the subgraph around the first's; None if nothing asks.
        listed: the same as a list; None if it would not be short.
    """

    nodes: Nodes
    neighbours: Tensor
    members: Tensor | None = None
    listed: _Members | None = None


@dataclass(frozen=True, eq=False)
class _Members:
    """The units of the subgraph around each unit, listed: far fewer than all pairs in a large graph.

    Attributes:
        unit: (P,) of each the place among all b n.
        neighbours: the sum over those members of a subgraph that an edge joins with each.
        whole: the sum over the nodes of each of the b n subgraphs.
    """

    unit: Tensor
    neighbours: WeightedSums
    whole: WeightedSums

    @classmethod
    def of_all(cls, members: Tensor, neighbours: Tensor, shares: Tensor) -> _Members | None:
        """From (b, n, n) twice and (b, n); None if products of matrices are faster."""
        (b, n, _), pairs = members.shape, neighbours.nonzero()
        if len(neighbours) != b or len(shares) != b or len(pairs) * n > b * n * n * n / FEWER:
            return None
        structure, first, second = pairs.unbind(1)
        both = members[structure, :, first] & members[structure, :, second]  # around which both are
        edge, around = both.nonzero().unbind(1)
        if len(edge) > b * n * n * n / FEWER:
            return None
        place = members.flatten().cumsum(0).view_as(members) - 1
        batch, centre, unit = members.nonzero().unbind(1)
        to, of = (place[structure[edge], around, each[edge]] for each in (first, second))
        weights = neighbours[structure, first, second][edge]
        count, listed = len(unit), torch.arange(len(unit), device=unit.device)
        whole = WeightedSums.listed(batch * n + centre, listed, shares[batch, unit], b * n, count)
        return cls(batch * n + unit, WeightedSums.listed(to, of, weights, count, count), whole)

    def sums(self, convolutions: nn.ModuleList, x: Tensor) -> Tensor:
        """(b, n, d) sum_u x^k_u over the members u of each subgraph."""
        inside = x.flatten(0, 1)
        for which, convolution in enumerate(convolutions):
            assert isinstance(convolution, _Convolution)
            if which:
                inside = convolution.joined(inside, self.neighbours(inside))
            else:  # a unit is the same in all subgraphs at first, so that it is multiplied once
                itself, around = (made.index_select(0, self.unit) for made in convolution.both(inside))
                inside = torch.relu(itself + self.neighbours(around))
        return self.whole(inside).view(x.shape)


FEWER = 16
"""How many times fewer sums over listed edges must be than products with all pairs, which take less time each."""


class _Convolution(nn.Module):
    """relu(W x_i + w + V sum of x_j over the neighbours j of i), of x (..., n, d) with neighbours (..., n, n)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.itself, self.around = nn.Linear(width, width), nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, neighbours: Tensor) -> Tensor:
        return self.joined(x, neighbours @ x)

    def joined(self, x: Tensor, summed: Tensor) -> Tensor:
        """Of x, and the sum over its neighbours."""
        return torch.relu(self.itself(x) + self.around(summed))

    def both(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """W x + w and V x."""
        return self.itself(x), self.around(x)


class _Extractor(nn.Module):
    """Convolutions of x (b, n, d), and U norm(.) + u of what is gathered from them, which is ``times`` as wide."""

    def __init__(self, width: int, hops: int, times: int) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(_Convolution(width) for _ in range(hops))
        self.norm, self.out = BatchNorm(times * width), nn.Linear(times * width, width)

    def forward(self, gathered: Tensor, present: Tensor) -> Tensor:
        """(b, n, d); norm is batch normalisation over the units that are present (b, n)."""
        out: Tensor = self.out(self.norm(gathered, present))
        return out


class Extracting(PositionModel):
    """Queries and keys are projected from what an extractor of each layer makes of the units, values from the units.

    Args:
        encoding: of the graph.
        hops: k.
        times: how many times d the vectors are wide that are :meth:`gathered`.
    """

    def __init__(self, dims: Dims, encoding: Encoding, hops: int, times: int) -> None:
        super().__init__(dims, [encoding, UNIT_COUNT], k=hops)
        self.extractors = nn.ModuleList(_Extractor(dims.width, hops, times) for _ in range(dims.layers))

    @property
    def causal(self) -> bool:
        """No: an edge to a later unit changes what is around an earlier one."""
        return False

    def sources(self, sources: Sources, prepared: Surroundings, site: Site) -> Sources:
        extractor = cast(_Extractor, self.extractors[site.layer])
        gathered = self.gathered(extractor.convolutions, sources.query, prepared)
        made = extractor(gathered, prepared.nodes.present)
        return Sources(made, made, sources.value)

    @abstractmethod
    def gathered(self, convolutions: nn.ModuleList, x: Tensor, surroundings: Surroundings) -> Tensor:
        """(b, n, times d) from (b, n, d)."""


class SAT(Extracting, name="sat"):
    """Queries and keys from a graph network over a few hops (Chen et al. 2022, the k-subtree SAT).

    q and k are projected from e_i = U norm(cat[x_i, x^1_i, ..., x^k_i]) + u in place of x_i; v from x_i as always.

    ::

        x^l_i = relu(W_l x^(l-1)_i + w_l + V_l sum_j x^(l-1)_j),    j over the nodes that an edge joins with i,  x^0 = x

    W_l, V_l (d, d), w_l (d), U (d, (k + 1) d), u (d) are of each layer; norm is batch normalisation over real units.
    (Structure-aware self-attention with the k-subtree extractor, Chen D. et al. 2022, section 4; the authors' code,
    type "graph" of its graph networks, the default there.) ``sat-subgraph`` has the k-subgraph extractor.

    Unlike the code: an edge counts in both directions, self-loops and edge labels do not count, units of one node are
    averaged in the sum over neighbours, and x is normalised before; its option of a factor 1/sqrt(degree) after
    attention is not included.
    """

    spec = Spec(
        "chen2022",
        "graph",
        Cells(
            "A",
            "MAM",
            learnable=True,
            recurring=True,
            unbound=True,
            params="l*(k*(2*d*d + d) + 2*(k + 1)*d + (k + 1)*d*d + d)",
        ),
        note="what queries and keys are made of changes with the graph around a unit: at the ends of a path, say",
    )

    def __init__(self, dims: Dims, hops: int = 2) -> None:
        super().__init__(dims, ADJACENCY, hops, times=hops + 1)

    def prepare(self, positions: Positions) -> Surroundings:
        """The neighbours of each unit, once for all layers."""
        nodes = Nodes.of(positions, next(self.parameters()).dtype)
        return Surroundings(nodes, nodes.neighbours(positions))

    def gathered(self, convolutions: nn.ModuleList, x: Tensor, surroundings: Surroundings) -> Tensor:
        each = [x]
        for convolution in convolutions:
            each.append(convolution(each[-1], surroundings.neighbours))
        return torch.cat(each, dim=-1)


class SATSubgraph(Extracting, name="sat-subgraph"):
    """Queries and keys from a graph network over the subgraph around each node (Chen et al. 2022, the k-subgraph SAT).

    q and k are projected from e_i = U norm(cat[x_i, sum_u x^k_u]) + u, u over the nodes up to k edges from i.

    ::

        x^l_u = relu(W_l x^(l-1)_u + w_l + V_l sum_j x^(l-1)_j),    j over the neighbours of u up to k edges from i

    The network runs in the subgraph around each i by itself, and distinguishes more than that of ``sat``, which has all
    else in common; U is (d, 2 d). It takes memory b n^2 d, and so is for small graphs. (Chen D. et al. 2022, section 4,
    the k-subgraph extractor; the authors' code, "khopgnn".)

    Args:
        hops: k, which is also the number of layers of the network.
    """

    spec = Spec(
        "chen2022",
        "graph",
        Cells("A", "MAM", learnable=True, recurring=True, unbound=True, params="l*(k*(2*d*d + d) + 4*d + 2*d*d + d)"),
        note="what queries and keys are made of changes with the graph around a unit: at the ends of a path, say",
    )

    def __init__(self, dims: Dims, hops: int = 2) -> None:
        super().__init__(dims, UndirectedDistance(max_distance=hops + 1), hops, times=2)

    def prepare(self, positions: Positions) -> Surroundings:
        """The neighbours of each unit and the members of its subgraph, once for all layers."""
        nodes = Nodes.of(positions, next(self.parameters()).dtype)
        far: Lookup = positions[self.encodings[0]]
        near = far.map(lambda d: (d <= self.sizes["k"]) | (d > WITHIN // 2))  # units of one node are in it
        members = near.dense() & (nodes.weights > 0)
        neighbours = torch.where(far.map(lambda d: d == 1).dense(), nodes.weights, 0)
        listed = None if torch.compiler.is_compiling() else _Members.of_all(members, neighbours, nodes.shares)
        return Surroundings(nodes, neighbours, members, listed)

    def gathered(self, convolutions: nn.ModuleList, x: Tensor, surroundings: Surroundings) -> Tensor:
        listed = surroundings.listed
        if listed is not None and len(x) == len(surroundings.nodes.shares):
            return torch.cat([x, listed.sums(convolutions, x)], dim=-1)
        assert surroundings.members is not None  # prepared above
        members = surroundings.members[..., None]
        inside, neighbours = torch.where(members, x[:, None], 0), surroundings.neighbours[:, None]
        for convolution in convolutions:
            inside = torch.where(members, convolution(inside, neighbours), 0)
        return torch.cat([x, surroundings.nodes.within(inside)], dim=-1)
