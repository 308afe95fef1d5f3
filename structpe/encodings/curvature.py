"""Curvature of edges: whether the neighbourhoods of two nodes are near one another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from structpe.encodings.columns import blocks, ranges, starts_of
from structpe.encodings.graphs import Graphs, OfNodes
from structpe.structure import Ids, Structure

__all__ = ["CurvatureProfile"]

Floats = NDArray[np.float64]

_CELLS = 1 << 20
MOST = 100_000_000

_COPIES = 512
"""Up to so many points, transport is a matching; a linear programme is faster then."""


@dataclass(frozen=True)
class CurvatureProfile(OfNodes, name="curvature-profile"):
    """Local curvature profiles: statistics of the curvature of the edges of a node.

    [min, max, mean, std, median] of k_uw over the neighbours w of u: float32 (5); zeros for a node without one.

    ::

        ollivier:   k_uw = 1 - W(m_u, m_w)           W the cost of moving m_u to m_w along shortest paths,
                                                     m_u the same mass on each neighbour of u
        augmented:  k_uw = 4 - d_u - d_w + 3 t_uw    d the degree, t the number of triangles with the edge
        forman:     k_uw = 4 - d_u - d_w

    (Fesser & Weber 2024, LCP, who take Ollivier's curvature, with no mass on u itself; their code.) Edges count in both
    directions, parallel ones once; self-loops do not count. The standard deviation is divided by the number of edges.
    Transport is computed exactly, where their code estimates it for large neighbourhoods. All units of a node have its
    profile. In a sequence all is flat.

    Args:
        kind: of curvature.

    Raises:
        EncodingError: the squares of the numbers of neighbours add up to more than 100 million, but for "forman".
    """

    real = True

    kind: Literal["ollivier", "augmented", "forman"] = "ollivier"

    def of_nodes(self, graphs: Graphs, structures: Sequence[Structure]) -> NDArray[np.float32]:
        first, second, _ = graphs.links()  # each edge from both ends, by its first node
        nodes = int(graphs.start[-1])
        degree = np.bincount(first, minlength=nodes)
        squares = np.bincount(graphs.graph, np.square(degree.astype(np.float64)), minlength=len(structures))
        for which in np.flatnonzero((squares > MOST) & (self.kind != "forman"))[:1]:
            raise self.error(
                structures[which],
                f"the squares of the numbers of neighbours add up to {squares[which]:.2g}, and {MOST:.2g} are allowed; "
                f"choose kind: forman, which takes degrees only, or encode parts of the graph",
            )
        curved: Floats = np.float64(4) - degree[first] - degree[second]
        if self.kind == "ollivier":
            curved = _ollivier(first, second, degree)
        elif self.kind == "augmented":
            linked = csr_array((np.ones(len(first)), (first, second)), shape=(nodes, nodes))
            curved = curved + 3 * (linked @ linked)[first, second]
        return _profiles(first, curved, degree)


def _profiles(first: Ids, curved: Floats, degree: Ids) -> NDArray[np.float32]:
    """(T, 5) statistics of the values of the edges of each node, which come one node after the other."""
    result, some = np.zeros((len(degree), 5), dtype=np.float32), np.flatnonzero(degree)
    if not len(some):
        return result
    start, many = starts_of(degree)[some], degree[some]
    mean = np.bincount(first, curved, minlength=len(degree))[some] / many
    apart = np.square(curved - np.repeat(mean, many))
    rising = curved[np.lexsort((curved, first))]
    result[some, 0], result[some, 1] = rising[start], rising[start + many - 1]
    result[some, 2], result[some, 3] = mean, np.sqrt(np.add.reduceat(apart, start) / many)
    result[some, 4] = (rising[start + (many - 1) // 2] + rising[start + many // 2]) / 2
    return result


def _ollivier(first: Ids, second: Ids, degree: Ids) -> Floats:
    """(e,) of each edge, from both ends."""
    nodes, start = len(degree), starts_of(degree)
    linked = csr_array((np.ones(len(first)), (first, second)), shape=(nodes, nodes))
    both = (linked @ linked).nonzero(), (first, second)
    two, one = (np.sort(x.astype(np.int64) * nodes + y) for x, y in both)  # scipy's numbers have 32 bits
    once = np.flatnonzero(first < second)
    widths = degree[first[once]] * degree[second[once]]
    known: dict[tuple[int, bytes], float] = {}  # most edges are like others
    found = np.empty(len(once))
    for block in blocks(widths, _CELLS):
        u, w = first[once[block]], second[once[block]]
        place = ranges(np.zeros_like(u), widths[block])
        of_row, of_column = np.divmod(place, np.repeat(degree[w], widths[block]))
        x = second[np.repeat(start[u], widths[block]) + of_row]
        y = second[np.repeat(start[w], widths[block]) + of_column]
        codes = x * nodes + y
        far = np.where(x == y, 0, np.where(_within(codes, one), 1, np.where(_within(codes, two), 2, 3))).astype(np.int8)
        cuts = starts_of(widths[block]).tolist()
        for edge, rows, a, b in zip(range(block.start, block.stop), degree[u].tolist(), cuts, cuts[1:], strict=False):
            key = rows, far[a:b].tobytes()
            if key not in known:
                known[key] = 1 - _moved(far[a:b].reshape(rows, -1))
            found[edge] = known[key]
    at = np.searchsorted(one, np.concatenate([first[once] * nodes + second[once], second[once] * nodes + first[once]]))
    result = np.empty(len(first))
    result[at] = np.tile(found, 2)
    return result


def _within(codes: Ids, among: Ids) -> NDArray[np.bool_]:
    """Whether each number is one of those, which are sorted."""
    there: NDArray[np.bool_] = np.append(among, -1)[np.searchsorted(among, codes)] == codes
    return there


def _moved(cost: NDArray[np.int8]) -> float:
    """The least cost of moving one mass, the same in each row, to the columns, where it is the same in each again."""
    from scipy.optimize import linear_sum_assignment, linprog

    a, b = cost.shape
    if min(a, b) == 1:
        return float(cost.mean())
    points = math.lcm(a, b)
    if points <= _COPIES:  # of equal mass: a best way moves each as a whole
        copies = np.repeat(np.repeat(cost, points // a, axis=0), points // b, axis=1)
        return float(copies[linear_sum_assignment(copies)].sum()) / points
    rows, columns = np.kron(np.eye(a), np.ones(b)), np.kron(np.ones(a), np.eye(b))
    shares = np.concatenate([np.full(a, 1 / a), np.full(b, 1 / b)])
    return float(linprog(cost.ravel(), A_eq=np.concatenate([rows, columns]), b_eq=shares).fun)
