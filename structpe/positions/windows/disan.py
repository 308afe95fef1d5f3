"""Directional masks: heads that attend only backwards or only forwards (Shen et al. 2018, DiSAN)."""

from __future__ import annotations

from typing import Literal

import torch

from structpe.encodings.base import Encoding
from structpe.encodings.order import Order
from structpe.positions import Cells, Dims, PositionModel, Positions, Site, Spec
from structpe.positions._checks import numbers, of_arity
from structpe.positions.windows._directions import visible
from structpe.terms import Terms

__all__ = ["DiSAN"]


class DiSAN(PositionModel, name="disan"):
    """Directional masks: heads that attend only backwards or only forwards (Shen et al. 2018, DiSAN).

    Key s attends for query t only where s < t (``forward``), s > t (``backward``), or s != t (``diagonal``).

    With ``both``, the first half of the heads is forward, rounded up, the other backward; DiSAN has one network of
    each. (Shen et al. 2018, section 4.1, eq. 13; survey, section 4.1.2.) The masks are strict, as in the authors' code:
    the first unit attends to nothing in a forward head, and gets zeros there. t and s are the places of units, or any
    other number per unit, such as its depth in a tree.

    The survey's row is about these masks. DiSAN's own attention weighs each channel separately: ``disan-block``. Table
    1 marks them unbound, since they have no table; but they only distinguish before and after.

    Args:
        dims: sizes of the Transformer.
        encoding: one number per unit.
        direction: which keys the heads attend to.

    Raises:
        PositionError: the encoding gives a vector per unit.
    """

    spec = Spec(
        "shen2018",
        "sequence",
        Cells("R", "MAM", learnable=False, recurring=True, unbound=False, params="0"),
        table1=Cells("R", "MAM", learnable=False, recurring=True, unbound=True, params="0"),
        note="masks work at any length, but do not distinguish keys before the query",
    )

    def __init__(
        self,
        dims: Dims,
        encoding: Encoding = Order(),
        direction: Literal["both", "forward", "backward", "diagonal"] = "both",
    ) -> None:
        super().__init__(dims, [of_arity(self.name, encoding, 1)])
        self.direction = direction

    def prepare(self, positions: Positions) -> Terms:
        """The terms of every layer."""
        (encoding,) = self.encodings
        places = positions.queries(encoding), numbers(self.name, encoding, positions[encoding])
        if self.direction != "both":
            return Terms(mask=(visible(self.direction, *places)[:, None],))
        back, ahead = (visible(direction, *places) for direction in ("forward", "backward"))
        forward = (self.dims.heads + 1) // 2
        return Terms(mask=(torch.stack([back] * forward + [ahead] * (self.dims.heads - forward), dim=1),))

    def terms(self, prepared: Terms, site: Site) -> Terms:
        return prepared
