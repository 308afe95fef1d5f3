"""A product of absolute places in the attention of each head (Chen et al. 2021, DIET-ABS)."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, Site, Spec
from structpe.positions._tables import Sharing, Table
from structpe.positions.absolute._places import Places, PlacesModel, at_places
from structpe.terms import Factor, Terms

__all__ = ["DIETAbsolute"]


class DIETAbsolute(PlacesModel, name="diet-abs"):
    """A product of absolute places in the attention of each head (Chen et al. 2021, DIET-ABS).

    s_ij += P_Q[i] . P_K[j], outside the scale; P_Q and P_K are learned tables (t_max, r) per head and layer.

    (Chen et al. 2021, section 3.1, eq. 1; no code by the authors is known.) The rank r is free: at r = t_max any matrix
    of places can be learned, ``diet-rel`` among them. The paper scales q.k by 1/sqrt(d) as printed; as in the BERT that
    it changes, d is the width of a head here. Its E_S, the attention among segments, is a separate model,
    ``segment-bias``: DIET-ABS as in eq. 1 is the sum of both.

    The term is a :class:`Factor`: it lengthens the head by r channels and needs no matrix of scores. The paper keeps
    P_Q P_K^T between batches at inference instead; here this is not needed, because rows in reading order are a view of
    the tables.

    Args:
        dims: sizes of the Transformer.
        encoding: integers 0, 1, ... per unit.
        length: t_max, number of positions.
        rank: r; None for the width of a head, the paper's default.
        sharing: ``none`` is the default of the paper, ``layer-wise`` what it recommends.

    Raises:
        PositionError: a batch has a position of ``length`` or more.
    """

    spec = Spec(
        "chen2021", "sequence", Cells("A", "MAM", learnable=True, recurring=True, unbound=False, params="2*t*r*copies")
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
        self.queries = Table(dims, length, sharing, width)
        self.keys = Table(dims, length, sharing, width)

    def terms(self, prepared: Places, site: Site) -> Terms:
        heads = self.dims.heads
        left = at_places(self.queries.at(site.layer), prepared.queries, heads)
        right = at_places(self.keys.at(site.layer), prepared.keys, heads)
        return Terms(factors=(Factor(left, right),))
