"""Absolute places in the attention of Linformer (Chen et al. 2021, DIET-ABS-LIN)."""

from __future__ import annotations

import math

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, Site, Spec
from structpe.positions._tables import Sharing, Table
from structpe.positions.absolute._places import Places, PlacesModel, at_places
from structpe.terms import Factor, Projection, Terms

__all__ = ["DIETAbsoluteLinear"]


class DIETAbsoluteLinear(PlacesModel, name="diet-abs-lin"):
    """Absolute places in the attention of Linformer (Chen et al. 2021, DIET-ABS-LIN).

    s_ic = q_i . k'_c / sqrt(d_h) + P_Q[i] . P_K[c],  o_i = sum_c softmax_c(s_ic) v'_c,  k' = E k,  v' = F v.

    E and F (c, t_max) mix the keys and the values of all places into c of each, so that attention is linear in the
    number of units (Linformer, Wang et al. 2020); P_Q (t_max, r) is of places, P_K (c, r) of mixtures. (Chen et al.
    2021, section 3.4, eq. 4, which does not write F; no code by the authors is known.)

    The paper multiplies hidden vectors by E before it projects them, (E X) W_K. Here the projected keys are mixed,
    which is the same except for the bias of that projection. A unit is mixed by its place, and padding is left out.
    Segments enter at the input in the paper (``segment-input``): a mixture has none. The paper does not say which heads
    and layers share E and F; an E and F per layer, Linformer's "headwise", is our choice, and so is Glorot's deviation,
    sqrt(2 / (c + t_max)), that they start from.

    Args:
        dims: sizes of the Transformer.
        encoding: integers 0, 1, ... per unit.
        length: t_max, number of positions.
        mixtures: c; 32 at 128 places and 256 at 512 in the paper.
        rank: r; None for the width of a head.
        sharing: of P_Q and P_K.
        mixing: which layers and heads have the same E and F.

    Raises:
        PositionError: the number of mixtures is below 1, or a batch has a position of ``length`` or more.
    """

    spec = Spec(
        "chen2021",
        "sequence",
        Cells("A", "MAM", learnable=True, recurring=True, unbound=False, params="(t + c)*r*copies + 2*c*t*mixers"),
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        length: int = 512,
        mixtures: int = 32,
        rank: int | None = None,
        sharing: Sharing = "none",
        mixing: Sharing = "head-wise",
    ) -> None:
        width = dims.head if rank is None else rank
        copies, mixers = Table.copies(sharing, dims), Table.copies(mixing, dims)
        super().__init__(dims, encoding, length, t=length, c=mixtures, r=width, copies=copies, mixers=mixers)
        self.queries = Table(dims, length, sharing, width)
        self.keys = Table(dims, mixtures, sharing, width)
        glorot = math.sqrt(2 / (mixtures + length))
        self.of_keys = Table(dims, length, mixing, mixtures, std=glorot)
        self.of_values = Table(dims, length, mixing, mixtures, std=glorot)

    def terms(self, prepared: Places, site: Site) -> Terms:
        heads = self.dims.heads
        left = at_places(self.queries.at(site.layer), prepared.queries, heads)
        right = at_places(self.keys.at(site.layer), slice(None), heads)
        mixers = (at_places(of.at(site.layer), prepared.keys, heads) for of in (self.of_keys, self.of_values))
        return Terms(
            factors=(Factor(left, right),), projection=Projection(*(mixer.transpose(-1, -2) for mixer in mixers))
        )

    @property
    def causal(self) -> bool:
        """No: a mixture contains future keys, which generation does not have."""
        return False
