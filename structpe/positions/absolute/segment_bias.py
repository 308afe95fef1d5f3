"""Attention among segments, as a scalar per pair of them (Chen et al. 2021)."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from structpe.encodings.base import Encoding
from structpe.encodings.feature import Feature
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._tables import Sharing, Table
from structpe.positions.absolute._places import at_places
from structpe.positions.absolute._segments import check, checked
from structpe.terms import Factor, Terms

__all__ = ["SegmentBias"]


class SegmentBias(PositionModel, name="segment-bias"):
    """Attention among segments, as a scalar per pair of them (Chen et al. 2021).

    s_ij += E_S[S(i), S(j)], outside the scale: a learned table (c, c) per head and layer, c segments.

    S(i) is the segment of unit i. (Chen et al. 2021, section 3.1, eq. 2; their first version, eqs. 9 and 10, calls it
    relative; no code by the authors is known.) It is one summand of their models, in addition to the one for
    positions::

        build(["diet-abs", "segment-bias"], dims)

    As the table has rank c at most it is a :class:`Factor` of E_S[S(i)] and the unit vector of S(j), and needs no
    matrix of pairs. Padding counts as segment 0.

    Args:
        dims: sizes of the Transformer.
        encoding: integers 0, 1, ... per unit; by default the feature "segment" of the nodes, 0 if a node has none.
        segments: c.
        sharing: ``none`` as in the paper.

    Raises:
        PositionError: a batch has a segment of ``segments`` or more, or segments are no integers.
    """

    spec = Spec(
        "chen2021", "sequence", Cells("R", "MAM", learnable=True, recurring=True, unbound=False, params="c*c*copies")
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Feature("segment", missing=0),
        segments: int = 2,
        sharing: Sharing = "none",
    ) -> None:
        super().__init__(dims, [check(self.name, encoding, segments)], c=segments, copies=Table.copies(sharing, dims))
        self.segments = segments
        self.table = Table(dims, segments, sharing, width=segments)

    def prepare(self, positions: Positions) -> tuple[Tensor, Tensor]:
        """The segments of the queries (b, n), and those of the keys as unit vectors (b, m, c)."""
        of_keys = checked(self.name, self.encodings[0], positions[self.encodings[0]], self.segments)
        return positions.queries(self.encodings[0]), functional.one_hot(of_keys, self.segments)

    def terms(self, prepared: tuple[Tensor, Tensor], site: Site) -> Terms:
        of_queries, of_keys = prepared
        left = at_places(self.table.at(site.layer), of_queries, self.dims.heads)
        right = of_keys.to(left.dtype)[:, None].expand(-1, self.dims.heads, -1, -1)
        return Terms(factors=(Factor(left, right),))
