"""A product of absolute places in the attention of each head, from one table (Chen et al. 2021, ABS-SCALAR)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, Site, Spec
from structpe.positions._tables import Sharing, Table
from structpe.positions.absolute._places import Places, PlacesModel, at_places
from structpe.terms import Factor, Terms

__all__ = ["AbsScalar"]


class AbsScalar(PlacesModel, name="abs-scalar"):
    """A product of absolute places in the attention of each head, from one table (Chen et al. 2021, ABS-SCALAR).

    s_ij += P[i] . P[j], outside the scale; P is a learned table (t_max, r) per head and layer.

    (Chen et al. 2021, the first version of their paper, section 2.4, eq. 7; no code by the authors is known.) The term
    is symmetric, so that it does not distinguish "ahead" and "behind", and the product of a place with itself is never
    negative. The published version has two tables instead: ``diet-abs``. The S of eq. 7, the attention among segments,
    is ``segment-bias``.

    Args:
        dims: sizes of the Transformer.
        encoding: integers 0, 1, ... per unit.
        length: t_max, number of positions.
        rank: r; None for the width of a head, as in the paper.
        sharing: ``none`` as in the paper.

    Raises:
        PositionError: a batch has a position of ``length`` or more.
    """

    spec = Spec(
        "chen2021demystifying",
        "sequence",
        Cells("A", "MAM", learnable=True, recurring=True, unbound=False, params="t*r*copies"),
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        length: int = 512,
        rank: int | None = None,
        sharing: Sharing = "none",
    ) -> None:
        width = dims.head if rank is None else rank
        super().__init__(dims, encoding, length, t=length, r=width, copies=Table.copies(sharing, dims))
        self.table = Table(dims, length, sharing, width)

    def terms(self, prepared: Places, site: Site) -> Terms:
        table = self.table.at(site.layer)
        left, right = (at_places(table, of, self.dims.heads) for of in (prepared.queries, prepared.keys))
        return Terms(factors=(Factor(left, right),))
